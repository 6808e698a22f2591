// A listener runs before its handler is set.
package order_use_before_set

import (
	"sync/atomic"
	"testing"
)

type handler struct{ calls int }

func (h *handler) serve() { h.calls++ } // cause

type server struct {
	handler atomic.Pointer[handler]
	done    chan struct{}
}

func (s *server) listen() {
	s.handler.Load().serve() // cause
	close(s.done)
}

func TestBug(t *testing.T) {
	s := &server{done: make(chan struct{})}
	go s.listen()
	s.handler.Store(&handler{})
	<-s.done
}

func TestRepaired(t *testing.T) {
	s := &server{done: make(chan struct{})}
	s.handler.Store(&handler{})
	go s.listen()
	<-s.done
}
