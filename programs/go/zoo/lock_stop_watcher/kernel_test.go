// A watcher keeps its lock while it waits for somebody to take a result or to stop it; stopping takes the lock.
package lock_stop_watcher

import (
	"sync"
	"testing"
)

type watcher struct {
	mu      sync.Mutex
	results chan int
	done    chan struct{}
}

func (w *watcher) send(v int) {
	select { // cause
	case w.results <- v:
	case <-w.done:
	}
}

func (w *watcher) run(n int) {
	for v := range n {
		w.mu.Lock()
		w.send(v)
		w.mu.Unlock()
	}
}

func (w *watcher) runRepaired(n int) {
	for v := range n {
		w.send(v)
	}
}

func (w *watcher) stop() {
	w.mu.Lock() // cause
	defer w.mu.Unlock()
	close(w.done)
}

func run(watch func(*watcher, int)) {
	w := &watcher{results: make(chan int, 1), done: make(chan struct{})}
	go watch(w, 3)
	<-w.results
	w.stop()
}

func TestBug(t *testing.T)      { run((*watcher).run) }
func TestRepaired(t *testing.T) { run((*watcher).runRepaired) }
