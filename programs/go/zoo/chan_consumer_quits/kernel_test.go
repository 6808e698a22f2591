// Events are queued for a consumer that may have quit: once the queue is full, the publisher is stuck.
package chan_consumer_quits

import (
	"sync"
	"testing"
)

type bus struct {
	events chan int
	quit   chan struct{}
}

func (b *bus) consume() {
	for {
		select {
		case <-b.events:
		case <-b.quit:
			return
		}
	}
}

func (b *bus) publish(event int) {
	select {
	case <-b.quit:
		return
	default:
	}
	b.events <- event // cause
}

func (b *bus) publishRepaired(event int) {
	select {
	case b.events <- event:
	case <-b.quit:
	}
}

func run(publish func(*bus, int)) {
	b := &bus{events: make(chan int, 1), quit: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(b.consume)
	group.Go(func() {
		for event := range 3 {
			publish(b, event)
		}
	})
	close(b.quit)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*bus).publish) }
func TestRepaired(t *testing.T) { run((*bus).publishRepaired) }
