// Workers count themselves when they begin; the wait may be over before.
package wg_add_inside

import (
	"sync"
	"testing"
)

type batch struct {
	mu      sync.Mutex
	results []int
}

func (b *batch) store(v int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results = append(b.results, v)
}

func (b *batch) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.results)
}

func TestBug(t *testing.T) {
	b := &batch{}
	var group sync.WaitGroup
	started := make(chan struct{}, 3)
	for i := range 3 {
		go func() {
			started <- struct{}{}
			group.Add(1) // cause
			defer group.Done()
			b.store(i)
		}()
	}
	for range 3 {
		<-started
	}
	for range 20 {
		b.len()
	}
	group.Wait()
	if b.len() != 3 {
		t.Fatal("a result is missing")
	}
}

func TestRepaired(t *testing.T) {
	b := &batch{}
	var group sync.WaitGroup
	group.Add(3)
	for i := range 3 {
		go func() {
			defer group.Done()
			b.store(i)
		}()
	}
	group.Wait()
	if b.len() != 3 {
		t.Fatal("a result is missing")
	}
}
