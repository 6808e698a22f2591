// The cancelled context is an inner one; the loop listens to the outer one, which nobody cancels.
package ctx_shadowed

import (
	"context"
	"testing"
)

type poller struct {
	ticks chan int
	gone  chan struct{}
}

func (p *poller) loop(ctx context.Context) {
	defer close(p.gone)
	for {
		select { // cause
		case <-p.ticks:
		case <-ctx.Done():
			return
		}
	}
}

func start(outer context.Context, shadow bool) (*poller, context.CancelFunc) {
	p := &poller{ticks: make(chan int), gone: make(chan struct{})}
	ctx, cancel := context.WithCancel(outer)
	if shadow {
		ctx = outer
	}
	go p.loop(ctx)
	return p, cancel
}

func TestBug(t *testing.T) {
	p, cancel := start(context.Background(), true)
	p.ticks <- 1
	cancel()
}

func TestRepaired(t *testing.T) {
	p, cancel := start(context.Background(), false)
	p.ticks <- 1
	cancel()
	<-p.gone
}
