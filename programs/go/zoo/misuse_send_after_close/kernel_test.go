// A hub closes its channel at shutdown while a sender is between its look and its send.
package misuse_send_after_close

import (
	"sync"
	"testing"
)

type hub struct {
	mu     sync.Mutex
	closed bool
	out    chan int
}

func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *hub) send(v int) {
	if h.isClosed() {
		return
	}
	h.out <- v // cause
}

func (h *hub) sendRepaired(v int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.out <- v
	}
}

func (h *hub) shutdown() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	close(h.out)
}

func run(send func(*hub, int)) {
	h := &hub{out: make(chan int, 4)}
	var group sync.WaitGroup
	group.Go(func() {
		send(h, 1)
		send(h, 2)
	})
	group.Go(h.shutdown)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*hub).send) }
func TestRepaired(t *testing.T) { run((*hub).sendRepaired) }
