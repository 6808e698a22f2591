package alone

import "testing"

func TestPasses(t *testing.T) {
	c := make(chan int, 1)
	c <- 1
	<-c
}

func TestFails(t *testing.T) {
	t.Fatal("as it should")
}

func TestLeaks(t *testing.T) {
	c := make(chan int)
	go func() { c <- 1 }()
}
