package quota

import (
	"context"
	"testing"
	"time"
)

// lease is the shared buckets of a test.
type lease func(Lot) (Leased, error)

func (fn lease) Lease(_ context.Context, l Lot) (Leased, error) { return fn(l) }

// Nobody leases tokens that another request has leased meanwhile.
func TestRefillOfAFullSupply(t *testing.T) {
	t.Parallel()
	b := New(Limits{}, func(o *Options) {
		o.Shared = lease(func(l Lot) (Leased, error) {
			t.Errorf("leased %+v", l)
			return Leased{Tokens: l.Tokens}, nil
		})
	})
	for left := range int64(2) {
		a := &account{rate: perMinute(8, 8), shared: supply{left: 1 + left, ends: time.Now().Add(lotLasts)}}
		if wait, err := b.refill(t.Context(), a, 1); err != nil || wait != 0 {
			t.Errorf("a wait of %v, %v", wait, err)
		}
	}
}
