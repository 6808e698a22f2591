// A retry loop takes the lock again without having given it back, if its first look came too early.
package double_lock_retry

import (
	"sync"
	"testing"
)

type slot struct {
	mu    sync.Mutex
	full  bool
	value int
}

func (s *slot) take() int {
	for {
		s.mu.Lock() // cause
		if s.full {
			s.full = false
			s.mu.Unlock()
			return s.value
		}
	}
}

func (s *slot) takeRepaired(filled chan struct{}) int {
	<-filled
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = false
	return s.value
}

func (s *slot) put(v int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full, s.value = true, v
}

func TestBug(t *testing.T) {
	s := &slot{}
	var group sync.WaitGroup
	group.Go(func() { s.take() })
	s.put(7)
	group.Wait()
}

func TestRepaired(t *testing.T) {
	s := &slot{}
	filled := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { s.takeRepaired(filled) })
	s.put(7)
	close(filled)
	group.Wait()
}
