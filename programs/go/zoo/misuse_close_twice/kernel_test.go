// Whoever sees an error closes the connection's channel; two may see one at the same time.
package misuse_close_twice

import (
	"sync"
	"testing"
)

type conn struct {
	mu     sync.Mutex
	dead   bool
	once   sync.Once
	closed chan struct{}
}

func (c *conn) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

func (c *conn) fail() {
	if c.isDead() {
		return
	}
	close(c.closed) // cause
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

func (c *conn) failRepaired() {
	c.once.Do(func() { close(c.closed) })
}

func run(fail func(*conn)) {
	c := &conn{closed: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(func() { fail(c) })
	group.Go(func() { fail(c) })
	group.Wait()
	<-c.closed
}

func TestBug(t *testing.T)      { run((*conn).fail) }
func TestRepaired(t *testing.T) { run((*conn).failRepaired) }
