// A callback that runs under the registry's lock hands over to a goroutine that asks the registry first.
package lock_callback_channel

import (
	"sync"
	"testing"
)

type registry struct {
	mu    sync.Mutex
	names map[string]int
}

func (r *registry) each(visit func(name string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.names {
		visit(name)
	}
}

func (r *registry) eachRepaired(visit func(name string)) {
	r.mu.Lock()
	names := make([]string, 0, len(r.names))
	for name := range r.names {
		names = append(names, name)
	}
	r.mu.Unlock()
	for _, name := range names {
		visit(name)
	}
}

func (r *registry) get(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name]
}

func run(each func(*registry, func(string))) {
	r := &registry{names: map[string]int{"a": 1, "b": 2, "c": 3}}
	names := make(chan string)
	done := make(chan int)
	go func() {
		sum := 0
		for name := range names {
			sum += r.get(name)
		}
		done <- sum
	}()
	each(r, func(name string) {
		names <- name // cause
	})
	close(names)
	<-done
}

func TestBug(t *testing.T)      { run((*registry).each) }
func TestRepaired(t *testing.T) { run((*registry).eachRepaired) }
