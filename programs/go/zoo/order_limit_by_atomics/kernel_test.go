// A limit is looked at and raised in two steps, each atomic: no data race, but more come in than may.
package order_limit_by_atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

type limiter struct {
	open, refused atomic.Int64
	most          int64
	repaired      bool
}

func (l *limiter) enter() bool {
	if l.repaired {
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			l.refused.Add(1)
			return false
		}
		return true
	}
	if l.open.Load() >= l.most {
		l.refused.Add(1)
		return false
	}
	l.open.Add(1)
	return true
}

func admit(t *testing.T, repaired bool) {
	l := &limiter{most: 1, repaired: repaired}
	var inside atomic.Int64
	var sessions sync.WaitGroup
	for range 3 {
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			if !l.enter() {
				return
			}
			if inside.Add(1) > l.most {
				t.Error("one session too many") // cause
			}
			inside.Add(-1)
			l.open.Add(-1)
		}()
	}
	sessions.Wait()
}

func TestBug(t *testing.T)      { admit(t, false) }
func TestRepaired(t *testing.T) { admit(t, true) }
