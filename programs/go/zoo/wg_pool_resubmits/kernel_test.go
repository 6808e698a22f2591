// The tasks of a pool submit tasks of their own, to a queue that is full; who waits for all of them is not to blame.
package wg_pool_resubmits

import (
	"sync"
	"testing"
)

type pool struct {
	tasks   chan func()
	workers sync.WaitGroup
	left    sync.WaitGroup
}

func newPool(room int) *pool {
	p := &pool{tasks: make(chan func(), room)}
	for range 2 {
		p.workers.Go(func() {
			for task := range p.tasks {
				task()
			}
		})
	}
	return p
}

func (p *pool) submit(task func()) {
	p.left.Add(1)
	p.tasks <- func() { // cause
		task()
		p.left.Done()
	}
}

func run(room int) {
	p := newPool(room)
	for range 3 {
		p.submit(func() {
			p.submit(func() {})
		})
	}
	p.left.Wait()
	close(p.tasks)
	p.workers.Wait()
}

func TestBug(t *testing.T)      { run(1) }
func TestRepaired(t *testing.T) { run(6) }
