// Whether the queue is stopped is asked under the lock; what follows from it is done without.
package misuse_stopped_queue

import (
	"sync"
	"testing"
	"time"
)

type queue struct {
	mu      sync.Mutex
	stopped bool
	jobs    chan func()
	group   sync.WaitGroup
}

func (q *queue) start() {
	q.group.Go(func() {
		for job := range q.jobs {
			job()
		}
	})
}

func (q *queue) add(job func()) {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return
	}
	q.mu.Unlock()
	q.jobs <- job // cause
}

func (q *queue) addRepaired(job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped {
		q.jobs <- job
	}
}

func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	close(q.jobs)
	q.mu.Unlock()
	q.group.Wait()
}

func run(add func(*queue, func())) {
	q := &queue{jobs: make(chan func())}
	q.start()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		time.Sleep(time.Millisecond)
		q.stop()
	}()
	for range 3 {
		add(q, func() {})
	}
	<-stopped
}

func TestBug(t *testing.T)      { run((*queue).add) }
func TestRepaired(t *testing.T) { run((*queue).addRepaired) }
