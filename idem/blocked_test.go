package idem_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// version1 commits its first phase and fails in its second.
func version1(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("down") })
	return idem.Response{}, err
}

// repaired is version1 without the failure.
func repaired(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) }

// refusals are versions whose phases don't fit the record of version1, or can
// never be committed.
var refusals = map[string]struct {
	fn   func(context.Context) (idem.Response, error)
	want error
}{
	"another phase comes first": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "zero", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrPhaseOrder},
	"fewer phases": {func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }, idem.ErrPhaseOrder},
	"a result of another type": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) ([]string, error) { return nil, nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrResult},
	"a result that can't be stored": {func(ctx context.Context) (idem.Response, error) {
		if _, err := completes(ctx, nil); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (float64, error) { return math.NaN(), nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrResult},
	"its error is swallowed": {func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "zero", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, errors.New("something went wrong")
	}, idem.ErrPhaseOrder},
}

// An operation that its program refuses waits for people from that moment on, is
// open for a rollback, and no longer waits once it continues.
func TestRefusedWaitsForPeople(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals {
		for how, resumable := range map[string]bool{"resumable": true, "not resumable": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				var told []idem.Event
				a := accepting(func(o *idem.Options) {
					o.Resumable = resumable
					o.Hooks.Blocked = func(_ context.Context, e idem.Event) { told = append(told, e) }
				})
				_, _ = do(t, a.engine, version1)
				if r := a.record(t); r.Blocked || len(told) != 0 {
					t.Fatalf("blocked %v, told %v, by an error that goes away", r.Blocked, told)
				}
				for n := range 2 { // the client retries at once: Blocked is reported again, and the operation still waits
					_, _ = do(t, a.engine, refusal.fn)
					r := a.record(t)
					if !r.Blocked || r.State != store.Open || r.Keep != store.KeepOpen || len(told) != n+1 || !errors.Is(told[n].Err, refusal.want) {
						t.Fatalf("blocked %v, state %q, keep %q, told %v", r.Blocked, r.State, r.Keep, told)
					}
					if cause := redact.Error(told[n].Err); r.LastErr == "" || r.LastErr != cause || told[n].Record == "" || told[n].ID != r.ID {
						t.Errorf("last error %q, told %+v", r.LastErr, told[n])
					}
				}
				if res, err := do(t, a.engine, repaired); err != nil || res.Status != 201 {
					t.Fatalf("after the rollback %+v, %v", res, err)
				}
				if r := a.record(t); r.Blocked || r.State != store.Done {
					t.Errorf("blocked %v, state %q", r.Blocked, r.State)
				}
			})
		}
	}
}

// The mark disappears with the first sign that the operation continues, and stays
// while an attempt has only begun.
func TestBlockedUntilItGoesOn(t *testing.T) {
	t.Parallel()
	refuse := refusals["another phase comes first"].fn
	for name, tt := range map[string]struct {
		fn      func(context.Context, *testing.T, *abandoned) (idem.Response, error)
		blocked bool
	}{
		"an attempt that has begun": {func(_ context.Context, t *testing.T, a *abandoned) (idem.Response, error) {
			t.Helper()
			if !a.record(t).Blocked {
				t.Error("not blocked while it is not known whether it goes on")
			}
			return idem.Response{}, errors.New("down")
		}, false},
		"a phase": {func(ctx context.Context, t *testing.T, a *abandoned) (idem.Response, error) {
			t.Helper()
			if _, err := completes(ctx, nil); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 2, nil })
			if a.record(t).Blocked {
				t.Error("blocked though a phase was committed")
			}
			return idem.Response{}, err
		}, false},
		"given up": {func(ctx context.Context, t *testing.T, _ *abandoned) (idem.Response, error) {
			t.Helper()
			if _, err := completes(ctx, nil); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Foreign(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("timeout") }, idem.NotIdempotent())
			return idem.Response{}, err
		}, false},
		"refused again": {func(ctx context.Context, _ *testing.T, _ *abandoned) (idem.Response, error) { return refuse(ctx) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			_, _ = do(t, a.engine, version1)
			_, _ = do(t, a.engine, refuse)
			_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return tt.fn(ctx, t, a) })
			if r := a.record(t); r.Blocked != tt.blocked {
				t.Errorf("blocked %v, state %q: %s", r.Blocked, r.State, r.LastErr)
			}
		})
	}
	t.Run("settled", func(t *testing.T) {
		t.Parallel()
		a := accepting(func(o *idem.Options) { o.MaxTries = 1 })
		_, _ = do(t, a.engine, version1)
		for range 2 {
			a.clock.Advance(time.Hour)
			_ = a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return refuse(ctx) })
		}
		if r := a.record(t); r.State != store.Stuck || r.Blocked {
			t.Fatalf("state %q, blocked %v", r.State, r.Blocked)
		}
		if err := a.engine.Settle(t.Context(), a.record(t).PK, idem.Settlement{}); err != nil {
			t.Fatal(err)
		}
		if r := a.record(t); r.Blocked || r.State != store.Open {
			t.Errorf("blocked %v, state %q", r.Blocked, r.State)
		}
	})
}

// A freed key waits for no one, whatever mistake its program made.
func TestFreedIsNotBlocked(t *testing.T) {
	t.Parallel()
	a := accepting(func(o *idem.Options) {
		o.Resumable = false
		o.Hooks.Blocked = func(_ context.Context, e idem.Event) { t.Errorf("told %+v", e) }
	})
	_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (float64, error) { return math.NaN(), nil })
		return idem.Response{}, err
	})
	if r := a.record(t); r.Blocked || r.Keep != store.KeepFreed {
		t.Errorf("blocked %v, keep %q", r.Blocked, r.Keep)
	}
}
