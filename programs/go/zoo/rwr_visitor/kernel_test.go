// A visitor that is called under the read lock reads again; a writer in between keeps it out.
package rwr_visitor

import (
	"sync"
	"testing"
)

type tree struct {
	mu    sync.RWMutex
	nodes map[int][]int
}

func (t *tree) children(id int) []int {
	t.mu.RLock() // cause
	defer t.mu.RUnlock()
	return t.nodes[id]
}

func (t *tree) walk(id int, visit func(int)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, child := range t.nodes[id] {
		visit(child)
	}
}

func (t *tree) walkRepaired(id int, visit func(int)) {
	for _, child := range t.children(id) {
		visit(child)
	}
}

func (t *tree) add(parent, child int) {
	t.mu.Lock()
	t.nodes[parent] = append(t.nodes[parent], child)
	t.mu.Unlock()
}

func run(walk func(*tree, int, func(int))) {
	t := &tree{nodes: map[int][]int{0: {1, 2}, 1: {3}}}
	var group sync.WaitGroup
	group.Go(func() { t.add(2, 4) })
	group.Go(func() {
		walk(t, 0, func(child int) { t.children(child) })
	})
	group.Wait()
}

func TestBug(t *testing.T)      { run((*tree).walk) }
func TestRepaired(t *testing.T) { run((*tree).walkRepaired) }
