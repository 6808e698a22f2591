// A watcher's channel is replaced after it was closed; who holds the old one closes that again.
package misuse_reopened

import (
	"sync"
	"testing"
)

type watcher struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (w *watcher) current() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *watcher) notify() {
	close(w.current()) // cause
	w.mu.Lock()
	w.changed = make(chan struct{})
	w.mu.Unlock()
}

func (w *watcher) notifyRepaired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

func run(notify func(*watcher)) {
	w := &watcher{changed: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(func() { notify(w) })
	group.Go(func() { notify(w) })
	group.Wait()
}

func TestBug(t *testing.T)      { run((*watcher).notify) }
func TestRepaired(t *testing.T) { run((*watcher).notifyRepaired) }
