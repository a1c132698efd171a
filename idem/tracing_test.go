package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
	"github.com/samekey/samekey/internal/trace"
)

const clientParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func tracedPost(key string) idem.Request {
	return idem.Request{
		Key: key, Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: http.MethodPost, Path: "/rides", Route: "/rides", Body: []byte("{}"),
		Header: http.Header{"Traceparent": {clientParent}, "Tracestate": {"a=1"}},
	}
}

// tracedRide is a handler with a write, a call and a job.
func tracedRide(call error) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "ride", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) { return tx.Key("stripe"), call }); err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("receipt", 1), idem.Job{Kind: "own", Args: []byte("1"), Trace: trace.Context{Parent: clientParent}})
			return idem.Response{Status: http.StatusCreated}, nil
		})
	}
}

func wantTree(t *testing.T, spans []*tracetest.Span, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(strings.ReplaceAll(want, "\t", "")), strings.TrimSpace(tracetest.Tree(spans))); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func find(t *testing.T, spans []*tracetest.Span, kind trace.Kind, name string) *tracetest.Span {
	t.Helper()
	for _, s := range spans {
		if s.Kind == kind && s.Name == name {
			return s
		}
	}
	t.Fatalf("no %s %s among\n%s", kind, name, tracetest.Tree(spans))
	return nil
}

// A request's steps are one trace, from its client's context on. Its jobs carry the
// context of their phase, and a replay names the attempt that did the work.
func TestTraceOfARequest(t *testing.T) {
	t.Parallel()
	var tracer tracetest.Recorder
	memory := &idem.MemoryStore{}
	e := idem.New(memory, callertest.Anybody, func(o *idem.Options) { o.Tracer = &tracer })
	if _, err := e.Do(t.Context(), tracedPost("k"), tracedRide(nil)); err != nil {
		t.Fatal(err)
	}
	first := tracer.Spans()
	wantTree(t, first, `
operation 201
  claim new
  phase ride
    commit
  phase charge
    commit
    call charge
    commit
  phase finish
    finish`)
	operation := find(t, first, trace.Operation, "")
	if want := (trace.Context{Parent: clientParent, State: "a=1"}); operation.From != want {
		t.Errorf("the operation is from %+v, want %+v", operation.From, want)
	}
	rec := onlyRecord(t, memory)
	if rec.Trace != operation.Identity() {
		t.Errorf("the record has %+v, want that of the operation %+v", rec.Trace, operation.Identity())
	}
	for _, s := range first {
		if want := s.Kind != trace.Claim && s != operation; s.Record == "" || s.Route != "/rides" || want && s.Step.Operation != rec.ID {
			t.Errorf("%s %s begins with record %q, route %q and operation %q", s.Kind, s.Name, s.Record, s.Route, s.Step.Operation)
		}
	}
	if operation.Outcome.Operation != rec.ID || operation.Point != "charge" || operation.Outcome.Origin != (trace.Context{}) {
		t.Errorf("the operation ended with %+v", operation.Outcome)
	}
	got := map[string]trace.Context{}
	for _, j := range rec.Jobs {
		got[j.Kind] = j.Trace
	}
	want := map[string]trace.Context{"receipt": find(t, first, trace.Phase, "finish").Identity(), "own": {Parent: clientParent}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contexts of jobs (-want +got):\n%s", diff)
	}

	if _, err := e.Do(t.Context(), tracedPost("k"), tracedRide(nil)); err != nil {
		t.Fatal(err)
	}
	again := tracer.Spans()
	wantTree(t, again, `
operation 201 replayed
  claim replay`)
	if o := again[0].Outcome; o.Origin != operation.Identity() || o.Operation != rec.ID {
		t.Errorf("the replay ended with %+v, want the first operation's %+v", o, operation.Identity())
	}
}

