// The answer comes when the caller has given up waiting for it, and nobody receives it any more.
package chan_late_answer

import (
	"errors"
	"testing"
	"time"
)

var errLate = errors.New("late")

func ask(answer chan int, limit time.Duration) (int, error) {
	go func() {
		answer <- 7 // cause
	}()
	select {
	case v := <-answer:
		return v, nil
	case <-time.After(limit):
		return 0, errLate
	}
}

func TestBug(t *testing.T)      { ask(make(chan int), 20*time.Millisecond) }
func TestRepaired(t *testing.T) { ask(make(chan int, 1), 20*time.Millisecond) }
