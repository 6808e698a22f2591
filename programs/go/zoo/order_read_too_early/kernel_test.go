// A result is read after the signal that work has begun, instead of the one that it is done.
package order_read_too_early

import (
	"sync/atomic"
	"testing"
)

type task struct {
	result  atomic.Int64
	begun   chan struct{}
	done    chan struct{}
	pending atomic.Bool
}

func (t *task) run() {
	close(t.begun)
	t.result.Store(42)
	close(t.done)
}

func TestBug(t *testing.T) {
	it := &task{begun: make(chan struct{}), done: make(chan struct{})}
	go it.run()
	<-it.begun
	if it.result.Load() != 42 {
		t.Fatal("no result") // cause
	}
	<-it.done
}

func TestRepaired(t *testing.T) {
	it := &task{begun: make(chan struct{}), done: make(chan struct{})}
	go it.run()
	<-it.done
	if it.result.Load() != 42 {
		t.Fatal("no result")
	}
}
