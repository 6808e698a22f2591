// Every kind of usage once, one a line; the test knows the lines by the words behind them.
package main

import (
	"context"
	"sync"
	"time"
)

type box[T any] struct {
	sync.Mutex
	value T
}

func (b *box[T]) put(value T) {
	b.Lock()         // embedded lock
	defer b.Unlock() // deferred unlock
	b.value = value
}

func worker(c chan<- int) {
	c <- 1 // send
}

func main() {
	b := &box[int]{}
	b.put(3)
	lock := b.Lock
	lock() // method value
	b.Unlock() // unlock
	c := make(chan int)
	go worker(c) // go
	<-c          // receive
	d := make(chan int, 2)
	d <- 1 // buffered
	select { // two cases
	case c <- 1:
	case <-d:
	}
	select {
	case c <- 1: // default
	default:
	}
	close(d)       // close
	for range d { // range
	}
	var rw sync.RWMutex
	rw.RLock()   // rlock
	rw.RUnlock() // runlock
	rw.Lock()    // write lock
	rw.TryRLock() // tryrlock
	rw.Unlock()  // write unlock
	var locker sync.Locker = rw.RLocker()
	locker.Lock()   // locker
	locker.Unlock() // locker unlock
	var wg sync.WaitGroup
	wg.Add(2)              // add
	go func() { wg.Done() }() // done
	wg.Done()              // second done
	wg.Wait()              // wait
	var once sync.Once
	once.Do(func() {}) // once
	var m sync.Mutex
	cond := sync.NewCond(&m)
	ready := false
	go func() { // signaller
		m.Lock() // signaller lock
		ready = true
		cond.Signal() // signal
		m.Unlock() // signaller unlock
	}()
	m.Lock() // cond lock
	for !ready {
		cond.Wait() // cond wait
	}
	m.Unlock() // cond unlock
	cond.Broadcast() // broadcast
	m.TryLock() // trylock
	time.Sleep(time.Microsecond) // sleep
	ctx, cancel := context.WithCancel(context.Background())
	go cancel() // cancel
	<-ctx.Done() // done context
}
