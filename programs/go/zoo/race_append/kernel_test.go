// Results are appended by all workers.
package race_append

import (
	"sync"
	"testing"
)

func collect(n int) []int {
	var results []int
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			results = append(results, i*i) // cause
		})
	}
	group.Wait()
	return results
}

func collectRepaired(n int) []int {
	results := make(chan int, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results <- i * i })
	}
	group.Wait()
	close(results)
	var all []int
	for r := range results {
		all = append(all, r)
	}
	return all
}

func TestBug(t *testing.T)      { collect(3) }
func TestRepaired(t *testing.T) { collectRepaired(3) }
