// A Go program: goroutines, stacks that move, panics that are recovered, garbage.
// A right recording: the same output; Go's own functions are not recorded unless they go through C.
package main

import (
	"fmt"
	"sync"
)

func deep(n int) int {
	var room [64]int
	room[n&63] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + room[n&63] - n + 1
}

func caught(n int) (result int) {
	defer func() {
		if r := recover(); r != nil {
			result = r.(int)
		}
	}()
	panic(n)
}

func main() {
	var wait sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 100; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			got := deep(1000+i) + caught(i)
			lock.Lock()
			sum += got
			lock.Unlock()
		}()
	}
	wait.Wait()
	fmt.Println(sum)
}
