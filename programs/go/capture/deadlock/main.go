// Two locks in two orders, and the runtime's own detector silenced.
package main

import (
	"os"
	"sync"
)

func main() {
	if len(os.Args) > 1 {
		// A pipe that is read keeps a goroutine in a system call or at the network.
		r, _, _ := os.Pipe()
		go r.Read(make([]byte, 1))
	}
	var a, b sync.Mutex
	first, second := make(chan bool), make(chan bool)
	go func() {
		a.Lock()
		first <- true
		<-second
		b.Lock()
	}()
	b.Lock()
	<-first
	second <- true
	a.Lock()
}
