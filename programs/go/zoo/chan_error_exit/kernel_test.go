// The consumer of a pipeline returns at the first bad record; the producer has more to give.
package chan_error_exit

import "testing"

type record struct{ id, size int }

func produce(records []record, quit chan struct{}) chan record {
	out := make(chan record, 1)
	go func() {
		defer close(out)
		for _, r := range records {
			if quit == nil {
				out <- r // cause
				continue
			}
			select {
			case out <- r:
			case <-quit:
				return
			}
		}
	}()
	return out
}

func total(in chan record, limit *record) (sum int) {
	for r := range in {
		if r.size < 0 || r == *limit {
			return sum
		}
		sum += r.size
	}
	return sum
}

var records = []record{{1, 10}, {2, 20}, {3, -1}, {4, 40}, {5, 50}}

func TestBug(t *testing.T) {
	if total(produce(records, nil), &record{}) != 30 {
		t.Fatal("wrong sum")
	}
}

func TestRepaired(t *testing.T) {
	quit := make(chan struct{})
	defer close(quit)
	if total(produce(records, quit), &record{}) != 30 {
		t.Fatal("wrong sum")
	}
}
