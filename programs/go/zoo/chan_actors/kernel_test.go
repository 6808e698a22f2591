// Two actors without buffers tell each other something at the same time: each sends, none receives.
package chan_actors

import (
	"sync"
	"testing"
)

type actor struct {
	inbox chan int
	seen  int
}

func (a *actor) runs(peer *actor, rounds int, polite bool) {
	for i := range rounds {
		if !polite {
			select {
			case <-a.inbox:
				a.seen++
				continue
			default:
			}
			peer.inbox <- i // cause
			continue
		}
		select {
		case <-a.inbox:
			a.seen++
		case peer.inbox <- i:
		}
	}
}

func play(polite bool) {
	left, right := &actor{inbox: make(chan int)}, &actor{inbox: make(chan int)}
	quit := make(chan struct{})
	var group sync.WaitGroup
	// What is left over when one has finished is taken by the referee.
	referee := func(a *actor) {
		for {
			select {
			case <-a.inbox:
			case <-quit:
				return
			}
		}
	}
	var drains sync.WaitGroup
	for _, pair := range [][2]*actor{{left, right}, {right, left}} {
		group.Go(func() {
			pair[0].runs(pair[1], 3, polite)
			drains.Go(func() { referee(pair[0]) })
		})
	}
	group.Wait()
	close(quit)
	drains.Wait()
}

func TestBug(t *testing.T)      { play(false) }
func TestRepaired(t *testing.T) { play(true) }
