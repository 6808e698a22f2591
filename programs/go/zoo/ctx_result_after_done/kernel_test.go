// The caller sees the cancellation and then waits for the result all the same; the worker may have seen it, too.
package ctx_result_after_done

import (
	"context"
	"testing"
)

func work(ctx context.Context, result chan int) {
	select {
	case result <- 42:
	case <-ctx.Done():
	}
}

func call(ctx context.Context) int {
	result := make(chan int)
	go work(ctx, result)
	select {
	case v := <-result:
		return v
	case <-ctx.Done():
		return <-result // cause
	}
}

func callRepaired(ctx context.Context) int {
	result := make(chan int)
	go work(ctx, result)
	select {
	case v := <-result:
		return v
	case <-ctx.Done():
		return 0
	}
}

func run(call func(context.Context) int) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		cancel()
		close(done)
	}()
	call(ctx)
	<-done
}

func TestBug(t *testing.T)      { run(call) }
func TestRepaired(t *testing.T) { run(callRepaired) }
