// Ways through functions that healthy runs do not go. A comment names what is wrong with the line; the other
// functions do the same in ways that are right.
package paths

import (
	"errors"
	"sync"
	"testing"
)

var errNo = errors.New("no")

type base struct{ sync.Mutex }

type shop struct {
	base
	stock sync.RWMutex
	bell  sync.Mutex
	open  bool
	items map[string]int
	home  *street
	once  sync.Once
}

type street struct {
	mu    sync.Mutex
	shops []*shop
}

func (s *shop) sell(name string) error {
	s.Lock() // missed-unlock
	switch {
	case !s.open:
		return errNo
	case len(s.items) > 100:
		s.Unlock()
		return errNo
	}
	s.Unlock()
	return nil
}

func (s *shop) sellDeferred(name string) error {
	s.Lock()
	defer func() { s.Unlock() }()
	if !s.open {
		return errNo
	}
	return nil
}

func (s *shop) find(name string) int {
	s.stock.RLock()
	defer s.stock.RUnlock()
	if n, ok := s.items[name]; ok {
		return n
	}
	s.stock.Lock() // double-lock
	s.items[name] = 1
	s.stock.Unlock()
	return 1
}

func (s *shop) findAgain(name string) int {
	s.stock.RLock()
	n, ok := s.items[name]
	s.stock.RUnlock()
	if !ok {
		s.stock.Lock()
		defer s.stock.Unlock()
	}
	return n
}

func (s *shop) ring() {
	s.bell.Lock() // double-lock
	defer s.bell.Unlock()
	if !s.open {
		s.once.Do(func() { ringTwice[int](s, 2) })
	}
}

func ringTwice[T any](s *shop, _ T) {
	for range 2 {
		s.ring()
	}
}

func (s *shop) drop(locked bool) {
	if !locked {
		s.bell.Lock()
		defer s.bell.Unlock()
	}
	s.open = true
}

func (s *shop) dropRight() {
	s.bell.Lock()
	defer s.bell.Unlock()
	s.drop(true)
}

func (s *shop) wait() {
	held := true
	s.home.mu.Lock()
outer:
	for i := 0; ; i++ {
		select {
		default:
			if i > 3 {
				break outer
			}
			s.home.mu.Unlock()
			held = false
		}
		if !held {
			s.home.mu.Lock()
			held = true
		}
	}
	s.home.mu.Unlock()
}

// Whoever has a lock's unlocking method, or its address, may give it back.
func (s *street) hold() (func(), error) {
	s.mu.Lock()
	if len(s.shops) > 9 {
		s.mu.Unlock()
		return nil, errNo
	}
	return s.mu.Unlock, nil
}

func reading(m *sync.RWMutex) {
	r := m.RLocker()
	r.Lock()
	r.Lock()
	r.Unlock()
	r.Unlock()
}

func (s *shop) walk() {
	for it := s; it != nil; {
		it.Lock()
		next := it.next()
		it.Unlock()
		it = next
	}
}

func (s *shop) next() *shop { return nil }

func (s *shop) close() {
	s.stock.RLock()
	defer s.stock.RUnlock()
	if s.items["closed"] > 0 {
		return
	}
	s.home.mu.Lock() // lock-order
	s.home.mu.Unlock()
}

func (s *street) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.shops {
		it.stock.Lock()
		it.items["closed"] = 1
		it.stock.Unlock()
	}
}

func TestNear(t *testing.T) {
	home := &street{}
	s := &shop{open: true, items: map[string]int{"a": 1}, home: home}
	home.shops = []*shop{s}
	if s.sell("a") != nil || s.sellDeferred("a") != nil || s.find("a") != 1 || s.findAgain("a") != 1 {
		t.Fatal("nothing")
	}
	s.ring()
	s.dropRight()
	s.wait()
	if done, err := home.hold(); err == nil {
		done()
	}
	reading(&sync.RWMutex{})
	s.walk()
	tidied := make(chan bool)
	var group sync.WaitGroup
	group.Go(func() {
		home.tidy()
		tidied <- true
	})
	<-tidied
	group.Wait()
}

func TestBeside(t *testing.T) {
	home := &street{}
	s := &shop{open: true, items: map[string]int{"closed": 1}, home: home}
	home.shops = []*shop{s}
	var group sync.WaitGroup
	group.Go(home.tidy)
	group.Go(s.close)
	group.Wait()
}
