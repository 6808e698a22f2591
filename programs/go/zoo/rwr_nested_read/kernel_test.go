// A reader reads again in a helper; a writer that comes in between keeps the second read out.
package rwr_nested_read

import (
	"sync"
	"testing"
)

type table struct {
	mu   sync.RWMutex
	rows map[string]int
}

func (t *table) get(key string) int {
	t.mu.RLock() // cause
	defer t.mu.RUnlock()
	return t.rows[key]
}

func (t *table) sum(keys []string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	sum := 0
	for _, key := range keys {
		sum += t.get(key)
	}
	return sum
}

func (t *table) sumRepaired(keys []string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	sum := 0
	for _, key := range keys {
		sum += t.rows[key]
	}
	return sum
}

func (t *table) set(key string, value int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[key] = value
}

func run(sum func(*table, []string) int) {
	t := &table{rows: map[string]int{"a": 1, "b": 2}}
	var group sync.WaitGroup
	group.Go(func() { t.set("c", 3) })
	group.Go(func() { sum(t, []string{"a", "b"}) })
	group.Wait()
}

func TestBug(t *testing.T)      { run((*table).sum) }
func TestRepaired(t *testing.T) { run((*table).sumRepaired) }
