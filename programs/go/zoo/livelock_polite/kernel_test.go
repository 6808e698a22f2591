// Each takes its own lock, cannot have the other's, lets go and begins again; they never look elsewhere.
package livelock_polite

import (
	"sync"
	"testing"
)

type spoon struct {
	mu    sync.Mutex
	owner int
}

// eat wants both; whoever is hungry keeps the spoon for the other in mind and gives way.
func eat(own, other *spoon, me int, hungry *sync.Map) {
	for {
		own.mu.Lock() // cause
		if _, waits := hungry.Load(1 - me); waits {
			own.mu.Unlock() // cause
			continue
		}
		if other.mu.TryLock() {
			other.mu.Unlock()
			own.mu.Unlock()
			hungry.Delete(me)
			return
		}
		own.mu.Unlock()
	}
}

func eatRepaired(first, second *spoon, me int, hungry *sync.Map) {
	first.mu.Lock()
	second.mu.Lock()
	hungry.Delete(me)
	second.mu.Unlock()
	first.mu.Unlock()
}

func TestBug(t *testing.T) {
	a, b := &spoon{}, &spoon{}
	var hungry sync.Map
	var group sync.WaitGroup
	group.Go(func() { hungry.Store(0, true); eat(a, b, 0, &hungry) })
	group.Go(func() { hungry.Store(1, true); eat(b, a, 1, &hungry) })
	group.Wait()
}

func TestRepaired(t *testing.T) {
	a, b := &spoon{}, &spoon{}
	var hungry sync.Map
	var group sync.WaitGroup
	group.Go(func() { hungry.Store(0, true); eatRepaired(a, b, 0, &hungry) })
	group.Go(func() { hungry.Store(1, true); eatRepaired(a, b, 1, &hungry) })
	group.Wait()
}
