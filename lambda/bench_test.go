package lambda_test

import (
	"context"
	"strconv"
	"testing"
	"time"
)

// What wrapping costs, without the store's calls: decode, claim, run, finish,
// encode; then the same as a replay.
func BenchmarkInvoke(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, s := range []source{httpAPI, rest} {
		b.Run(s.name+"/new", func(b *testing.B) {
			h := s.wrap(anEngine(), created)
			payloads := make([][]byte, 0, 1<<16)
			for i := range cap(payloads) {
				payloads = append(payloads, s.payload(b, newCall(strconv.Itoa(i))))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i == len(payloads) { // keys are used up: begin anew
					h, i = s.wrap(anEngine(), created), 0
				}
				if _, err := h.Invoke(ctx, payloads[i]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
		b.Run(s.name+"/replay", func(b *testing.B) {
			h := s.wrap(anEngine(), created)
			payload := s.payload(b, newCall("k"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Invoke(ctx, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
