// Requests are counted without a lock.
package race_counter

import (
	"sync"
	"testing"
)

type stats struct {
	mu    sync.Mutex
	count int
}

func (s *stats) hit() {
	s.count++ // cause
}

func (s *stats) hitRepaired() {
	s.mu.Lock()
	s.count++
	s.mu.Unlock()
}

func run(hit func(*stats)) {
	s := &stats{}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { hit(s) })
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*stats).hit) }
func TestRepaired(t *testing.T) { run((*stats).hitRepaired) }
