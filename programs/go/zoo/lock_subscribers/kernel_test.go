// A broker sends to subscribers under its read lock; one that leaves needs the write lock, and takes nothing more.
package lock_subscribers

import (
	"sync"
	"testing"
)

type broker struct {
	mu   sync.RWMutex
	subs map[int]chan int
}

func (b *broker) publish(v int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, sub := range b.subs {
		sub <- v // cause
	}
}

func (b *broker) leave(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs, id)
}

func (b *broker) leaveRepaired(id int) {
	b.mu.RLock()
	sub := b.subs[id]
	b.mu.RUnlock()
	left := make(chan struct{})
	go func() {
		for {
			select {
			case <-sub:
			case <-left:
				return
			}
		}
	}()
	b.leave(id)
	close(left)
}

func run(leave func(*broker, int)) {
	b := &broker{subs: map[int]chan int{1: make(chan int)}}
	var group sync.WaitGroup
	group.Go(func() {
		<-b.subs[1]
		leave(b, 1)
	})
	group.Go(func() {
		b.publish(1)
		b.publish(2)
	})
	group.Wait()
}

func TestBug(t *testing.T)      { run((*broker).leave) }
func TestRepaired(t *testing.T) { run((*broker).leaveRepaired) }
