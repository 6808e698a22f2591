// Each worker signals the channel of its number, and all have the number of the last.
package anon_loop_variable

import "testing"

func run(n int, bug bool) {
	done := make([]chan struct{}, n)
	for i := range done {
		done[i] = make(chan struct{}, n)
	}
	for i := 0; i < n; i++ { // cause
		if bug {
			go func() {
				done[i%n] <- struct{}{} // cause
			}()
			continue
		}
		i := i
		go func() {
			done[i%n] <- struct{}{}
		}()
	}
	for i := range done {
		<-done[i] // cause
	}
}

func TestBug(t *testing.T)      { run(2, true) }
func TestRepaired(t *testing.T) { run(2, false) }
