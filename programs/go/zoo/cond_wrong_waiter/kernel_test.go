// Producers and consumers share one condition: a single signal may wake one of the wrong kind.
package cond_wrong_waiter

import (
	"sync"
	"testing"
)

type queue struct {
	mu    sync.Mutex
	cond  *sync.Cond
	items int
	wake  func(*sync.Cond)
}

func (q *queue) put() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.items == 1 {
		q.cond.Wait() // cause
	}
	q.items++
	q.wake(q.cond)
}

func (q *queue) take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.items == 0 {
		q.cond.Wait() // cause
	}
	q.items--
	q.wake(q.cond)
}

func run(wake func(*sync.Cond)) {
	q := &queue{wake: wake}
	q.cond = sync.NewCond(&q.mu)
	var group sync.WaitGroup
	for range 3 {
		group.Go(q.take)
		group.Go(q.put)
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*sync.Cond).Signal) }
func TestRepaired(t *testing.T) { run((*sync.Cond).Broadcast) }
