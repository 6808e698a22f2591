// A lock and a one-place channel that serves as a lock, taken in two orders.
package abba_channel_lock

import (
	"sync"
	"testing"
)

type device struct {
	mu   sync.Mutex
	busy chan struct{}
	n    int
}

func (d *device) read() {
	d.mu.Lock()
	d.busy <- struct{}{} // cause
	d.n++
	<-d.busy
	d.mu.Unlock()
}

func (d *device) write() {
	d.busy <- struct{}{}
	d.mu.Lock() // cause
	d.n--
	d.mu.Unlock()
	<-d.busy
}

func (d *device) writeRepaired() {
	d.mu.Lock()
	d.busy <- struct{}{}
	d.n--
	<-d.busy
	d.mu.Unlock()
}

func run(write func(*device)) {
	d := &device{busy: make(chan struct{}, 1)}
	var group sync.WaitGroup
	group.Go(d.read)
	group.Go(func() { write(d) })
	group.Wait()
}

func TestBug(t *testing.T)      { run((*device).write) }
func TestRepaired(t *testing.T) { run((*device).writeRepaired) }
