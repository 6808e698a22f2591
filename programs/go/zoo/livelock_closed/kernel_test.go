// A loop takes the zero value of a closed channel for a job without work, again and again.
package livelock_closed

import "testing"

func drain(jobs chan int, stop chan struct{}) (done int) {
	for {
		select { // cause
		case job := <-jobs:
			if job == 0 {
				continue
			}
			done += job
			if done == 6 {
				close(stop)
			}
		case <-stop:
			return done
		}
	}
}

func drainRepaired(jobs chan int) (done int) {
	for job := range jobs {
		done += job
	}
	return done
}

func feed(jobs chan int, n int) {
	for i := 1; i <= n; i++ {
		select {
		case jobs <- i:
		default: // no room: this one is dropped
		}
	}
	close(jobs)
}

func TestBug(t *testing.T) {
	jobs := make(chan int, 2)
	go feed(jobs, 3)
	drain(jobs, make(chan struct{}))
}

func TestRepaired(t *testing.T) {
	jobs := make(chan int, 2)
	go feed(jobs, 3)
	drainRepaired(jobs)
}
