// Two callers stop a loop by sending to it; the loop takes one of them and is gone.
package chan_two_stops

import (
	"sync"
	"testing"
)

type loop struct {
	jobs    chan int
	stop    chan struct{}
	once    sync.Once
	stopped sync.Mutex
	over    bool
}

func newLoop() *loop {
	l := &loop{jobs: make(chan int, 4), stop: make(chan struct{})}
	go func() {
		for {
			select {
			case <-l.jobs:
			case <-l.stop:
				return
			}
		}
	}()
	return l
}

func (l *loop) Stop() {
	l.stopped.Lock()
	over := l.over
	l.stopped.Unlock()
	if over {
		return
	}
	l.stop <- struct{}{} // cause
	l.stopped.Lock()
	l.over = true
	l.stopped.Unlock()
}

func (l *loop) StopRepaired() {
	l.once.Do(func() { close(l.stop) })
}

func both(stop func()) {
	var group sync.WaitGroup
	for range 2 {
		group.Go(stop)
	}
	group.Wait()
}

func TestBug(t *testing.T) {
	l := newLoop()
	l.jobs <- 1
	both(l.Stop)
}

func TestRepaired(t *testing.T) {
	l := newLoop()
	l.jobs <- 1
	both(l.StopRepaired)
}
