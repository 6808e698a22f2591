// An observer is told under the model's lock and takes its own; drawing takes the two the other way round.
package abba_callback

import (
	"sync"
	"testing"
)

type model struct {
	mu       sync.Mutex
	value    int
	observer *view
}

type view struct {
	mu    sync.Mutex
	shown int
	model *model
}

func (m *model) set(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = v
	m.observer.mu.Lock() // cause
	m.observer.shown = v
	m.observer.mu.Unlock()
}

func (m *model) setRepaired(v int) {
	m.mu.Lock()
	m.value = v
	m.mu.Unlock()
	m.observer.mu.Lock()
	m.observer.shown = v
	m.observer.mu.Unlock()
}

func (v *view) draw() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.model.mu.Lock() // cause
	v.shown = v.model.value
	v.model.mu.Unlock()
}

func run(set func(*model, int)) {
	m, v := &model{}, &view{}
	m.observer, v.model = v, m
	var group sync.WaitGroup
	group.Go(func() { set(m, 3) })
	group.Go(v.draw)
	group.Wait()
}

func TestBug(t *testing.T)      { run((*model).set) }
func TestRepaired(t *testing.T) { run((*model).setRepaired) }
