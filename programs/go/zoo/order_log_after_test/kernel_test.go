// A publisher logs through the test behind its last message: who waits for that message may let the test end before.
package order_log_after_test

import (
	"sync"
	"testing"
)

type logger interface{ Logf(string, ...any) }

type bus struct {
	log         logger
	subscribers []chan int
	publishing  sync.WaitGroup
}

func (b *bus) subscribe() <-chan int {
	subscriber := make(chan int, 1)
	b.subscribers = append(b.subscribers, subscriber)
	return subscriber
}

func (b *bus) publish(value int) {
	b.publishing.Add(1)
	go func() {
		defer b.publishing.Done()
		for i, subscriber := range b.subscribers {
			subscriber <- value
			b.log.Logf("subscriber %d has %d", i, value) // cause
		}
	}()
}

func use(t *testing.T, repaired bool) {
	b := &bus{log: t}
	one, other := b.subscribe(), b.subscribe()
	b.publish(4)
	if <-one+<-other != 8 {
		t.Fatal("a message is lost")
	}
	if repaired {
		b.publishing.Wait()
	}
}

func TestBug(t *testing.T)      { use(t, false) }
func TestRepaired(t *testing.T) { use(t, true) }
