// Two anonymous functions assign to the same captured variable.
package anon_shared_error

import (
	"errors"
	"sync"
	"testing"
)

func save(id int) error {
	if id < 0 {
		return errors.New("negative")
	}
	return nil
}

func all(ids []int) error {
	var err error
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			err = save(id) // cause
		})
	}
	group.Wait()
	return err
}

func allRepaired(ids []int) error {
	results := make([]error, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			results[i] = save(id)
		})
	}
	group.Wait()
	return errors.Join(results...)
}

func TestBug(t *testing.T) {
	if err := all([]int{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
}

func TestRepaired(t *testing.T) {
	if err := allRepaired([]int{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
}
