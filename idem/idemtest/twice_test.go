package idemtest_test

import (
	"context"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
)

func TestTwiceRunsEveryAtomicTwiceAndCallsOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		callsOut, foreign, responds      bool // responds: the Foreign is the last phase
		runsAtomic, runsCall, runsFinish int
	}{
		"phases":                           {false, true, false, 2, 1, 2},
		"no call":                          {false, false, false, 2, 0, 2},
		"a call responds":                  {false, true, true, 2, 1, 0},
		"CallsOut: phases":                 {true, true, false, 2, 1, 2},
		"CallsOut: a call responds":        {true, true, true, 2, 1, 0},
		"CallsOut: no call, a Finish once": {true, false, false, 2, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := idem.New(idemtest.Twice(new(idem.MemoryStore)), func(o *idem.Options) { o.CallsOut = tt.callsOut })
			var atomic, foreign, finish int
			res, err := e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "atomic", func(context.Context, *idem.Tx) (int, error) { atomic++; return 1, nil })
				if err != nil {
					return idem.Response{}, err
				}
				if tt.foreign {
					_, err = idem.Foreign(ctx, "foreign", func(context.Context, *idem.Tx) (int, error) {
						foreign++
						if tt.responds {
							return 0, idem.Respond(idem.Response{Status: 201})
						}
						return 2, nil
					})
				}
				if err != nil || tt.responds {
					return idem.Response{}, err
				}
				return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
					finish++
					return idem.Response{Status: 201}, nil
				})
			})
			if err != nil || res.Status != 201 || atomic != tt.runsAtomic || foreign != tt.runsCall || finish != tt.runsFinish {
				t.Errorf("%+v, %v; atomic ran %d times, foreign %d, finish %d", res, err, atomic, foreign, finish)
			}
		})
	}
}
