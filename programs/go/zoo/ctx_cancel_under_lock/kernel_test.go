// A session that is still open after its end is waited for under its lock; its watcher takes the lock when the context is done.
package ctx_cancel_under_lock

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

type session struct {
	mu     sync.Mutex
	open   bool
	cancel context.CancelFunc
	gone   chan struct{}
}

func (s *session) watch(ctx context.Context) {
	<-ctx.Done()
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
	close(s.gone)
}

func (s *session) end() {
	s.cancel()
	for range 100 {
		runtime.Gosched()
		s.mu.Lock()
		open := s.open
		s.mu.Unlock()
		if !open {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		<-s.gone // cause
	}
}

func (s *session) endRepaired() {
	s.cancel()
	<-s.gone
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
}

func run(end func(*session)) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{open: true, cancel: cancel, gone: make(chan struct{})}
	go s.watch(ctx)
	end(s)
}

func TestBug(t *testing.T)      { run((*session).end) }
func TestRepaired(t *testing.T) { run((*session).endRepaired) }
