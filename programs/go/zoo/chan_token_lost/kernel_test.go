// A token is taken from a semaphore and, when the item turns out to be taken, not given back.
package chan_token_lost

import (
	"sync"
	"testing"
)

type limiter struct {
	tokens chan struct{}
	mu     sync.Mutex
	taken  map[int]bool
}

func (l *limiter) claim(item int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[item] {
		return false
	}
	l.taken[item] = true
	return true
}

func (l *limiter) isFree(item int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.taken[item]
}

func (l *limiter) handle(item int) {
	if !l.isFree(item) {
		return
	}
	l.tokens <- struct{}{} // cause
	if !l.claim(item) {
		return
	}
	<-l.tokens
}

func (l *limiter) handleRepaired(item int) {
	if !l.isFree(item) {
		return
	}
	l.tokens <- struct{}{}
	defer func() { <-l.tokens }()
	l.claim(item)
}

func run(handle func(*limiter, int)) {
	l := &limiter{tokens: make(chan struct{}, 1), taken: map[int]bool{}}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { handle(l, 1) })
	}
	group.Wait()
	handle(l, 2)
}

func TestBug(t *testing.T)      { run((*limiter).handle) }
func TestRepaired(t *testing.T) { run((*limiter).handleRepaired) }
