// Two tables are compared one way and merged the other, one with a read lock inside.
package abba_read_write

import (
	"sync"
	"testing"
)

type table struct {
	mu   sync.RWMutex
	rows []int
}

func merge(into, from *table) {
	into.mu.Lock()
	defer into.mu.Unlock()
	from.mu.RLock() // cause
	defer from.mu.RUnlock()
	into.rows = append(into.rows, from.rows...)
}

func mergeRepaired(into, from *table) {
	from.mu.RLock()
	rows := append([]int(nil), from.rows...)
	from.mu.RUnlock()
	into.mu.Lock()
	defer into.mu.Unlock()
	into.rows = append(into.rows, rows...)
}

func run(merge func(into, from *table)) {
	a, b := &table{rows: []int{1}}, &table{rows: []int{2}}
	var group sync.WaitGroup
	group.Go(func() { merge(a, b) })
	group.Go(func() { merge(b, a) })
	group.Wait()
}

func TestBug(t *testing.T)      { run(merge) }
func TestRepaired(t *testing.T) { run(mergeRepaired) }
