// A plain bool tells a worker to stop. The channel beside it orders only the beginning.
package race_stop_flag

import (
	"sync"
	"sync/atomic"
	"testing"
)

type worker struct {
	stop    bool
	stopped atomic.Bool
	rounds  int
}

func (w *worker) run(started chan struct{}) {
	close(started)
	for i := 0; i < 1000 && !w.stop; i++ { // cause
		w.rounds++
	}
}

func (w *worker) runRepaired(started chan struct{}) {
	close(started)
	for i := 0; i < 1000 && !w.stopped.Load(); i++ {
		w.rounds++
	}
}

func TestBug(t *testing.T) {
	w := &worker{}
	started := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { w.run(started) })
	<-started
	w.stop = true // cause
	group.Wait()
}

func TestRepaired(t *testing.T) {
	w := &worker{}
	started := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { w.runRepaired(started) })
	<-started
	w.stopped.Store(true)
	group.Wait()
}
