package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
)

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
	err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
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

// A key is made for a request without one, but neither for a part of an operation nor for a
// source that repeats its requests: each repetition would be another operation.
func TestKeyIsMade(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
	keyless := idem.Request{Method: "POST", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}
	res, err := e.Serve(t.Context(), keyless, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, keyless, answers(201))
		if err != nil || !res.Passed || len(mem.Records()) != 1 {
			t.Errorf("inside: %+v, %v, %d records", res, err, len(mem.Records()))
		}
		return res.Response, err
	})
	if err != nil || res.Status != 201 || len(res.Header.Get(idem.KeyHeader)) != 26 || len(mem.Records()) != 1 {
		t.Errorf("%+v, %v, %d records", res, err, len(mem.Records()))
	}
	repeated := keyless
	repeated.Redelivered = true
	if res, err := e.Serve(t.Context(), repeated, never(t)); err != nil || res.Status != 400 {
		t.Errorf("repeated: %+v, %v", res, err)
	}
}

// Whoever finds the key elsewhere finds no other keys than the header may have.
func TestKeyFoundElsewhereIsChecked(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"a-b": 201, "a b": 400, "a\nb": 400} {
		r := request
		r.Key = key
		if res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Serve(t.Context(), r, answers(201)); err != nil || res.Status != want {
			t.Errorf("%q: %+v, %v", key, res, err)
		}
	}
}

// A request whose key is optional is observed without one too: that is what is to be found out.
func TestObserveOfAnOptionalKey(t *testing.T) {
	t.Parallel()
	var o observed
	e := o.engine(&o.mem, callertest.Anybody, func(o *idem.Options) { o.KeyOptionalOn = []string{"POST"} })
	if _, err := e.Serve(t.Context(), idem.Request{Method: "POST"}, answers(201)); err != nil || len(o.told) != 1 || !errors.Is(o.told[0], idem.ErrKeyMissing) {
		t.Errorf("%v, told %v", err, o.told)
	}
}

// Only the engine says that an answer is a replay. A contract's headers are those of that
// contract, also on an answer that has no others.
func TestHeadersThatTheEngineMakes(t *testing.T) {
	t.Parallel()
	r := request
	r.Header = http.Header{"Request-Id": {"req_1"}}
	handler := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{idem.ReplayedHeader: {"true"}, "Request-Id": {"req_own"}}}, nil
	}
	for name, tt := range map[string]struct {
		preset       func(*idem.Options)
		id, original string
	}{"default": {asIs, "req_own", ""}, "Stripe": {idem.StripeV1, "req_own", "req_own"}, "ACP": {idem.ACP, "req_1", ""}} {
		res, err := idem.New(&idem.MemoryStore{}, tt.preset, callertest.Anybody).Serve(t.Context(), r, handler)
		if h := res.Header; err != nil || h[idem.ReplayedHeader] != nil || h.Get("Request-Id") != tt.id || h.Get("Original-Request") != tt.original {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	bare := func(o *idem.Options) {
		o.Problem = func(p idem.Problem) idem.Response { return idem.Response{Status: p.Status} }
	}
	r.Key = "a b"
	if res, err := idem.New(&idem.MemoryStore{}, idem.ACP, callertest.Anybody, bare).Serve(t.Context(), r, never(t)); err != nil || res.Status != 400 || res.Header.Get("Request-Id") != "req_1" {
		t.Errorf("a bare refusal: %+v, %v", res, err)
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

// A job that is staged between phases carries the trace of its request, like any other.
func TestTraceOfALooseJob(t *testing.T) {
	t.Parallel()
	var tracer tracetest.Recorder
	var mem idem.MemoryStore
	_, err := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Tracer = &tracer }).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, receipt)
	})
	want := find(t, tracer.Spans(), "operation", "").Identity()
	for _, j := range one(&mem).Jobs {
		if err != nil || j.Trace != want {
			t.Errorf("%v, the job is of %+v, want %+v", err, j.Trace, want)
		}
	}
}

// Under ACP a path is an operation of its own; without paths, a route is.
func TestKeyOfAPath(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, idem.ACP, callertest.Anybody)
	a, b := request, request
	a.Path, b.Path = "/checkouts/1", "/checkouts/2"
	c, d := request, request
	c.Path, c.Route, d.Path, d.Route = "", "POST /one", "", "POST /two"
	for i, r := range []idem.Request{a, b, c, d} {
		if res, err := e.Do(t.Context(), r, answers(201)); err != nil || res.Replayed || len(mem.Records()) != i+1 {
			t.Errorf("%s %s: %+v, %v, %d records", r.Path, r.Route, res, err, len(mem.Records()))
		}
	}
}
