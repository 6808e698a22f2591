// A watcher waits for a context that is cancelled only if the work came to its end before the caller looked.
package ctx_never_cancelled

import (
	"context"
	"sync"
	"testing"
)

type job struct {
	mu   sync.Mutex
	done bool
}

func (j *job) finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = true
}

func (j *job) isDone() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done
}

func watch(ctx context.Context) {
	<-ctx.Done() // cause
}

func run(always bool) {
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{}
	go watch(ctx)
	finished := make(chan struct{}, 1)
	go func() {
		finished <- struct{}{}
		j.finish()
	}()
	<-finished
	for range 3 {
		j.isDone()
	}
	if always || j.isDone() {
		cancel()
	}
}

func TestBug(t *testing.T)      { run(false) }
func TestRepaired(t *testing.T) { run(true) }
