// An unlock that is deferred within a loop comes at the end of the function, not of the round.
package double_lock_defer_in_loop

import (
	"sync"
	"testing"
)

type account struct {
	mu      sync.Mutex
	balance int
}

func settle(accounts []*account) int {
	sum := 0
	for _, a := range accounts {
		a.mu.Lock() // cause
		defer a.mu.Unlock()
		sum += a.balance
	}
	return sum
}

func settleRepaired(accounts []*account) int {
	sum := 0
	for _, a := range accounts {
		a.mu.Lock()
		sum += a.balance
		a.mu.Unlock()
	}
	return sum
}

func run(settle func([]*account) int) {
	first, second := &account{balance: 1}, &account{balance: 2}
	// An account that stands in the list twice is what nobody had thought of.
	settle([]*account{first, second, first})
}

func TestBug(t *testing.T)      { run(settle) }
func TestRepaired(t *testing.T) { run(settleRepaired) }
