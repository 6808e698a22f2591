// A writer logs after the log was closed: nobody waited for it.
package order_log_after_close

import (
	"sync"
	"testing"
)

type log struct {
	lines chan string
	gone  chan struct{}
}

func open() *log {
	l := &log{lines: make(chan string, 4), gone: make(chan struct{})}
	go func() {
		defer close(l.gone)
		for range l.lines {
		}
	}()
	return l
}

func (l *log) close() {
	close(l.lines)
	<-l.gone
}

func TestBug(t *testing.T) {
	l := open()
	begun := make(chan struct{})
	go func() {
		close(begun)
		l.lines <- "bye" // cause
	}()
	<-begun
	var mu sync.Mutex
	for range 100 {
		mu.Lock()
		mu.Unlock()
	}
	l.close()
	open().close()
}

func TestRepaired(t *testing.T) {
	l := open()
	var group sync.WaitGroup
	group.Go(func() { l.lines <- "bye" })
	group.Wait()
	l.close()
}
