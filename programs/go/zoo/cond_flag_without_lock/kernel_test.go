// The flag is set without the lock: between the waiter's look and its wait there is room for the signal.
package cond_flag_without_lock

import (
	"sync"
	"sync/atomic"
	"testing"
)

type mailbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	closed atomic.Bool
}

func (m *mailbox) await() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.closed.Load() {
		m.cond.Wait() // cause
	}
}

func (m *mailbox) close() {
	m.closed.Store(true)
	m.cond.Broadcast() // cause
}

func (m *mailbox) closeRepaired() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed.Store(true)
	m.cond.Broadcast()
}

func run(shut func(*mailbox)) {
	m := &mailbox{}
	m.cond = sync.NewCond(&m.mu)
	var group sync.WaitGroup
	group.Go(m.await)
	shut(m)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*mailbox).close) }
func TestRepaired(t *testing.T) { run((*mailbox).closeRepaired) }
