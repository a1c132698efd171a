package storetest

import (
	"sync"
)

// Together calls f(0) to f(n-1) in n goroutines that start at the same moment. It
// returns when all calls are done.
func Together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
