// Three philosophers, three forks, each its left one first.
package abba_three

import (
	"sync"
	"testing"
)

func dine(left, right *sync.Mutex, meals *int) {
	left.Lock()
	right.Lock() // cause
	*meals++
	right.Unlock()
	left.Unlock()
}

func dineRepaired(first, second *sync.Mutex, meals *int) {
	first.Lock()
	second.Lock()
	*meals++
	second.Unlock()
	first.Unlock()
}

func TestBug(t *testing.T) {
	var forks [3]sync.Mutex
	var meals [3]int
	var group sync.WaitGroup
	for i := range forks {
		group.Go(func() { dine(&forks[i], &forks[(i+1)%3], &meals[i]) })
	}
	group.Wait()
}

func TestRepaired(t *testing.T) {
	var forks [3]sync.Mutex
	var meals [3]int
	var group sync.WaitGroup
	for i := range forks {
		group.Go(func() {
			low, high := min(i, (i+1)%3), max(i, (i+1)%3)
			dineRepaired(&forks[low], &forks[high], &meals[i])
		})
	}
	group.Wait()
}
