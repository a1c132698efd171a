package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A handler's context that is used after the handler has returned is not a nested
// call.
func TestContextThatOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	var kept context.Context
	_, err := engine.Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
		kept = context.WithoutCancel(ctx)
		return answers(201)(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := engine.Do(kept, request, never(t)); err != nil || !res.Replayed {
		t.Errorf("got %+v, %v; want a replay", res, err)
	}
}

// Inside of an operation the same request passes, and another request under the key is
// refused: it would run unprotected at every attempt. The refusal is an *Error, as
// everywhere.
func TestOperationInsideItself(t *testing.T) {
	t.Parallel()
	other, between := request, request
	other.Body, between.Key = []byte("another"), "between"
	observe := func(o *idem.Options) { callertest.Anybody(o); o.Mode = idem.ModeObserve }
	fails := func(o *idem.Options) {
		o.Fingerprint.FuncName, o.Fingerprint.Func = "f", func(r *idem.Request) ([]byte, error) {
			if string(r.Body) == string(other.Body) {
				return nil, errDown
			}
			return r.Body, nil
		}
	}
	for name, tc := range map[string]struct {
		inner   idem.Request
		between bool // another operation is in between
		opt     func(*idem.Options)
		want    error
		runs    int
	}{
		"the same":              {request, false, callertest.Anybody, nil, 1},
		"another":               {other, false, callertest.Anybody, idem.ErrMismatch, 0},
		"another, deeper":       {other, true, callertest.Anybody, idem.ErrMismatch, 0},
		"another, and observed": {other, false, observe, nil, 1},
		"one without a print":   {other, false, fails, idem.ErrIncomparable, 0},
	} {
		e, runs := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.opt), 0
		var got error
		do := func(ctx context.Context) (idem.Response, error) {
			_, got = e.Do(ctx, tc.inner, func(context.Context) (idem.Response, error) { runs++; return idem.Response{}, nil })
			return idem.Response{Status: 201}, nil
		}
		if _, err := e.Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			if !tc.between {
				return do(ctx)
			}
			res, err := e.Do(ctx, between, do)
			return res.Response, err
		}); err != nil || !errors.Is(got, tc.want) || runs != tc.runs {
			t.Errorf("%s: %v; inside %v and %d runs, want %v and %d", name, err, got, runs, tc.want, tc.runs)
		}
		if _, ours := errors.AsType[*idem.Error](got); ours != (tc.want != nil) || errors.Is(got, idem.ErrRequest) {
			t.Errorf("%s: inside %T %[2]v, want an *Error", name, got)
		}
	}
}

// The inner one of two wrappers leaves the key to the outer one, and says nothing of it.
func TestInnerWrapperSaysNothingOfTheKey(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	_, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, keyed("k"), answers(201))
		if !res.Passed || res.Status != 201 || res.Header != nil {
			t.Errorf("the inner wrapper answers %+v, %v", res, err)
		}
		return res.Response, err
	})
	if err != nil {
		t.Error(err)
	}
}

