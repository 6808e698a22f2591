// Ends as it is told, after a thousand usages.
package main

import (
	"os"
	"runtime"
	"sync"
	"syscall"
)

func main() {
	var m sync.Mutex
	for range 1000 {
		m.Lock()
		m.Unlock()
	}
	switch os.Args[1] {
	case "exit":
		os.Exit(3)
	case "panic":
		panic("broken")
	case "fatal":
		m.Unlock()
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "leak":
		go func() { select {} }()
		go func() {
			for range 1000 {
				m.Lock()
				m.Unlock()
			}
		}()
	case "finalizer":
		// The collector lets the goroutine go on when nobody has the handle any more.
		type handle struct{ stop chan bool }
		h := &handle{make(chan bool)}
		runtime.SetFinalizer(h, func(h *handle) { close(h.stop) })
		go func(stop chan bool) { <-stop }(h.stop)
	case "spin":
		for {
			m.Lock()
			m.Unlock()
		}
	}
}
