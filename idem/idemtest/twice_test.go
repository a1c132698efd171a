package idemtest_test

import (
	"context"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
)

func TestTwiceRunsEveryAtomicTwiceAndCallsOnce(t *testing.T) {
	t.Parallel()
	e := idem.New(idemtest.Twice(new(idem.MemoryStore)))
	var atomic, foreign, finish int
	res, err := e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "atomic", func(context.Context, *idem.Tx) (int, error) { atomic++; return 1, nil })
		if err != nil {
			return idem.Response{}, err
		}
		_, err = idem.Foreign(ctx, "foreign", func(context.Context, *idem.Tx) (int, error) { foreign++; return 2, nil })
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
			finish++
			return idem.Response{Status: 201}, nil
		})
	})
	if err != nil || res.Status != 201 || atomic != 2 || foreign != 1 || finish != 2 {
		t.Errorf("%+v, %v; atomic ran %d times, foreign %d, finish %d", res, err, atomic, foreign, finish)
	}
}
