// A consumer that was woken does not look again: somebody else may have been faster.
package cond_if_instead_of_for

import (
	"sync"
	"testing"
)

type stack struct {
	mu    sync.Mutex
	cond  *sync.Cond
	items []int
}

func (s *stack) pop() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) == 0 {
		s.cond.Wait()
	}
	item := s.items[len(s.items)-1] // cause
	s.items = s.items[:len(s.items)-1]
	return item
}

func (s *stack) popRepaired() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.items) == 0 {
		s.cond.Wait()
	}
	item := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return item
}

func (s *stack) push(item int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, item)
	s.cond.Broadcast()
}

func run(pop func(*stack) int) {
	s := &stack{}
	s.cond = sync.NewCond(&s.mu)
	var group sync.WaitGroup
	group.Go(func() { pop(s) })
	group.Go(func() { pop(s) })
	s.push(1)
	s.push(2)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*stack).pop) }
func TestRepaired(t *testing.T) { run((*stack).popRepaired) }
