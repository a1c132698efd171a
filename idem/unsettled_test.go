package idem_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A call that fails may have had its effect, also if it asked for no key; one that
// certainly had none leaves no doubt.
func TestFailedCallLeavesADoubt(t *testing.T) {
	t.Parallel()
	lost := errors.New("timeout")
	for name, tt := range map[string]struct {
		opts []idem.PhaseOption
		err  error
		want []string
	}{
		"a lost answer":                      {nil, lost, []string{state.AnyCall}},
		"no effect":                          {nil, idem.SafeToRetry(lost), nil},
		"no effect, and it can't come again": {[]idem.PhaseOption{idem.NotIdempotent()}, idem.SafeToRetry(lost), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			_, err := do(t, idem.New(&mem, func(o *idem.Options) { o.CallsOut = true }), func(ctx context.Context) (idem.Response, error) {
				if _, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
					return idem.Response{}, err
				}
				_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, tt.err }, tt.opts...)
				return idem.Response{Status: 201}, err
			})
			if !errors.Is(err, lost) {
				t.Fatal(err)
			}
			if r := onlyRecord(t, &mem); !slices.Equal(r.Doubts, tt.want) || r.DoubtSince.IsZero() != (tt.want == nil) {
				t.Errorf("in doubt: %q since %v, want %q", r.Doubts, r.DoubtSince, tt.want)
			}
		})
	}
}

// Of a body of which a part was read before Middleware, the fingerprint would miss it.
func TestBodyPartlyReadIsRefused(t *testing.T) {
	t.Parallel()
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it runs") }))
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/orders", strings.NewReader("0123456789"))
	r.Header.Set("Idempotency-Key", "k")
	if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An answer that the policy doesn't store is no answer of the operation: its ticket comes
// again.
func TestCompleterDoesntTakeAnUnstoredAnswer(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
		_, err := completes(ctx, r)
		return idem.Response{Status: http.StatusServiceUnavailable}, err
	})
	if r := a.record(t); err == nil || r.State != store.Open {
		t.Errorf("%v, and the record is %q", err, r.State)
	}
}
