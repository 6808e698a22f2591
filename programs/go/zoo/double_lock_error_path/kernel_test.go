// An error path returns without unlocking; whoever comes next waits for ever.
package double_lock_error_path

import (
	"errors"
	"sync"
	"testing"
)

var errBusy = errors.New("busy")

type port struct {
	mu   sync.Mutex
	busy bool
}

func (p *port) open() error {
	p.mu.Lock() // cause
	if p.busy {
		return errBusy
	}
	p.busy = true
	p.mu.Unlock()
	return nil
}

func (p *port) openRepaired() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy {
		return errBusy
	}
	p.busy = true
	return nil
}

func (p *port) close() {
	p.mu.Lock() // cause
	p.busy = false
	p.mu.Unlock()
}

func run(open func(*port) error) {
	p := &port{}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if open(p) == nil {
				p.close()
			}
		})
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*port).open) }
func TestRepaired(t *testing.T) { run((*port).openRepaired) }
