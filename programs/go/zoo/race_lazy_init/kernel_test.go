// A connection is made when it is first needed; two may need it first.
package race_lazy_init

import (
	"sync"
	"testing"
)

type conn struct{ id int }

type client struct {
	once sync.Once
	conn *conn
}

func (c *client) get() *conn {
	if c.conn == nil { // cause
		c.conn = &conn{id: 1} // cause
	}
	return c.conn
}

func (c *client) getRepaired() *conn {
	c.once.Do(func() { c.conn = &conn{id: 1} })
	return c.conn
}

func run(get func(*client) *conn) {
	c := &client{}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { _ = get(c).id })
	}
	group.Wait()
}

func TestBug(t *testing.T)      { run((*client).get) }
func TestRepaired(t *testing.T) { run((*client).getRepaired) }
