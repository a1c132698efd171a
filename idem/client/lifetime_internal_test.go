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
		reasons := []Reason{}
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
		if !ok || base.n != 1 || !errors.Is(err, ErrExpired) || !errors.Is(err, syscall.ECONNRESET) || !e.Unknown || e.GaveUp != ReasonLifetime {
			t.Errorf("%+v after %d attempts", e, base.n)
		}
		if len(reasons) != 1 || reasons[0] != ReasonLifetime {
			t.Errorf("told %q", reasons)
		}
	})
}
