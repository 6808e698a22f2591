// A server takes another request while it is being shut down: the wait group may be added to after it was waited for.
package wg_add_late

import (
	"sync"
	"testing"
)

type server struct {
	mu       sync.Mutex
	down     bool
	requests chan int
	handlers sync.WaitGroup
	served   int
}

func (s *server) handle(n int) {
	defer s.handlers.Done()
	s.mu.Lock()
	s.served += n
	s.mu.Unlock()
}

func (s *server) serve() {
	for n := range s.requests {
		s.handlers.Add(1) // cause
		go s.handle(n)
	}
}

func (s *server) shutDown() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.handlers.Wait()
}

func (s *server) serveRepaired() {
	for n := range s.requests {
		s.mu.Lock()
		if !s.down {
			s.handlers.Add(1)
			go s.handle(n)
		}
		s.mu.Unlock()
	}
}

func run(t *testing.T, serve func(*server)) {
	s := &server{requests: make(chan int, 1)}
	var serving sync.WaitGroup
	serving.Go(func() { serve(s) })
	s.requests <- 1
	s.shutDown()
	close(s.requests)
	serving.Wait()
	s.handlers.Wait()
}

func TestBug(t *testing.T) { run(t, (*server).serve) }

func TestRepaired(t *testing.T) { run(t, (*server).serveRepaired) }
