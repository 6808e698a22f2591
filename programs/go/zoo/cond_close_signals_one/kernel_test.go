// Whoever closes the queue wakes one of those that wait for items, and there are two.
package cond_close_signals_one

import (
	"sync"
	"testing"
)

type queue struct {
	mu     sync.Mutex
	cond   *sync.Cond
	items  []int
	closed bool
}

func (q *queue) get() (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.cond.Wait() // cause
	}
	if len(q.items) == 0 {
		return 0, false
	}
	v := q.items[0]
	q.items = q.items[1:]
	return v, true
}

func (q *queue) put(v int) {
	q.mu.Lock()
	q.items = append(q.items, v)
	q.mu.Unlock()
	q.cond.Signal()
}

func (q *queue) shut(wake func()) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	wake()
}

func run(wake func(*sync.Cond)) {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				if _, ok := q.get(); !ok {
					return
				}
			}
		})
	}
	q.put(1)
	q.put(2)
	q.shut(func() { wake(q.cond) })
	group.Wait()
}

func TestBug(t *testing.T)      { run((*sync.Cond).Signal) }
func TestRepaired(t *testing.T) { run((*sync.Cond).Broadcast) }
