// As many results are awaited as there are workers; one that finds nothing to do sends none.
package chan_results_miscounted

import "testing"

func worker(jobs chan int, results chan int) {
	sum, any := 0, false
	for {
		select {
		case job := <-jobs:
			sum += job
			any = true
			continue
		default:
		}
		break
	}
	if any {
		results <- sum
	}
}

func workerRepaired(jobs chan int, results chan int) {
	sum := 0
	for {
		select {
		case job := <-jobs:
			sum += job
			continue
		default:
		}
		break
	}
	results <- sum
}

func run(work func(jobs, results chan int), pause func()) {
	jobs, results := make(chan int, 2), make(chan int)
	jobs <- 1
	go work(jobs, results)
	sum := <-results
	jobs <- 2
	go work(jobs, results)
	go func() {
		pause()
		select {
		case extra := <-jobs: // an impatient helper
			sum += extra
		default:
		}
	}()
	<-results // cause
}

func busy() {
	table := map[int]int{}
	for i := range 3000 {
		table[i%7] += i
	}
}

func TestBug(t *testing.T)      { run(worker, busy) }
func TestRepaired(t *testing.T) { run(workerRepaired, busy) }
