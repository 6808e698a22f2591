// Enqueue waits for room with the lock held; the consumer needs the lock before it takes anything.
package lock_full_queue

import (
	"sync"
	"testing"
)

type queue struct {
	mu    sync.Mutex
	size  int
	items chan int
}

func (q *queue) put(v int) {
	q.mu.Lock()
	q.size++
	q.items <- v // cause
	q.mu.Unlock()
}

func (q *queue) putRepaired(v int) {
	q.items <- v
	q.mu.Lock()
	q.size++
	q.mu.Unlock()
}

func (q *queue) take() int {
	q.mu.Lock()
	q.size--
	q.mu.Unlock()
	return <-q.items
}

func run(put func(*queue, int)) {
	q := &queue{items: make(chan int, 3)}
	var group sync.WaitGroup
	started := make(chan struct{})
	group.Go(func() {
		close(started)
		for range 4 {
			q.take()
		}
	})
	<-started
	for i := range 4 {
		put(q, i)
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*queue).put) }
func TestRepaired(t *testing.T) { run((*queue).putRepaired) }
