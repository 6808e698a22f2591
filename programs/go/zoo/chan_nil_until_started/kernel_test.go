// A waiter reads the channel's variable before start has made it: it waits at nil for ever.
package chan_nil_until_started

import (
	"sync"
	"testing"
)

type service struct {
	mu    sync.Mutex
	ready chan struct{}
}

func (s *service) channel() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

func (s *service) start() {
	s.mu.Lock()
	if s.ready == nil {
		s.ready = make(chan struct{})
	}
	s.mu.Unlock()
	close(s.channel())
}

func (s *service) await() {
	<-s.channel() // cause
}

func run(s *service) {
	var group sync.WaitGroup
	group.Go(s.await)
	s.start()
	group.Wait()
}

func TestBug(t *testing.T)      { run(&service{}) }
func TestRepaired(t *testing.T) { run(&service{ready: make(chan struct{})}) }
