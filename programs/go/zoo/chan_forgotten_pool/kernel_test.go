// A test starts a pool of its own and forgets to stop it. The pool has served, and is idle, but nobody keeps it.
package chan_forgotten_pool

import (
	"sync"
	"testing"
)

type pool struct {
	tasks   chan func()
	workers sync.WaitGroup
}

func start(workers int) *pool {
	p := &pool{tasks: make(chan func())}
	for range workers {
		p.workers.Go(func() {
			for task := range p.tasks { // cause
				task()
			}
		})
	}
	return p
}

func (p *pool) sum(numbers ...int) int {
	var mu sync.Mutex
	var done sync.WaitGroup
	total := 0
	for _, n := range numbers {
		done.Add(1)
		p.tasks <- func() {
			defer done.Done()
			mu.Lock()
			total += n
			mu.Unlock()
		}
	}
	done.Wait()
	return total
}

func (p *pool) stop() {
	close(p.tasks)
	p.workers.Wait()
}

func use(t *testing.T, p *pool) {
	if sum := p.sum(1, 2, 3, 4); sum != 10 {
		t.Errorf("1 + 2 + 3 + 4 = %d", sum)
	}
}

func TestBug(t *testing.T) {
	p := start(2)
	t.Cleanup(func() { use(t, p) })
	use(t, p)
}

func TestRepaired(t *testing.T) {
	p := start(2)
	t.Cleanup(p.stop)
	use(t, p)
}
