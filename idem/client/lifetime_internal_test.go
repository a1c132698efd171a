package client

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type refusing struct{ n int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.n++
	return nil, syscall.ECONNRESET
}

// A laptop slept or a sandbox was frozen: the wait took a second by the timers
// and two days by the wall clock.
func TestNoRetryAfterASleepThatOutlastedTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base, asleep := &refusing{}, time.Duration(0)
		reasons := []string{}
		tr := New(base, func(o *Options) {
			o.Hooks.Retry = func(context.Context, Event) { asleep = 48 * time.Hour }
			o.Hooks.GaveUp = func(_ context.Context, ev Event) { reasons = append(reasons, ev.Reason) }
		})
		tr.now = func() time.Time { return time.Now().Add(asleep) }
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.RoundTrip(req)
		e, ok := errors.AsType[*Error](err)
		if !ok || base.n != 1 || !errors.Is(err, ErrExpired) || !errors.Is(err, syscall.ECONNRESET) || !e.Unknown || e.GaveUp != reasonLifetime {
			t.Errorf("%+v after %d attempts", e, base.n)
		}
		if len(reasons) != 1 || reasons[0] != reasonLifetime {
			t.Errorf("told %q", reasons)
		}
	})
}

// begun is a journal with a single entry.
type begun struct{ e *Entry }

func (j *begun) Begin(_ context.Context, e Entry) (Entry, bool, error) {
	if j.e != nil {
		return *j.e, true, nil
	}
	j.e = &e
	return e, false, nil
}

func (*begun) Update(context.Context, Entry) error { return nil }

// A machine came up with a clock that is days behind: the key seems new, and the server
// may have forgotten it.
func TestNoRetryBeforeItsOperationBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base, journal := &refusing{}, &begun{}
		send := func(clock time.Duration) error {
			tr := New(base, func(o *Options) { o.Journal, o.MaxRetries = journal, -1 })
			tr.now = func() time.Time { return time.Now().Add(clock) }
			req, err := http.NewRequestWithContext(WithOperation(t.Context(), "order-42"), http.MethodPost, "https://api.test/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tr.RoundTrip(req)
			return err
		}
		for i, step := range []struct {
			later, clock time.Duration
			refused      bool
		}{
			{0, 0, false},
			{time.Second, -2 * time.Second, false}, // as exact as clocks are
			{0, -3*time.Second - 1, true},
			{30 * time.Hour, -48 * time.Hour, true},
		} {
			time.Sleep(step.later) //nolint:forbidigo // virtual
			before := base.n
			err := send(step.clock)
			e, ok := errors.AsType[*Error](err)
			if !ok || errors.Is(err, ErrExpired) != step.refused || (base.n == before) != step.refused || !e.Unknown || e.Key != journal.e.Key {
				t.Errorf("step %d: %+v, sent %d times", i, e, base.n-before)
			}
		}
	})
}
