// A limit is looked at and used up by two atomic operations, between which somebody else comes.
package order_limit_checked

import (
	"sync"
	"sync/atomic"
	"testing"
)

type quota struct {
	used  atomic.Int64
	limit int64
}

func (q *quota) take() bool {
	if q.used.Load() >= q.limit {
		return false
	}
	q.used.Add(1)
	return true
}

func (q *quota) takeRepaired() bool {
	for {
		used := q.used.Load()
		if used >= q.limit {
			return false
		}
		if q.used.CompareAndSwap(used, used+1) {
			return true
		}
	}
}

func run(t *testing.T, take func(*quota) bool) {
	q := &quota{limit: 2}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { take(q) })
	}
	group.Wait()
	if used := q.used.Load(); used != q.limit {
		t.Fatalf("%d of %d", used, q.limit) // cause
	}
}

func TestBug(t *testing.T)      { run(t, (*quota).take) }
func TestRepaired(t *testing.T) { run(t, (*quota).takeRepaired) }
