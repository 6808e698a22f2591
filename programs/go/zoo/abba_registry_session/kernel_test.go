// A session that closes tells its registry; a registry that shuts down closes its sessions.
package abba_registry_session

import (
	"sync"
	"testing"
)

type registry struct {
	mu       sync.Mutex
	sessions map[*session]bool
}

type session struct {
	mu     sync.Mutex
	home   *registry
	closed bool
}

func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.home.mu.Lock() // cause
	delete(s.home.sessions, s)
	s.home.mu.Unlock()
}

func (s *session) closeRepaired() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return
	}
	s.home.mu.Lock()
	delete(s.home.sessions, s)
	s.home.mu.Unlock()
}

func (r *registry) shutdown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.sessions {
		s.mu.Lock() // cause
		s.closed = true
		s.mu.Unlock()
	}
}

func run(closing func(*session)) {
	r := &registry{sessions: map[*session]bool{}}
	s := &session{home: r}
	r.sessions[s] = true
	var group sync.WaitGroup
	group.Go(func() { closing(s) })
	group.Go(r.shutdown)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*session).close) }
func TestRepaired(t *testing.T) { run((*session).closeRepaired) }
