// A thread waits for a flag, looking at it under the lock; whoever would set it has seen it set and gone.
package livelock_flag

import (
	"runtime"
	"sync"
	"testing"
)

type turn struct {
	mu   sync.Mutex
	next int
}

func (t *turn) is(me int) bool {
	t.mu.Lock() // cause
	defer t.mu.Unlock()
	return t.next == me
}

func (t *turn) pass(to int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = to
}

// play gives the turn away only if it had it at its first look.
func play(t *turn, me int) {
	if t.is(me) {
		t.pass(1 - me)
		return
	}
	for !t.is(me) { // cause
		runtime.Gosched()
	}
}

func playRepaired(t *turn, me int) {
	for !t.is(me) {
		runtime.Gosched()
	}
	t.pass(1 - me)
}

func run(play func(*turn, int)) {
	t := &turn{}
	var group sync.WaitGroup
	for me := range 2 {
		group.Go(func() {
			play(t, me)
			play(t, me)
		})
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run(play) }
func TestRepaired(t *testing.T) { run(playRepaired) }
