// A manager waits for its workers with the lock held that they need to report.
package lock_group_wait

import (
	"sync"
	"testing"
)

type manager struct {
	mu      sync.Mutex
	reports []int
}

func (m *manager) report(id int) {
	m.mu.Lock()
	m.reports = append(m.reports, id)
	m.mu.Unlock()
}

func (m *manager) flush(group *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	group.Wait() // cause
	m.reports = nil
}

func (m *manager) flushRepaired(group *sync.WaitGroup) {
	group.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reports = nil
}

func run(flush func(*manager, *sync.WaitGroup)) {
	m := &manager{}
	var group sync.WaitGroup
	started := make(chan struct{}, 2)
	for id := range 2 {
		group.Go(func() {
			started <- struct{}{}
			m.report(id)
		})
	}
	<-started
	<-started
	flush(m, &group)
}

func TestBug(t *testing.T)      { run((*manager).flush) }
func TestRepaired(t *testing.T) { run((*manager).flushRepaired) }
