// The receiver closes the channel when it has enough; the sender has more.
package misuse_receiver_closes

import (
	"sync"
	"testing"
)

func receive(in chan int, enough int) {
	for range enough {
		<-in
	}
	close(in)
}

func send(out chan int, n int) {
	for i := range n {
		select {
		case out <- i: // cause
		default:
		}
	}
}

func sendRepaired(out chan int, quit chan struct{}, n int) {
	for i := range n {
		select {
		case out <- i:
		case <-quit:
			return
		}
	}
}

func TestBug(t *testing.T) {
	in := make(chan int, 2)
	in <- 0
	var group sync.WaitGroup
	group.Go(func() { receive(in, 1) })
	group.Go(func() { send(in, 3) })
	group.Wait()
}

func TestRepaired(t *testing.T) {
	in, quit := make(chan int, 2), make(chan struct{})
	in <- 0
	var group sync.WaitGroup
	group.Go(func() {
		<-in
		close(quit)
	})
	group.Go(func() { sendRepaired(in, quit, 3) })
	group.Wait()
}
