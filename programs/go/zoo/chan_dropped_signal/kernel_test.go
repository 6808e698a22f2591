// A signal is sent with a default: it is dropped where the waiter has not come to its receive yet.
package chan_dropped_signal

import "testing"

type latch struct{ ready chan struct{} }

func (l *latch) announce() {
	select {
	case l.ready <- struct{}{}:
	default: // nobody listens yet
	}
}

func (l *latch) await() {
	<-l.ready // cause
}

func load(done func()) {
	table := map[int]int{}
	for i := range 50 {
		table[i] = i * i
	}
	done()
}

func TestBug(t *testing.T) {
	l := &latch{ready: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		<-started
		load(l.announce)
	}()
	close(started)
	l.await()
}

func TestRepaired(t *testing.T) {
	l := &latch{ready: make(chan struct{}, 1)}
	started := make(chan struct{})
	go func() {
		<-started
		load(l.announce)
	}()
	close(started)
	l.await()
}
