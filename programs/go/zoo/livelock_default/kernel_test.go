// A loop polls with a default for a value that only its own next step would make somebody send.
package livelock_default

import (
	"sync"
	"testing"
)

type exchange struct {
	offers  chan int
	replies chan int
}

// trade polls for a reply; if the offer was dropped, there will never be one.
func (e *exchange) trade() int {
	select {
	case e.offers <- 1:
	default: // the other side is not there yet
	}
	for {
		select { // cause
		case reply := <-e.replies: // cause
			return reply
		default:
		}
	}
}

func (e *exchange) tradeRepaired() int {
	e.offers <- 1
	return <-e.replies
}

func run(trade func(*exchange) int) {
	e := &exchange{offers: make(chan int), replies: make(chan int, 1)}
	ready := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		close(ready)
		e.replies <- 1 + <-e.offers
	})
	<-ready
	trade(e)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*exchange).trade) }
func TestRepaired(t *testing.T) { run((*exchange).tradeRepaired) }
