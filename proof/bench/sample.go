package main

import (
	"crypto/sha256"
	"errors"
	"math"
	"runtime"
	"slices"
	"time"
)

// op is something that is timed; i is the number of its run.
type op func(i int) error

// Spread is how long something takes, in ns.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func spread(ns []float64) Spread {
	slices.Sort(ns)
	at := func(q float64) float64 { return math.Round(ns[int(q*float64(len(ns)-1))]) }
	return Spread{at(0.5), at(0.99)}
}

// timed is something that times itself, in ns.
type timed func(i int) (ns float64, err error)

// inTurns runs the operations in turns, so that another load of the machine meets all
// of them.
func inTurns(samples int, all ...timed) ([]Spread, error) {
	times := make([][]float64, len(all))
	for s := range samples {
		for k := range all {
			k = (k + s) % len(all) // nobody is always the first
			ns, err := all[k](s)
			if err != nil {
				return nil, err
			}
			times[k] = append(times[k], ns)
		}
	}
	spreads := make([]Spread, len(all))
	for k := range all {
		spreads[k] = spread(times[k])
	}
	return spreads, nil
}

// interleaved times the operations in turns. A sample is the mean of batch runs. before
// comes before each sample, and isn't timed; it may be nil.
func interleaved(samples, batch int, before func(), ops ...op) ([]Spread, error) {
	all := make([]timed, len(ops))
	for k, do := range ops {
		all[k] = func(s int) (float64, error) {
			if before != nil {
				before()
			}
			begun := time.Now()
			for i := range batch {
				if err := do(s*batch + i); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(begun).Nanoseconds()) / float64(batch), nil
		}
	}
	return inTurns(samples, all...)
}

// allocated returns how many objects and bytes a run allocates. Nothing else may run.
func allocated(runs int, do op) (objects, bytes int, _ error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for i := range runs { // pools fill
		if err := do(i); err != nil {
			return 0, 0, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		if err := do(runs + i); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return int(after.Mallocs-before.Mallocs) / runs, int(after.TotalAlloc-before.TotalAlloc) / runs, nil
}

// yardstick is a fixed piece of work: how fast the machine is just now.
func yardstick(int) error {
	if sha256.Sum256(fixed[:]) == ([sha256.Size]byte{}) {
		return errors.New("SHA-256 of zeros is zero")
	}
	return nil
}

var fixed [8 << 10]byte

// elsewhere is 2 ms of other work, which evicts the caches, as the rest of a handler does.
func elsewhere() {
	for begun := time.Now(); time.Since(begun) < 2*time.Millisecond; {
		for range 1000 {
			at = (at + 4096 + 64) % len(memory)
			memory[at]++
		}
	}
}

var (
	memory = make([]byte, 64<<20)
	at     int
)
