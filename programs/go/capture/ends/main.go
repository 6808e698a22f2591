// Ends as it is told, after a thousand usages.
package main

import (
	"os"
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
	case "spin":
		for {
			m.Lock()
			m.Unlock()
		}
	}
}
