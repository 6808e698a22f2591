// Close holds the lock until the worker has finished; the worker takes the lock to finish.
package lock_close_waits

import (
	"runtime"
	"sync"
	"testing"
)

type pool struct {
	mu      sync.Mutex
	closing bool
	served  int
	jobs    chan int
	done    chan struct{}
}

func (p *pool) work() {
	defer close(p.done)
	for range p.jobs {
		p.mu.Lock()
		p.served++
		p.mu.Unlock()
	}
}

func (p *pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	close(p.jobs)
	<-p.done // cause
}

func (p *pool) CloseRepaired() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	close(p.jobs)
	<-p.done
}

func run(shut func(*pool)) {
	p := &pool{jobs: make(chan int, 3), done: make(chan struct{})}
	go p.work()
	for i := range 3 {
		p.jobs <- i
	}
	for range 100 {
		runtime.Gosched()
		p.mu.Lock()
		all := p.served == 3
		p.mu.Unlock()
		if all {
			break
		}
	}
	shut(p)
}

func TestBug(t *testing.T)      { run((*pool).Close) }
func TestRepaired(t *testing.T) { run((*pool).CloseRepaired) }