// A request without a key passes inside of its own wrapper's completed operation, and nowhere
// else: neither in another engine's nor in one that its client runs nor after its end.
func TestKeylessPassesInItsOwnOperationOnly(t *testing.T) {
	t.Parallel()
	keyless := idem.Request{Method: "POST", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}
	named, headed := keyless, keyless
	named.Key = "its-own"
	headed.Header = http.Header{idem.KeyHeader: {"its-own"}}
	a := abandon(t)
	a.leaseOver()
	other := idem.New(&a.mem, callertest.Anybody)
	var over context.Context
	err := a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
		over = context.WithoutCancel(ctx)
		if res, err := other.Serve(ctx, keyless, never(t)); err != nil || res.Status != 400 {
			t.Errorf("another engine: %+v, %v", res, err)
		}
		for i, own := range []idem.Request{named, headed} {
			if res, err := a.engine.Serve(ctx, own, answers(201)); err != nil || res.Passed || res.Replayed != (i == 1) {
				t.Errorf("with a key of its own: %+v, %v", res, err)
			}
		}
		return completes(ctx, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := a.engine.Serve(over, keyless, never(t)); err != nil || res.Status != 400 {
		t.Errorf("after its end: %+v, %v", res, err)
	}
	_, err = do(t, other, func(ctx context.Context) (idem.Response, error) {
		if res, err := other.Serve(ctx, keyless, never(t)); err != nil || res.Status != 400 {
			t.Errorf("run by its client: %+v, %v", res, err)
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil && !errors.Is(err, idem.ErrPhaseOrder) {
		t.Error(err)
	}
}

// A request that passes hands its verified sender on to the operations in its handler; one
// without a sender leaves them that of its context.
func TestPassHandsTheSenderOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ outer, own, want string }{
		"its own": {"", "jane", "jane"}, "of its context": {"bob", "", "bob"}, "its own first": {"bob", "jane", "jane"},
	} {
		var mem idem.MemoryStore
		e := idem.New(&mem, callertest.Anybody)
		ctx := t.Context()
		if tt.outer != "" {
			ctx = idem.WithSender(ctx, &idem.Request{Tenant: tt.outer})
		}
		_, err := e.Serve(ctx, idem.Request{Method: "GET", Tenant: tt.own}, func(ctx context.Context) (idem.Response, error) {
			res, err := e.Do(ctx, request, answers(201))
			return res.Response, err
		})
		if err != nil || one(&mem).Tenant != tt.want {
			t.Errorf("%s: %v, the record is of the tenant %q", name, err, one(&mem).Tenant)
		}
	}
}

// What a handler responds in an inner wrapper is an error there: the outer one answers.
func TestRespondInAnInnerWrapper(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	res, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, keyed("k"), responds(402))
		if err == nil || !res.Passed {
			t.Errorf("inside: %+v, %v", res, err)
		}
		return res.Response, err
	})
	if err != nil || res.Status != 402 || res.Expires.IsZero() {
		t.Errorf("%+v, %v", res, err)
	}
}

// Do takes the tenant of its context, so that a handler's own operations are no other
// tenant's.
func TestDoTakesItsContextsTenant(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	of := func(tenant string) context.Context {
		return idem.WithSender(t.Context(), &idem.Request{Tenant: tenant})
	}
	own := request
	own.Tenant = "a"
	for i, tc := range []struct {
		tenant   string
		r        idem.Request
		replayed bool
	}{{"a", request, false}, {"b", request, false}, {"", request, false}, {"b", request, true}, {"b", own, true}} {
		if res, err := e.Do(of(tc.tenant), tc.r, answers(201)); err != nil || res.Replayed != tc.replayed {
			t.Errorf("call %d: %+v, %v", i, res, err)
		}
	}
}

// An engine that leaves a request to a handler says nothing of its key if another
// engine inside of the handler has protected the request.
func TestAnInnerEngineIsNotIgnored(t *testing.T) {
	t.Parallel()
	inner := idem.New(new(idem.MemoryStore), callertest.Anybody)
	off := idem.New(nil, func(o *idem.Options) { o.Mode = idem.ModeOff })
	watching := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for name, outer := range map[string]*idem.Engine{"disabled": off, "watching": watching} {
		for i, want := range []string{"", "true"} {
			r := ask(t, outer.Middleware(inner.Middleware(created)), "POST", name, "")
			if r.Header.Get("Idempotency-Status") != "" || r.Header.Get(idem.ReplayedHeader) != want || r.Header.Get(idem.KeyHeader) != name {
				t.Errorf("%s, request %d through two middlewares: %v", name, i, r.Header)
			}
		}
		if r := ask(t, outer.Middleware(off.Middleware(created)), "POST", name, ""); r.Header.Get("Idempotency-Status") != "ignored" {
			t.Errorf("%s, around an engine that ignores the key too: %v", name, r.Header)
		}
		key := keyed(name + " in a handler")
		key.Header = http.Header{idem.KeyHeader: {name + "-in-a-handler"}}
		res, err := outer.Serve(t.Context(), key, func(ctx context.Context) (idem.Response, error) {
			res, err := off.Serve(ctx, key, func(ctx context.Context) (idem.Response, error) {
				res, err := inner.Serve(ctx, key, func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
				return res.Response, err
			})
			return res.Response, err
		})
		if err != nil || res.Header.Get("Idempotency-Status") != "" || res.Header.Get(idem.KeyHeader) == "" {
			t.Errorf("%s, through three handlers: %+v, %v", name, res, err)
		}
	}
}
