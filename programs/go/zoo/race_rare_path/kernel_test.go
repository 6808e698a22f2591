// The statistics are updated without the lock only where two requests overlap.
package race_rare_path

import (
	"sync"
	"sync/atomic"
	"testing"
)

type server struct {
	mu       sync.Mutex
	active   atomic.Int32
	overlaps int
}

func (s *server) handle() {
	if s.active.Add(1) > 1 {
		s.overlaps++ // cause
	}
	s.mu.Lock()
	s.mu.Unlock()
	s.active.Add(-1)
}

func (s *server) handleRepaired() {
	if s.active.Add(1) > 1 {
		s.mu.Lock()
		s.overlaps++
		s.mu.Unlock()
	}
	s.active.Add(-1)
}

func run(handle func(*server)) {
	s := &server{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { handle(s) })
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*server).handle) }
func TestRepaired(t *testing.T) { run((*server).handleRepaired) }
