// A signal that comes before the wait is lost, and there is no state that would remember it.
package cond_signal_before_wait

import (
	"runtime"
	"sync"
	"testing"
)

type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	open bool
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) pass() {
	g.mu.Lock()
	g.cond.Wait() // cause
	g.mu.Unlock()
}

func (g *gate) passRepaired() {
	g.mu.Lock()
	for !g.open {
		g.cond.Wait()
	}
	g.mu.Unlock()
}

func (g *gate) lift() {
	g.mu.Lock()
	g.open = true
	g.cond.Broadcast()
	g.mu.Unlock()
}

func run(pass func(*gate)) {
	g := newGate()
	started := make(chan struct{})
	go func() {
		close(started)
		for range 100 {
			runtime.Gosched()
			g.mu.Lock()
			g.open = false
			g.mu.Unlock()
		}
		g.lift()
	}()
	<-started
	pass(g)
}

func TestBug(t *testing.T)      { run((*gate).pass) }
func TestRepaired(t *testing.T) { run((*gate).passRepaired) }
