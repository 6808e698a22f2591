// A status request waits for the loop's answer under the lock that the loop takes to handle a change.
package lock_status_request

import (
	"sync"
	"testing"
)

type loop struct {
	mu       sync.Mutex
	state    int
	changes  chan int
	requests chan chan int
	quit     chan struct{}
}

func (l *loop) serve() {
	for {
		select {
		case change := <-l.changes:
			l.mu.Lock()
			l.state += change
			l.mu.Unlock()
		case answer := <-l.requests:
			answer <- 1
		case <-l.quit:
			return
		}
	}
}

func (l *loop) status() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := make(chan int)
	l.requests <- answer // cause
	return l.state + <-answer
}

func (l *loop) statusRepaired() int {
	answer := make(chan int)
	l.requests <- answer
	alive := <-answer
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state + alive
}

func run(status func(*loop) int) {
	l := &loop{changes: make(chan int), requests: make(chan chan int), quit: make(chan struct{})}
	var server, clients sync.WaitGroup
	server.Go(l.serve)
	clients.Go(func() { l.changes <- 5 })
	clients.Go(func() { status(l) })
	clients.Wait()
	close(l.quit)
	server.Wait()
}

func TestBug(t *testing.T)      { run((*loop).status) }
func TestRepaired(t *testing.T) { run((*loop).statusRepaired) }
