// An eviction that is only needed when the cache has grown meanwhile takes the lock that its caller holds.
package double_lock_helper

import (
	"sync"
	"testing"
)

type cache struct {
	mu      sync.Mutex
	entries map[int]int
	limit   int
}

func (c *cache) evict() {
	c.mu.Lock() // cause
	defer c.mu.Unlock()
	c.evictLocked()
}

func (c *cache) evictLocked() {
	for key := range c.entries {
		delete(c.entries, key)
		return
	}
}

func (c *cache) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries) >= c.limit
}

func (c *cache) add(key int, evict func(*cache)) {
	if c.full() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= c.limit {
		evict(c) // somebody was faster
	}
	c.entries[key] = key
}

func run(evict func(*cache)) {
	c := &cache{entries: map[int]int{}, limit: 1}
	var group sync.WaitGroup
	for key := range 2 {
		group.Go(func() { c.add(key, evict) })
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*cache).evict) }
func TestRepaired(t *testing.T) { run((*cache).evictLocked) }
