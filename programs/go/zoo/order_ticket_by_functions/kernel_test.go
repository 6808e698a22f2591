// A ticket is drawn by a load and a store, functions both: two may draw the same one.
package order_ticket_by_functions

import (
	"sync"
	"sync/atomic"
	"testing"
)

type office struct{ next int64 }

func (o *office) draw() int64 {
	ticket := atomic.LoadInt64(&o.next)
	atomic.StoreInt64(&o.next, ticket+1)
	return ticket
}

func (o *office) drawRepaired() int64 { return atomic.AddInt64(&o.next, 1) - 1 }

func run(t *testing.T, draw func(*office) int64) {
	o := &office{}
	tickets := make([]int64, 2)
	var group sync.WaitGroup
	for who := range tickets {
		group.Go(func() { tickets[who] = draw(o) })
	}
	group.Wait()
	if tickets[0] == tickets[1] {
		t.Fatalf("both have ticket %d", tickets[0]) // cause
	}
}

func TestBug(t *testing.T)      { run(t, (*office).draw) }
func TestRepaired(t *testing.T) { run(t, (*office).drawRepaired) }
