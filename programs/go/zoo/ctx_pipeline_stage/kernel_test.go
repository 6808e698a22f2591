// The first stage of a pipeline listens to the context, the second one does not.
package ctx_pipeline_stage

import (
	"context"
	"testing"
)

func numbers(ctx context.Context) chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		for i := 0; ; i++ {
			select {
			case out <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func squares(in chan int) chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		for i := range in {
			out <- i * i // cause
		}
	}()
	return out
}

func squaresRepaired(ctx context.Context, in chan int) chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		for i := range in {
			select {
			case out <- i * i:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func TestBug(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := squares(numbers(ctx))
	<-out
	cancel()
}

func TestRepaired(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := squaresRepaired(ctx, numbers(ctx))
	<-out
	cancel()
}
