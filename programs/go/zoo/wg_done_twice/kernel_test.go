// The error path calls Done, and the deferred one calls it again.
package wg_done_twice

import (
	"sync"
	"testing"
)

type loader struct {
	mu     sync.Mutex
	loaded map[int]bool
}

// load says whether it was the first to load it.
func (l *loader) load(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.loaded[id]
	l.loaded[id] = true
	return first
}

func (l *loader) isLoaded(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded[id]
}

func (l *loader) work(group *sync.WaitGroup, id int) {
	defer group.Done() // cause
	if l.isLoaded(id) {
		return
	}
	if !l.load(id) {
		group.Done() // cause
	}
}

func (l *loader) workRepaired(group *sync.WaitGroup, id int) {
	defer group.Done()
	l.load(id)
}

func run(work func(*loader, *sync.WaitGroup, int)) {
	l := &loader{loaded: map[int]bool{}}
	var group sync.WaitGroup
	group.Add(2)
	go work(l, &group, 1)
	go work(l, &group, 1)
	group.Wait()
	// Whoever comes too late with its Done brings the count below 0 here.
	for range 3 {
		l.isLoaded(1)
	}
}

func TestBug(t *testing.T)      { run((*loader).work) }
func TestRepaired(t *testing.T) { run((*loader).workRepaired) }
