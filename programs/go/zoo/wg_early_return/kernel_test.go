// A worker that had more than its share returns without Done.
package wg_early_return

import (
	"sync"
	"testing"
)

type tasks struct {
	mu   sync.Mutex
	left []int
}

func (t *tasks) next() (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) == 0 {
		return 0, false
	}
	task := t.left[0]
	t.left = t.left[1:]
	return task, true
}

func (t *tasks) work(group *sync.WaitGroup) {
	done := 0
	for {
		task, ok := t.next()
		if !ok {
			break
		}
		if done += task; done > 3 {
			return // tired
		}
	}
	group.Done()
}

func (t *tasks) workRepaired(group *sync.WaitGroup) {
	defer group.Done()
	for {
		if _, ok := t.next(); !ok {
			return
		}
	}
}

func run(work func(*tasks, *sync.WaitGroup)) {
	t := &tasks{left: []int{2, 2, 2}}
	var group sync.WaitGroup
	group.Add(3)
	for range 3 {
		go work(t, &group)
	}
	group.Wait() // cause
}

func TestBug(t *testing.T)      { run((*tasks).work) }
func TestRepaired(t *testing.T) { run((*tasks).workRepaired) }
