package main

import (
	"context"
	"testing"
	"time"
)

// BenchmarkRequests are the requests of "Processor time with the SDK" and their floors,
// for a profile, or for a count of instructions by valgrind --tool=callgrind.
func BenchmarkRequests(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	fresh, again, err := stubTrios(ctx, recorded(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range []struct {
		name string
		do   op
	}{
		{"new/library", fresh.library},
		{"new/same", fresh.same},
		{"new/smallest", fresh.smallest},
		{"replay/library", again.library},
		{"replay/same", again.same},
		{"replay/smallest", again.smallest},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := one.do(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
