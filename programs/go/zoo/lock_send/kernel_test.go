// A hub publishes while it holds its lock; the subscriber takes the lock before it receives.
package lock_send

import (
	"sync"
	"testing"
)

type hub struct {
	mu   sync.Mutex
	last int
	out  chan int
}

func (h *hub) publish(v int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = v
	h.out <- v // cause
}

func (h *hub) publishRepaired(v int) {
	h.mu.Lock()
	h.last = v
	h.mu.Unlock()
	h.out <- v
}

func (h *hub) subscribe(n int, started chan struct{}) int {
	close(started)
	h.mu.Lock()
	sum := h.last
	h.mu.Unlock()
	for range n {
		sum += <-h.out
	}
	return sum
}

func run(publish func(*hub, int)) {
	h := &hub{out: make(chan int)}
	done, started := make(chan int), make(chan struct{})
	go func() { done <- h.subscribe(2, started) }()
	<-started
	publish(h, 1)
	publish(h, 2)
	<-done
}

func TestBug(t *testing.T)      { run((*hub).publish) }
func TestRepaired(t *testing.T) { run((*hub).publishRepaired) }
