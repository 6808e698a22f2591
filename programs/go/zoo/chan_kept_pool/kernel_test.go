// A pool that the package keeps for good, and a caller that nobody answers. The pool's workers, idle at the end, are no bug.
package chan_kept_pool

import (
	"sync"
	"testing"
)

type task struct {
	n     int
	reply chan int
}

var (
	tasks = make(chan task)
	start sync.Once
	// A goroutine that is there before any test, and is asked for numbers.
	numbers = make(chan int)
)

func init() {
	go func() {
		for n := 0; ; n++ {
			numbers <- n
		}
	}()
}

func submit(it task) {
	start.Do(func() {
		for range 3 {
			go func() {
				for it := range tasks {
					if it.n >= 0 {
						it.reply <- it.n * it.n
					}
				}
			}()
		}
	})
	tasks <- it
}

func run(t *testing.T, last int) {
	for _, n := range []int{<-numbers, 3, last} {
		reply := make(chan int)
		submit(task{n, reply})
		done := make(chan int, 1)
		go func() { done <- <-reply }() // cause
		if n >= 0 && <-done != n*n {
			t.Error("no square")
		}
	}
}

func TestBug(t *testing.T)      { run(t, -1) }
func TestRepaired(t *testing.T) { run(t, 5) }
