// What is made once is made from something else that is made once, and that asks for the first.
package double_lock_once_again

import (
	"sync"
	"testing"
)

type part struct {
	once sync.Once
	name string
	make func() string
}

func (p *part) get() string {
	p.once.Do(func() { p.name = p.make() }) // cause
	return p.name
}

func run(circle bool) string {
	var config, logger part
	config.make = func() string { return "config of " + logger.get() }
	logger.make = func() string {
		if circle {
			return "logger of " + config.get()
		}
		return "logger"
	}
	var group sync.WaitGroup
	group.Go(func() { config.get() })
	group.Wait()
	return config.get()
}

func TestBug(t *testing.T) { run(true) }

func TestRepaired(t *testing.T) {
	if got := run(false); got != "config of logger" {
		t.Fatal(got)
	}
}
