// Package clocked has tests whose order of usages hangs on the clock, and on how long work takes beside it.
package clocked

import (
	"context"
	"sync"
	"testing"
	"time"
)

var sink int

func work(rounds int) {
	for i := range rounds {
		sink += i % 7
	}
}

// Eight sleep for nearly equal times, again and again, and take a lock.
func TestSleepers(t *testing.T) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var order []int
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := range 5 {
				time.Sleep(time.Duration(2000+i*100+k*37) * time.Microsecond)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}
		}()
	}
	all.Wait()
}

// Deadlines beside work that takes about as long.
func TestDeadlines(t *testing.T) {
	for range 6 {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		done := make(chan int)
		go func() {
			for range 5 {
				work(900_000)
				select {
				case <-ctx.Done():
					return
				default:
				}
			}
			select {
			case done <- 1:
			case <-ctx.Done():
			}
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
		cancel()
	}
}

// A ticker beside somebody who has work done again and again.
func TestTicker(t *testing.T) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	results := make(chan int)
	stop := make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			work(300_000)
			select {
			case results <- i:
			case <-stop:
				close(results)
				return
			}
		}
	}()
	for ticks := 0; ticks < 10; {
		select {
		case <-tick.C:
			ticks++
		case <-results:
		}
	}
	close(stop)
	for range results {
	}
}

// How many tries there are until the answer comes is the clock's.
func TestRetries(t *testing.T) {
	answer := make(chan int, 1)
	var mu sync.Mutex
	tries := 0
	go func() {
		time.Sleep(4 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		answer <- tries
	}()
	for range 20 {
		mu.Lock()
		tries++
		mu.Unlock()
		select {
		case <-answer:
			return
		case <-time.After(500 * time.Microsecond):
		}
		work(50_000)
	}
}
