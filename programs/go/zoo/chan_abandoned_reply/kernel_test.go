// A client asks a server and gives up when it is told to stop; the server's answer has no buffer, and nobody takes it any more.
package chan_abandoned_reply

import "testing"

type server struct{ stop chan struct{} }

func (s *server) compute(key int) int {
	sum := 0
	for i := range 2000 {
		sum += i ^ key
	}
	return sum
}

func (s *server) ask(key int) (int, bool) {
	answer := make(chan int)
	go func() {
		answer <- s.compute(key) // cause
	}()
	select {
	case sum := <-answer:
		return sum, true
	case <-s.stop:
		return 0, false
	}
}

func (s *server) askRepaired(key int) (int, bool) {
	answer := make(chan int, 1)
	go func() {
		answer <- s.compute(key)
	}()
	select {
	case sum := <-answer:
		return sum, true
	case <-s.stop:
		return 0, false
	}
}

func TestBug(t *testing.T) {
	s := &server{stop: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		<-ready
		close(s.stop)
	}()
	close(ready)
	s.ask(7)
}

func TestRepaired(t *testing.T) {
	s := &server{stop: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		<-ready
		close(s.stop)
	}()
	close(ready)
	s.askRepaired(7)
}
