// With `stuck` main waits for ever while others are never at rest; else it passes a value round with them for ever.
package main

import (
	"os"
	"time"
)

func main() {
	ring := make([]chan int, 8)
	for i := range ring {
		ring[i] = make(chan int)
	}
	for i := range ring[1:] {
		go func() {
			for v := range ring[i] {
				ring[i+1] <- v + 1
			}
		}()
	}
	go func() {
		for range time.Tick(time.Millisecond) {
		}
	}()
	last := ring[len(ring)-1]
	if len(os.Args) > 1 && os.Args[1] == "stuck" {
		<-make(chan int)
	}
	for v := 0; ; v = <-last {
		ring[0] <- v
	}
}
