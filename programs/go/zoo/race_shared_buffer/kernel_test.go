// Both output streams of a command are copied into one buffer at the same time: the accesses are in the standard library.
package race_shared_buffer

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
)

// both has no ReadFrom, so that io.Copy writes what it reads.
type both struct{ io.Writer }

type locked struct {
	mu sync.Mutex
	to io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

func copies(to io.Writer) {
	var group sync.WaitGroup
	for _, text := range []string{"out\n", "err\n"} {
		group.Go(func() {
			io.Copy(both{to}, io.LimitReader(strings.NewReader(text), 9)) // cause
		})
	}
	group.Wait()
}

func TestBug(t *testing.T) {
	var buffer bytes.Buffer
	copies(&buffer)
}

func TestRepaired(t *testing.T) {
	var buffer bytes.Buffer
	copies(&locked{to: &buffer})
}
