// A worker hands its result over without looking at the context; who asked has been cancelled and is gone.
package ctx_ignored_send

import (
	"context"
	"testing"
)

func fetch(ctx context.Context, page int) chan int {
	out := make(chan int)
	go func() {
		out <- page * page // cause
	}()
	return out
}

func fetchRepaired(ctx context.Context, page int) chan int {
	out := make(chan int)
	go func() {
		select {
		case out <- page * page:
		case <-ctx.Done():
		}
	}()
	return out
}

func crawl(fetch func(context.Context, int) chan int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := make(chan struct{})
	go func() {
		cancel()
		close(gone)
	}()
	select {
	case <-fetch(ctx, 12):
	case <-ctx.Done():
	}
	<-gone
}

func TestBug(t *testing.T)      { crawl(fetch) }
func TestRepaired(t *testing.T) { crawl(fetchRepaired) }
