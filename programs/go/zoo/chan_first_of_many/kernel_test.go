// Several replicas are asked, the first answer wins, and the others wait for ever to give theirs.
package chan_first_of_many

import "testing"

type replica struct{ id int }

func (r replica) get(key string) int { return r.id * len(key) }

func first(replicas []replica, key string) int {
	answers := make(chan int)
	for _, r := range replicas {
		go func() {
			answers <- r.get(key) // cause
		}()
	}
	return <-answers
}

func firstRepaired(replicas []replica, key string) int {
	answers := make(chan int, len(replicas))
	for _, r := range replicas {
		go func() {
			answers <- r.get(key)
		}()
	}
	return <-answers
}

func TestBug(t *testing.T) {
	if first([]replica{{1}, {2}, {3}}, "name") == 0 {
		t.Fatal("no answer")
	}
}

func TestRepaired(t *testing.T) {
	if firstRepaired([]replica{{1}, {2}, {3}}, "name") == 0 {
		t.Fatal("no answer")
	}
}
