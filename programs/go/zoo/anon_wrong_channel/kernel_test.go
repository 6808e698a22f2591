// A closure sends to a variable that the loop has meanwhile set to the next channel.
package anon_wrong_channel

import "testing"

func fan(n int) []chan int {
	channels := make([]chan int, 0, n)
	var c chan int
	for i := range n {
		c = make(chan int, n) // cause
		channels = append(channels, c)
		go func() {
			c <- i // cause
		}()
	}
	return channels
}

func fanRepaired(n int) []chan int {
	channels := make([]chan int, 0, n)
	for i := range n {
		c := make(chan int, n)
		channels = append(channels, c)
		go func() {
			c <- i
		}()
	}
	return channels
}

func TestBug(t *testing.T) {
	for _, c := range fan(2) {
		<-c
	}
}

func TestRepaired(t *testing.T) {
	for _, c := range fanRepaired(2) {
		<-c
	}
}
