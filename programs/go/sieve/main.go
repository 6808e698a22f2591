// The prime sieve: a chain of filters, a goroutine each, one for every prime that was found. Prints nanoseconds of
// processor time.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func generate(to chan<- int) {
	for i := 2; ; i++ {
		to <- i
	}
}

func filter(from <-chan int, to chan<- int, prime int) {
	for {
		if i := <-from; i%prime != 0 {
			to <- i
		}
	}
}

func main() {
	primes, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	began := processorTime()
	c := make(chan int)
	go generate(c)
	for range primes {
		prime := <-c
		next := make(chan int)
		go filter(c, next, prime)
		c = next
	}
	fmt.Println("sieve", processorTime()-began)
}
