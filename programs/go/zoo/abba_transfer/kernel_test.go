// Money goes both ways between two accounts, each locked in the order of the transfer.
package abba_transfer

import (
	"sync"
	"testing"
)

type account struct {
	id      int
	mu      sync.Mutex
	balance int
}

func transfer(from, to *account, amount int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock() // cause
	defer to.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

func transferRepaired(from, to *account, amount int) {
	first, second := from, to
	if second.id < first.id {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

func run(transfer func(from, to *account, amount int)) {
	a, b := &account{id: 1}, &account{id: 2}
	var group sync.WaitGroup
	group.Go(func() { transfer(a, b, 10) })
	group.Go(func() { transfer(b, a, 5) })
	group.Wait()
}

func TestBug(t *testing.T)      { run(transfer) }
func TestRepaired(t *testing.T) { run(transferRepaired) }
