// What is made once asks for the lock that is held by those who come to make it.
package double_lock_once

import (
	"sync"
	"testing"
	"time"
)

type registry struct {
	mu     sync.Mutex
	once   sync.Once
	values map[string]int
}

func (r *registry) fill() {
	r.once.Do(func() { // cause
		r.values = map[string]int{}
		r.get("self")
	})
}

func (r *registry) get(key string) int {
	r.mu.Lock() // cause
	defer r.mu.Unlock()
	if r.values == nil {
		r.fill() // cause
	}
	return r.values[key]
}

func (r *registry) fillRepaired() {
	r.once.Do(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.values = map[string]int{}
	})
}

func (r *registry) getRepaired(key string) int {
	r.fillRepaired()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[key]
}

func run(fill func(), get func(string) int) {
	var group sync.WaitGroup
	group.Go(fill)
	group.Go(func() {
		time.Sleep(100 * time.Microsecond)
		get("a")
	})
	group.Wait()
}

func TestBug(t *testing.T) {
	r := &registry{}
	run(r.fill, r.get)
}

func TestRepaired(t *testing.T) {
	r := &registry{}
	run(r.fillRepaired, r.getRepaired)
}
