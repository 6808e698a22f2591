// A worker that finds the queue closed waits for all workers, and is one of them.
package wg_waits_for_itself

import (
	"sync"
	"testing"
)

type crew struct {
	group sync.WaitGroup
	mu    sync.Mutex
	last  bool
}

func (c *crew) isLast() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.last
	c.last = true
	return was
}

func (c *crew) work(report chan int) {
	defer c.group.Done()
	if c.isLast() {
		c.group.Wait() // cause
		report <- 1
	}
}

func (c *crew) workRepaired(report chan int) {
	last := c.isLast()
	c.group.Done()
	if last {
		c.group.Wait()
		report <- 1
	}
}

func run(work func(*crew, chan int)) {
	c := &crew{}
	report := make(chan int, 1)
	c.group.Add(2)
	go work(c, report)
	go work(c, report)
	<-report
}

func TestBug(t *testing.T)      { run((*crew).work) }
func TestRepaired(t *testing.T) { run((*crew).workRepaired) }
