// Several wait for the same state; one signal wakes one of them, and the others sleep on.
package cond_signal_for_many

import (
	"sync"
	"testing"
)

type start struct {
	mu   sync.Mutex
	cond *sync.Cond
	gone bool
}

func (s *start) await(group *sync.WaitGroup) {
	defer group.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.gone {
		s.cond.Wait() // cause
	}
}

func (s *start) shoot(wake func(*sync.Cond)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	wake(s.cond) // cause
}

func run(wake func(*sync.Cond)) {
	s := &start{}
	s.cond = sync.NewCond(&s.mu)
	var group sync.WaitGroup
	group.Add(2)
	go s.await(&group)
	go s.await(&group)
	s.shoot(wake)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*sync.Cond).Signal) }
func TestRepaired(t *testing.T) { run((*sync.Cond).Broadcast) }
