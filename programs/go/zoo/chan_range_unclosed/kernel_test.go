// Consumers range over a channel that is closed only by a producer that has seen the last item.
package chan_range_unclosed

import (
	"sync"
	"testing"
)

type feed struct {
	items chan int
	mu    sync.Mutex
	left  int
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

func (f *feed) leave() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	return f.left
}

func (f *feed) produce(n int) {
	for i := range n {
		f.items <- i
	}
	// Two that look at the same time both see that the other is there.
	if f.count() == 1 {
		close(f.items)
	}
	f.leave()
}

func (f *feed) produceRepaired(n int) {
	for i := range n {
		f.items <- i
	}
	if f.leave() == 0 {
		close(f.items)
	}
}

func run(produce func(*feed, int)) {
	f := &feed{items: make(chan int, 8), left: 2}
	var group sync.WaitGroup
	group.Go(func() { produce(f, 2) })
	group.Go(func() { produce(f, 2) })
	for range f.items { // cause
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*feed).produce) }
func TestRepaired(t *testing.T) { run((*feed).produceRepaired) }
