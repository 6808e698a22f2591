// Two readers read two tables in two orders: harmless, but for the writers that wait at both.
package rwr_two_tables

import (
	"sync"
	"testing"
)

type table struct {
	mu   sync.RWMutex
	rows int
}

func join(first, second *table) int {
	first.mu.RLock()
	defer first.mu.RUnlock()
	second.mu.RLock() // cause
	defer second.mu.RUnlock()
	return first.rows + second.rows
}

func (t *table) insert() {
	t.mu.Lock()
	t.rows++
	t.mu.Unlock()
}

func run(a, b, c, d *table) {
	var group sync.WaitGroup
	group.Go(func() { join(a, b) })
	group.Go(func() { join(c, d) })
	group.Go(a.insert)
	group.Go(b.insert)
	group.Wait()
}

func TestBug(t *testing.T) {
	a, b := &table{}, &table{}
	run(a, b, b, a)
}

func TestRepaired(t *testing.T) {
	a, b := &table{}, &table{}
	run(a, b, a, b)
}
