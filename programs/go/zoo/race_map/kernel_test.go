// A cache looks under its lock and stores without it.
package race_map

import (
	"sync"
	"testing"
)

type cache struct {
	mu     sync.RWMutex
	values map[string]int
}

func (c *cache) get(key string) (int, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.values[key] // cause
	return v, ok
}

func (c *cache) load(key string) int {
	if v, ok := c.get(key); ok {
		return v
	}
	v := len(key)
	c.values[key] = v // cause
	return v
}

func (c *cache) loadRepaired(key string) int {
	if v, ok := c.get(key); ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := len(key)
	c.values[key] = v
	return v
}

func run(load func(*cache, string) int) {
	c := &cache{values: map[string]int{}}
	var group sync.WaitGroup
	for _, key := range []string{"a", "bb", "a"} {
		group.Go(func() { load(c, key) })
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*cache).load) }
func TestRepaired(t *testing.T) { run((*cache).loadRepaired) }
