// A reader that misses wants to write before it has stopped reading; two of them keep each other out.
package rwr_upgrade

import (
	"runtime"
	"sync"
	"testing"
)

type store struct {
	mu     sync.RWMutex
	values map[int]int
}

func (s *store) load(key int) int {
	s.mu.RLock()
	value, ok := s.values[key]
	if ok {
		s.mu.RUnlock()
		return value
	}
	s.mu.Lock() // cause
	s.values[key] = key * 2
	s.mu.Unlock()
	s.mu.RUnlock()
	return key * 2
}

func (s *store) loadRepaired(key int) int {
	s.mu.RLock()
	value, ok := s.values[key]
	s.mu.RUnlock()
	if ok {
		return value
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = key * 2
	return key * 2
}

// fill comes first in most runs, and then nobody misses.
func (s *store) fill(key int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = key * 2
}

func run(load func(*store, int) int) {
	s := &store{values: map[int]int{}}
	var group sync.WaitGroup
	group.Go(func() { s.fill(4) })
	for range 100 {
		runtime.Gosched()
		s.mu.RLock()
		filled := len(s.values) > 0
		s.mu.RUnlock()
		if filled {
			break
		}
	}
	group.Go(func() { load(s, 4) })
	group.Wait()
}

func TestBug(t *testing.T)      { run((*store).load) }
func TestRepaired(t *testing.T) { run((*store).loadRepaired) }
