// A listener that is called under the lock reads the value with the locking getter, when the value has changed.
package double_lock_callback

import (
	"sync"
	"testing"
)

type setting struct {
	mu       sync.Mutex
	value    int
	onChange func()
}

func (s *setting) get() int {
	s.mu.Lock() // cause
	defer s.mu.Unlock()
	return s.value
}

func (s *setting) set(old, value int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != old {
		s.onChange() // somebody else was here
	}
	s.value = value
}

func (s *setting) setRepaired(old, value int) {
	s.mu.Lock()
	changed := s.value != old
	s.value = value
	s.mu.Unlock()
	if changed {
		s.onChange()
	}
}

func run(set func(s *setting, old, value int)) {
	s := &setting{}
	s.onChange = func() { s.get() }
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			old := s.get()
			if old == 0 {
				set(s, old, old+1)
			}
		})
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*setting).set) }
func TestRepaired(t *testing.T) { run((*setting).setRepaired) }
