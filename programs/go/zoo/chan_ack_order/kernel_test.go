// Two parties wait for the other's acknowledgement first when both begin at the same time.
package chan_ack_order

import (
	"sync"
	"testing"
)

type party struct {
	hello chan int
	ack   chan int
}

// shake says hello and waits for the answer, unless the other has said hello already.
func shake(own, other *party) {
	select {
	case <-own.hello:
		other.ack <- 1
	case other.hello <- 1:
		<-own.ack // cause
	}
}

func shakeRepaired(own, other *party) {
	other.hello <- 1
	<-own.hello
}

func meet(shake func(own, other *party), size int) {
	a := &party{make(chan int, size), make(chan int)}
	b := &party{make(chan int, size), make(chan int)}
	var group sync.WaitGroup
	group.Go(func() { shake(a, b) })
	group.Go(func() { shake(b, a) })
	group.Wait()
}

func TestBug(t *testing.T)      { meet(shake, 1) }
func TestRepaired(t *testing.T) { meet(shakeRepaired, 1) }
