// An event is published before the listener has registered: it never comes to know.
package order_listener_late

import (
	"sync"
	"testing"
)

type emitter struct {
	mu        sync.Mutex
	listeners []chan int
}

func (e *emitter) listen() chan int {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan int, 1)
	e.listeners = append(e.listeners, c)
	return c
}

func (e *emitter) emit(v int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.listeners {
		c <- v
	}
}

func TestBug(t *testing.T) {
	e := &emitter{}
	begun := make(chan struct{})
	go func() {
		<-begun
		e.emit(1)
	}()
	close(begun)
	<-e.listen() // cause
}

func TestRepaired(t *testing.T) {
	e := &emitter{}
	c := e.listen()
	go e.emit(1)
	<-c
}
