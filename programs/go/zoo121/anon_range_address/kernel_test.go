// The address of a loop's variable is stored: all stored ones are the same.
package anon_range_address

import (
	"sync"
	"testing"
)

type job struct {
	id   int
	done bool
}

type pool struct {
	group sync.WaitGroup
	jobs  chan *job
}

func (p *pool) work() {
	for j := range p.jobs {
		j.done = true // cause
		p.group.Done()
	}
}

func run(jobs []job, bug bool) {
	p := &pool{jobs: make(chan *job, len(jobs))}
	go p.work()
	go p.work()
	p.group.Add(len(jobs))
	for i, j := range jobs {
		if bug {
			p.jobs <- &j // cause
		} else {
			p.jobs <- &jobs[i]
		}
	}
	p.group.Wait()
	close(p.jobs)
}

func TestBug(t *testing.T)      { run([]job{{id: 1}, {id: 2}, {id: 3}}, true) }
func TestRepaired(t *testing.T) { run([]job{{id: 1}, {id: 2}, {id: 3}}, false) }