// A failed attempt shows the failed step. A completer's attempt names the first.
func TestTraceOfAResumedRequest(t *testing.T) {
	t.Parallel()
	var tracer tracetest.Recorder
	memory := &idem.MemoryStore{}
	e := idem.New(memory, callertest.Anybody, func(o *idem.Options) { o.Function, o.Tracer, o.Resumable = "f", &tracer, true })
	secret := errors.New("card 4242")
	if _, err := e.Do(t.Context(), tracedPost("k"), tracedRide(secret)); !errors.Is(err, secret) {
		t.Fatal(err)
	}
	first := tracer.Spans()
	wantTree(t, first, `
operation internal_error
  claim new
  phase ride
    commit
  phase charge internal_error
    commit
    call charge internal_error
  release`)
	_, err := e.Resume(t.Context(), state.TicketFor(onlyRecord(t, memory)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return tracedRide(nil)(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	resumed := tracer.Spans()
	wantTree(t, resumed, `
resume 201
  phase charge
    commit
    call charge
    commit
  phase finish
    finish`)
	if resumed[0].Step.Origin != first[0].Identity() || resumed[0].Began.IsZero() || resumed[0].Route != "/rides" {
		t.Errorf("the resume begins as %+v, want a link to %+v", resumed[0].Step, first[0].Identity())
	}
	if rec := onlyRecord(t, memory); rec.Trace != first[0].Identity() {
		t.Errorf("the record's trace is now %+v", rec.Trace)
	}
}

func TestTraceOfRefusalsAndPanics(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		body string
		fn   func(context.Context) (idem.Response, error)
		want string
	}{
		"mismatch":  {func(*idem.Options) {}, "other", tracedRide(nil), "operation idempotency_key_mismatch\n  claim mismatch"},
		"read":      {func(*idem.Options) {}, "{}", tracedRide(nil), "operation 201 replayed\n  read"},
		"a message": {func(*idem.Options) {}, "{}", nil, "process 201 replayed\n  claim replay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tracer tracetest.Recorder
			e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Tracer = &tracer }, tt.opt)
			if _, err := e.Do(t.Context(), tracedPost("k"), tracedRide(nil)); err != nil {
				t.Fatal(err)
			}
			tracer.Spans()
			r := tracedPost("k")
			r.Body, r.Redelivered, r.ReadFirst = []byte(tt.body), tt.fn == nil, name == "read"
			_, _ = e.Do(t.Context(), r, tt.fn)
			spans := tracer.Spans()
			wantTree(t, spans, tt.want)
			if o := spans[0].Outcome; o.Operation == "" {
				t.Errorf("it ended with %+v", o)
			}
		})
	}
	t.Run("a panic", func(t *testing.T) {
		t.Parallel()
		var tracer tracetest.Recorder
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Tracer, o.CallsOut = &tracer, true })
		func() {
			defer func() { _ = recover() }()
			_, _ = e.Do(t.Context(), tracedPost("k"), func(ctx context.Context) (idem.Response, error) {
				return idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (idem.Response, error) { panic("no") })
			})
		}()
		spans := tracer.Spans()
		wantTree(t, spans, `
operation internal_error
  claim new
  phase charge internal_error
    call charge internal_error
  release`)
		if !spans[0].Panicked || !spans[2].Panicked || !spans[3].Panicked || spans[4].Panicked {
			t.Errorf("of %s: the wrong steps have panicked", tracetest.Tree(spans))
		}
	})
}

// Without a tracer nothing is stored.
func TestNoTracerStoresNoTrace(t *testing.T) {
	t.Parallel()
	memory := &idem.MemoryStore{}
	if _, err := idem.New(memory, callertest.Anybody).Do(t.Context(), tracedPost("k"), tracedRide(nil)); err != nil {
		t.Fatal(err)
	}
	rec := onlyRecord(t, memory)
	for _, j := range rec.Jobs {
		if j.Kind == "receipt" && j.Trace != (trace.Context{}) {
			t.Errorf("the job has %+v", j.Trace)
		}
	}
	if rec.Trace != (trace.Context{}) {
		t.Errorf("the record has %+v", rec.Trace)
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
