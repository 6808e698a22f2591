// What a deferred call sends is decided when it is deferred, and what a closure sends when it runs.
package anon_defer_argument

import (
	"sync"
	"testing"
)

type step struct{ name string }

func process(steps []step) map[string]int {
	seen := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	var current step
	for _, s := range steps {
		current = s // cause
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			seen[current.name]++ // cause
		})
	}
	group.Wait()
	return seen
}

func processRepaired(steps []step) map[string]int {
	seen := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, s := range steps {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			seen[s.name]++
		})
	}
	group.Wait()
	return seen
}

func TestBug(t *testing.T) {
	process([]step{{"read"}, {"check"}, {"write"}})
}

func TestRepaired(t *testing.T) {
	if len(processRepaired([]step{{"read"}, {"check"}, {"write"}})) != 3 {
		t.Fatal("a step is missing")
	}
}
