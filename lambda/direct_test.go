package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

type order struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"`
	Amount int64  `json:"amount,omitempty"`
}

type receipt struct {
	Order string `json:"order"`
	Run   int    `json:"run"`
	Note  string `json:"note,omitempty"`
}

func orderID(o order) (string, error) { return o.ID, nil }

// charging is a wrapped handler that counts its runs.
func charging(e *idem.Engine, optFns ...func(*lambda.DirectOptions[order])) (h *lambda.Handler[order, receipt], runs *int, fail *error) {
	runs, fail = new(int), new(error)
	named := func(o *lambda.HandlerOptions) {
		if len(optFns) > 0 {
			o.Name = "charge"
		}
	}
	return lambda.Wrap(e, lambda.Direct[order, receipt](orderID, optFns...), func(_ context.Context, o order) (receipt, error) {
		*runs++
		return receipt{Order: o.ID, Run: *runs, Note: "<&>\u2028"}, *fail
	}, named), runs, fail
}

func TestDirectReplaysTheResult(t *testing.T) {
	t.Parallel()
	h, runs, _ := charging(anEngine())
	const want = `{"order":"o-1","run":1,"note":"<&>` + "\\u2028" + `"}`
	for range 3 {
		out, err := h.Invoke(t.Context(), []byte(`{"id":"o-1","amount":20}`))
		if string(out) != want || err != nil {
			t.Errorf("Invoke: got %s, %v, want %s", out, err, want)
		}
	}
	for range 2 {
		re, err := h.Handle(t.Context(), order{ID: "o-1", Amount: 20})
		if diff := cmp.Diff(receipt{Order: "o-1", Run: 1, Note: "<&>\u2028"}, re); diff != "" || err != nil {
			t.Errorf("Handle: %v (-want +got):\n%s", err, diff)
		}
	}
	if re, err := h.Handle(t.Context(), order{ID: "o-2"}); re.Run != 2 || err != nil {
		t.Errorf("another order: got %+v, %v", re, err)
	}
	if *runs != 2 {
		t.Errorf("the handler ran %d times, want 2", *runs)
	}
}

// declined is a handler's own error, whose type the caller matches on.
type declined struct{ error }

// An asynchronous invocation that fails is made again by Lambda: the handler's error keeps its
// type, a panic goes on, and both free the key. A disabled engine hands everything on.
func TestDirectFailures(t *testing.T) {
	t.Parallel()
	h, runs, fail := charging(anEngine())
	*fail = declined{errBad}
	for range 2 {
		if _, err := h.Handle(t.Context(), order{ID: "o-1"}); err != *fail { //nolint:errorlint // this very value
			t.Errorf("Handle: got %#v", err)
		}
		if out, err := h.Invoke(t.Context(), []byte(`{"id":"o-1"}`)); err != *fail || out != nil { //nolint:errorlint // as above
			t.Errorf("Invoke: got %s, %#v", out, err)
		}
	}
	*fail = nil
	for range 2 {
		if re, err := h.Handle(t.Context(), order{ID: "o-1"}); re.Run != 5 || err != nil || *runs != 5 {
			t.Errorf("got %+v, %v after %d runs, want the fifth run's result", re, err, *runs)
		}
	}
	memory := new(idem.MemoryStore)
	panics := lambda.Wrap(idem.New(process{memory}), lambda.Direct[order, receipt](orderID), func(context.Context, order) (receipt, error) { panic("boom") }, named("pay"))
	if said := panicOf(func() { _, _ = panics.Handle(t.Context(), order{ID: "o-1"}) }); said != "boom" {
		t.Errorf("panicked with %q, want boom", said)
	}
	works := lambda.Wrap(idem.New(process{memory}), lambda.Direct[order, receipt](orderID), func(context.Context, order) (receipt, error) { return receipt{Run: 1}, nil }, named("pay"))
	if re, err := works.Handle(t.Context(), order{ID: "o-1"}); re.Run != 1 || err != nil {
		t.Errorf("after the panic: got %+v, %v", re, err)
	}
	store := &watched{}
	h, runs, fail = charging(idem.New(store, func(o *idem.Options) { o.Mode = idem.ModeOff }))
	for i, id := range []string{"o-1", "o-1", ""} {
		if re, err := h.Handle(t.Context(), order{ID: id}); re.Run != i+1 || err != nil {
			t.Errorf("switched off: got %+v, %v", re, err)
		}
	}
	*fail = errBad
	if _, err := h.Invoke(t.Context(), []byte(`{}`)); err != errBad || *runs != 4 { //nolint:errorlint // this very value
		t.Errorf("switched off: got %v after %d runs", err, *runs)
	}
	store.untouched(t)
}

// held is a store that shows a record of this request in the way of every claim.
type held struct {
	idem.MemoryStore
	edit func(*store.Record)
}

func (s *held) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	r := *c.Next
	r.Owner, r.Response = "somebody else", &idem.Response{Status: 200, Body: []byte(`{"run":7}`)}
	s.edit(&r)
	return &r, nil
}

// What the engine refuses is a Go error in Handle, and one with a name of its
// own for who sees no Go errors.
func TestDirectRefusals(t *testing.T) {
	t.Parallel()
	memory := process{&idem.MemoryStore{}}
	tenant := func(o *lambda.DirectOptions[order]) {
		o.Scope = func(_ context.Context, o order) (string, error) {
			if o.Tenant == "" {
				return "", errBad
			}
			return o.Tenant, nil
		}
	}
	doubtful := func(o *lambda.DirectOptions[order]) {
		o.Scope = func(context.Context, order) (string, error) { return "anybody", errBad }
	}
	nobody := func(o *lambda.DirectOptions[order]) {
		o.Scope = func(context.Context, order) (string, error) { return "", nil }
	}
	asked := func(o *lambda.DirectOptions[order]) { o.Synchronous = true }
	record := func(edit func(*store.Record)) *idem.Engine { return idem.New(&held{edit: edit}, callertest.Anybody) }
	e := func() *idem.Engine { return idem.New(memory, callertest.Anybody) }
	if _, err := e().Do(t.Context(), idem.Request{Key: "taken", Source: "function:", Body: []byte("{}")}, func(context.Context) (idem.Response, error) {
		return idem.Response{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		engine *idem.Engine
		opts   []func(*lambda.DirectOptions[order])
		in     order
		left   time.Duration
		want   error
		called string
	}{
		"no key":         {engine: e(), in: order{}, want: idem.ErrKeyMissing, called: "IdempotencyKeyMissing"},
		"no usable key":  {engine: e(), in: order{ID: "ö"}, want: idem.ErrKeyInvalid, called: "IdempotencyKeyInvalid"},
		"mismatch":       {engine: e(), in: order{ID: "taken"}, want: idem.ErrMismatch, called: "IdempotencyKeyMismatch"},
		"no scope":       {engine: e(), in: order{ID: "1"}, opts: []func(*lambda.DirectOptions[order]){tenant}, want: idem.ErrScope, called: "IdempotencyScopeUnknown"},
		"doubtful scope": {engine: e(), in: order{ID: "1"}, opts: []func(*lambda.DirectOptions[order]){doubtful}, want: idem.ErrScope, called: "IdempotencyScopeUnknown"},
		"empty scope":    {engine: e(), in: order{ID: "1"}, opts: []func(*lambda.DirectOptions[order]){nobody}, want: idem.ErrScope, called: "IdempotencyScopeUnknown"},
		"no time":        {engine: e(), in: order{ID: "1"}, left: 100 * time.Millisecond, want: idem.ErrNoTime, called: "IdempotencyNoTimeLeft"},
		"store down":     {engine: idem.New(downStore{}, callertest.Anybody), in: order{ID: "1"}, want: idem.ErrUnavailable, called: "IdempotencyStoreUnavailable"},
		"in flight":      {engine: record(func(*store.Record) {}), opts: []func(*lambda.DirectOptions[order]){asked}, in: order{ID: "1"}, want: idem.ErrInFlight, called: "IdempotencyInFlight"},
		"stuck":          {engine: record(func(r *store.Record) { r.State = store.Stuck }), in: order{ID: "1"}, want: idem.ErrStuck, called: "IdempotencyStuck"},
		"corrupt":        {engine: record(func(r *store.Record) { r.State = "odd" }), in: order{ID: "1"}, want: idem.ErrCorrupt, called: "IdempotencyRecordCorrupt"},
		"another secret": {engine: record(func(r *store.Record) { r.Secret = "old" }), in: order{ID: "1"}, want: idem.ErrIncomparable, called: "IdempotencyIncomparable"},
		"answer not kept": {engine: record(func(r *store.Record) {
			r.State, r.Overflow = store.Done, &store.Overflow{}
		}), in: order{ID: "1"}, want: idem.ErrNotKept, called: "IdempotencyAnswerNotKept"},
		"too large": {engine: idem.New(memory, callertest.Anybody, func(o *idem.Options) {
			o.Resumable, o.Function, o.MaxRequest = true, "f", 1
		}), opts: []func(*lambda.DirectOptions[order]){asked}, in: order{ID: "large"}, want: idem.ErrTooLarge, called: "IdempotencyRequestTooLarge"},
		"no fingerprint": {engine: idem.New(memory, callertest.Anybody, func(o *idem.Options) {
			o.Fingerprint.Func = func(*idem.Request) ([]byte, error) { return nil, errBad }
			o.Fingerprint.FuncName = "fails"
		}), in: order{ID: "1"}, want: idem.ErrRequest, called: "IdempotencyRequestInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			if tc.left > 0 {
				ctx, cancel = context.WithTimeout(ctx, tc.left)
			}
			defer cancel()
			h, runs, _ := charging(tc.engine, tc.opts...)
			re, err := h.Handle(ctx, tc.in)
			if !errors.Is(err, tc.want) || re != (receipt{}) {
				t.Errorf("Handle: got %+v, %v, want %v", re, err, tc.want)
			}
			payload, _ := json.Marshal(tc.in)
			out, err := h.Invoke(ctx, payload)
			refusal, ok := err.(messages.InvokeResponse_Error) //nolint:errorlint // as the runtime has it
			if !ok || refusal.Type != tc.called || !strings.HasPrefix(refusal.Message, "idem: ") || out != nil {
				t.Errorf("Invoke: got %s, %#v, want %s", out, err, tc.called)
			}
			if *runs != 0 {
				t.Errorf("the handler ran %d times", *runs)
			}
		})
	}
}

// The error of a record by itself is named in the same way.
func TestRefusalOfARecordIsNamed(t *testing.T) {
	t.Parallel()
	h := lambda.WrapEach(idem.New(downStore{}, callertest.Anybody), quiet(lambda.SQS), (&worker{}).message)
	_, err := h.Invoke(t.Context(), []byte(marshalled(t, batch(message("1", "")))))
	if refusal, ok := errors.AsType[messages.InvokeResponse_Error](err); !ok || refusal.Type != "IdempotencyStoreUnavailable" {
		t.Errorf("got %#v", err)
	}
}

// Who lost the lease has changed nothing, whatever its handler did: the caller
// gets what is stored.
func TestDirectOvertaken(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := process{&idem.MemoryStore{}}
	engine := func() *idem.Engine {
		return idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return now } })
	}
	second, _, _ := charging(engine())
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	for i, own := range []error{nil, errBad} {
		id := fmt.Sprint("o-", i)
		first := lambda.Wrap(engine(), lambda.Direct[order, receipt](orderID), func(context.Context, order) (receipt, error) {
			now = now.Add(time.Hour) // the lease is over
			if _, err := second.Handle(ctx, order{ID: id}); err != nil {
				t.Errorf("the one that overtakes: %v", err)
			}
			return receipt{Order: "mine"}, own
		})
		re, err := first.Handle(ctx, order{ID: id})
		if re.Order != id || err != nil {
			t.Errorf("own error %v: got %+v, %v, want what is stored", own, re, err)
		}
	}
}

// A commit that is refused, and nothing yet in the other's place: what the
// handler made is not the answer, and must not pass for one.
func TestDirectLeaseLost(t *testing.T) {
	t.Parallel()
	h, runs, _ := charging(idem.New(&fenced{}, callertest.Anybody))
	re, err := h.Handle(t.Context(), order{ID: "o-1"})
	if re != (receipt{}) || !errors.Is(err, idem.ErrLeaseLost) {
		t.Errorf("Handle: got %+v, %v", re, err)
	}
	out, err := h.Invoke(t.Context(), []byte(`{"id":"o-2"}`))
	if refusal, ok := err.(messages.InvokeResponse_Error); !ok || refusal.Type != "IdempotencyInFlight" || out != nil { //nolint:errorlint // as the runtime has it
		t.Errorf("Invoke: got %s, %#v", out, err)
	}
	if *runs != 2 {
		t.Errorf("%d runs", *runs)
	}
}

// fenced is a store in which somebody has always taken over in between.
type fenced struct{ idem.MemoryStore }

func (*fenced) Commit(_ context.Context, c store.Commit) (*store.Record, error) {
	r := *c.Prev
	r.Owner, r.Ver = "somebody else", r.Ver+1
	return &r, nil
}

// An adapter's own error counts, whatever request it comes with.
func TestDirectRequestError(t *testing.T) {
	t.Parallel()
	store := &watched{}
	a := lambda.Direct[order, receipt](orderID)
	request := a.Request
	for _, own := range []error{errBad, fmt.Errorf("%w: not for me", lambda.ErrEvent)} {
		a.Request = func(ctx context.Context, o order) (idem.Request, error) {
			req, _ := request(ctx, o)
			return req, own
		}
		h := lambda.Wrap(idem.New(elsewhere{store}, callertest.Anybody), a, func(context.Context, order) (receipt, error) {
			t.Error("the handler ran")
			return receipt{}, nil
		})
		if _, err := h.Handle(t.Context(), order{ID: "o-1"}); !errors.Is(err, own) {
			t.Errorf("got %v, want %v", err, own)
		}
		if out, err := h.Invoke(t.Context(), []byte(`{"id":"o-1"}`)); !errors.Is(err, own) || out != nil {
			t.Errorf("Invoke: got %s, %v, want %v", out, err, own)
		}
	}
	h := lambda.Wrap(idem.New(elsewhere{store}, callertest.Anybody), lambda.Direct[chan int, string](func(chan int) (string, error) { return "k", nil }),
		func(context.Context, chan int) (string, error) {
			t.Error("the handler ran")
			return "", nil
		})
	if _, err := h.Handle(t.Context(), nil); !errors.Is(err, idem.ErrRequest) {
		t.Errorf("an event without JSON form: got %v", err)
	}
	store.untouched(t)
}

func TestDirectScope(t *testing.T) {
	t.Parallel()
	h, runs, _ := charging(anEngine())
	call := func(h *lambda.Handler[order, receipt], arn, tenant string, want int) {
		t.Helper()
		if _, err := h.Handle(invoked(t.Context(), arn), order{ID: "o-1", Tenant: tenant}); err != nil || *runs != want {
			t.Errorf("%s, %s: %d runs, %v, want %d", arn, tenant, *runs, err, want)
		}
	}
	call(h, functionARN, "", 1)
	call(h, functionARN+":$LATEST", "", 1)
	call(h, functionARN+":7", "", 1)
	call(h, functionARN+":live", "", 2)
	call(h, functionARN+"-2", "", 3)

	h, runs, _ = charging(anEngine(), func(o *lambda.DirectOptions[order]) {
		o.Scope = func(_ context.Context, o order) (string, error) { return "tenant " + o.Tenant, nil }
	})
	call(h, functionARN, "a", 1)
	call(h, functionARN+"-2", "a", 1)
	call(h, functionARN, "b", 2)
}

// The payload counts as it came, also what the event's type doesn't have or
// can't give back.
func TestDirectPayloadCounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		payload        string
		strict, canons bool // replays with a plain fingerprint, with a canonical one
	}{
		"the same":        {`{"id":"o-1","amount":20}`, true, true},
		"white space":     {`{ "id": "o-1", "amount": 20 }`, false, true},
		"another order":   {`{"amount":20,"id":"o-1"}`, false, true},
		"another amount":  {`{"id":"o-1","amount":21}`, false, false},
		"an unknown name": {`{"id":"o-1","amount":20,"currency":"usd"}`, false, false},
	} {
		for _, canonical := range []bool{false, true} {
			h, runs, _ := charging(anEngine(func(o *idem.Options) { o.Fingerprint.CanonicalJSON = canonical }))
			if _, err := h.Invoke(t.Context(), []byte(`{"id":"o-1","amount":20}`)); err != nil {
				t.Fatal(err)
			}
			_, err := h.Invoke(t.Context(), []byte(tc.payload))
			want := tc.strict
			if canonical {
				want = tc.canons
			}
			if (err == nil) != want || *runs != 1 {
				t.Errorf("%s, canonical %v: got %v, %d runs", name, canonical, err, *runs)
			}
		}
	}

	h := lambda.Wrap(anEngine(), lambda.Direct[oneWay, string](func(oneWay) (string, error) { return "k", nil }),
		func(context.Context, oneWay) (string, error) { return "done", nil })
	if _, err := h.Invoke(t.Context(), []byte(`{"amount":20}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Invoke(t.Context(), []byte(`{"amount":21}`)); err == nil {
		t.Error("another payload passed, since its type marshals to {} whatever is in it")
	}
}

// oneWay can be read from JSON, and not written to it.
type oneWay struct{ amount int }

func (o *oneWay) UnmarshalJSON(b []byte) error {
	var v struct{ Amount int }
	err := json.Unmarshal(b, &v)
	o.amount = v.Amount
	return err
}

// A handler in a handler has a payload of its own. Under the same key it is the same request.
func TestDirectNested(t *testing.T) {
	t.Parallel()
	store := process{&idem.MemoryStore{}}
	var seen []idem.Request
	adapter := lambda.Direct[order, receipt](orderID)
	request := adapter.Request
	adapter.Request = func(ctx context.Context, o order) (idem.Request, error) {
		req, err := request(ctx, o)
		seen = append(seen, req)
		return req, err
	}
	canonical := func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }
	inner := lambda.Wrap(idem.New(store, callertest.Anybody, canonical), adapter, func(_ context.Context, o order) (receipt, error) { return receipt{Order: o.ID}, nil })
	outer := lambda.Wrap(idem.New(store, callertest.Anybody, canonical), lambda.Direct[order, receipt](orderID), func(ctx context.Context, o order) (receipt, error) {
		if re, err := inner.Handle(ctx, o); re.Order != o.ID || err != nil { // the same operation: transparent
			t.Errorf("got %+v, %v", re, err)
		}
		return inner.Handle(ctx, order{ID: o.ID + ".1"})
	})
	for range 2 {
		out, err := outer.Invoke(t.Context(), []byte(`{ "id":"o-1" }`))
		if string(out) != `{"order":"o-1.1","run":0}` || err != nil {
			t.Errorf("got %s, %v", out, err)
		}
	}
	if len(seen) != 2 || string(seen[0].Body) != `{"id":"o-1"}` || string(seen[1].Body) != `{"id":"o-1.1"}` {
		t.Errorf("the inner handler read %+v", seen)
	}
}

// What a result is the first time and again: a phase's answer counts, one that JSON can't hold
// is done all the same, and one that can't be read back is no other one.
func TestDirectResults(t *testing.T) {
	t.Parallel()
	finish := func(ctx context.Context) (any, error) {
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (string, error) { return "stored", nil })
	}
	responds := func(v any) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return nil, idem.Respond(v) }
	}
	is := func(v any) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return v, nil }
	}
	failed := idem.Response{Status: 500, Body: []byte(`"failed for good"`)}
	for name, tc := range map[string]struct {
		handler   func(context.Context) (any, error)
		out       string // of Invoke, each time
		err       error
		runs      int
		unkept    bool // it is answered once
		converted any  // by Handle, again
	}{
		"text":                      {handler: is("x"), out: `"x"`, runs: 1, converted: "x"},
		"none":                      {handler: is(nil), out: "null", runs: 1},
		"no JSON form":              {handler: is(math.NaN()), err: idem.ErrNotKept, runs: 1},
		"too large to keep":         {handler: is(strings.Repeat("x", defaults.MaxBody)), err: idem.ErrNotKept, runs: 1, unkept: true},
		"Respond":                   {handler: responds("stored"), out: `"stored"`, runs: 1, converted: "stored"},
		"Finish":                    {handler: finish, out: `"stored"`, runs: 1, converted: "stored"},
		"Respond, without a body":   {handler: responds(idem.Response{Status: 204}), out: "null", runs: 1},
		"Respond, an answer of 500": {handler: responds(failed), out: `"failed for good"`, runs: 1, converted: "failed for good"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := lambda.Wrap(anEngine(), lambda.Direct[string, any](func(string) (string, error) { return "k", nil }),
				func(ctx context.Context, _ string) (any, error) { runs++; return tc.handler(ctx) })
			for i := range 2 {
				out, err := h.Invoke(t.Context(), []byte(`"in"`))
				if first := i == 0 && tc.unkept; first && err != nil || !first && ((tc.err == nil) != (err == nil) || string(out) != tc.out) {
					t.Errorf("Invoke %d: got %.40s, %v; want %s, %v", i, out, err, tc.out, tc.err)
				}
			}
			if re, err := h.Handle(t.Context(), "in"); !errors.Is(err, tc.err) || re != tc.converted || runs != tc.runs {
				t.Errorf("Handle: got %v, %v after %d runs; want %v, %v after %d", re, err, runs, tc.converted, tc.err, tc.runs)
			}
		})
	}
	h := lambda.Wrap(anEngine(), lambda.Direct[string, fmt.Stringer](func(string) (string, error) { return "k", nil }),
		func(context.Context, string) (fmt.Stringer, error) { return time.Second, nil })
	if re, err := h.Handle(t.Context(), "in"); re != time.Second || err != nil {
		t.Errorf("a type that JSON can't give back, first: got %v, %v", re, err)
	}
	if re, err := h.Handle(t.Context(), "in"); re != nil || !errors.Is(err, idem.ErrCorrupt) {
		t.Errorf("a type that JSON can't give back, again: got %v, %v", re, err)
	}
	other := lambda.Wrap(anEngine(), lambda.Direct[string, string](func(string) (string, error) { return "k", nil }),
		func(context.Context, string) (string, error) { return "", idem.Respond(42) })
	if re, err := other.Handle(t.Context(), "in"); re != "" || !errors.Is(err, idem.ErrResult) {
		t.Errorf("a phase's answer of another type: got %q, %v", re, err)
	}
}

// A phase that has failed is done by the next try, whatever the handler made of its error.
func TestDirectAfterAFailedPhase(t *testing.T) {
	t.Parallel()
	fails, phases := true, 0
	var result float64
	h := lambda.Wrap(anEngine(), lambda.Direct[order, float64](orderID), func(ctx context.Context, _ order) (float64, error) {
		_, _ = idem.Atomic(ctx, "pay", func(context.Context, *idem.Tx) (int, error) {
			if fails {
				return 0, errBad
			}
			phases++
			return 1, nil
		}) // swallowed
		return result, nil
	})
	for id, re := range map[string]float64{"one": 1, "nan": math.NaN()} {
		fails, result, phases = true, re, 0
		_, _ = h.Handle(t.Context(), order{ID: id})
		fails, result = false, 2
		if _, err := h.Handle(t.Context(), order{ID: id}); phases != 1 || err != nil {
			t.Errorf("%s: the phase that failed was done %d times, %v", id, phases, err)
		}
	}
}

// The mode of an engine that is shared with HTTP routes: an event has no status to look at, so a
// duplicate of a running one is refused, never answered as done.
func TestAcceptIsForHTTP(t *testing.T) {
	t.Parallel()
	accepts := func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }
	var twin error
	var deliver func() error
	queue := lambda.WrapEach(anEngine(accepts), quiet(lambda.SQS), func(context.Context, events.SQSMessage) error {
		twin = deliver()
		return nil
	})
	deliver = func() error { _, err := queue.Handle(t.Context(), batch(message("1", "pay"))); return err }
	if err := deliver(); err != nil || !errors.Is(twin, idem.ErrInFlight) {
		t.Errorf("a message: %v; its second delivery meanwhile: %v, want ErrInFlight", err, twin)
	}
	var out []byte
	var invoke func() ([]byte, error)
	direct := lambda.Wrap(anEngine(accepts), lambda.Direct[order, string](orderID, func(o *lambda.DirectOptions[order]) { o.Synchronous = true }),
		func(context.Context, order) (string, error) {
			out, twin = invoke()
			return "paid", nil
		})
	invoke = func() ([]byte, error) { return direct.Invoke(t.Context(), []byte(`{"id":"1"}`)) }
	if _, err := invoke(); err != nil || twin == nil || out != nil {
		t.Errorf("an event: %v; its second meanwhile: %s, %v", err, out, twin)
	}
}

// An operation in the handler that is refused is the handler's business: nothing is said of the
// event's own, which is new.
func TestDirectReportsInnerRefusalAsOwn(t *testing.T) {
	t.Parallel()
	memory, now := process{new(idem.MemoryStore)}, time.Now()
	clock := func(o *idem.Options) { o.Now = func() time.Time { return now } }
	inner := idem.New(memory, callertest.Anybody, clock, func(o *idem.Options) { o.Namespace, o.MaxBody = "inner", 1 })
	use := func(ctx context.Context) error {
		_, err := inner.Do(ctx, idem.Request{Key: "shared", Scope: "s"}, func(context.Context) (idem.Response, error) {
			return idem.Response{Body: []byte("too large")}, nil
		})
		return err
	}
	_ = use(t.Context())
	h := lambda.Wrap(idem.New(memory, callertest.Anybody, clock), lambda.Direct[order, receipt](orderID), func(ctx context.Context, _ order) (receipt, error) {
		return receipt{}, use(ctx)
	})
	_, err := h.Invoke(t.Context(), []byte(`{"id":"new"}`))
	if m, ok := errors.AsType[messages.InvokeResponse_Error](err); ok || !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("reported as %s: %v", m.Type, err)
	}
}

func TestDirectBadPayload(t *testing.T) {
	t.Parallel()
	store := &watched{}
	h, runs, _ := charging(idem.New(store, callertest.Anybody))
	for _, payload := range []string{``, `{`, `[]`, `{"id":1}`, `"warm"`} {
		if out, err := h.Invoke(t.Context(), []byte(payload)); !errors.Is(err, lambda.ErrEvent) || out != nil || *runs != 0 {
			t.Errorf("%q: got %s, %v after %d runs", payload, out, err, *runs)
		}
	}
	store.untouched(t)
}

// What is stored of an event is enough to make it again.
func TestDirectEvent(t *testing.T) {
	t.Parallel()
	a := lambda.Direct[order, receipt](orderID)
	in := order{ID: "o-1", Tenant: "t", Amount: math.MaxInt64}
	req, err := a.Request(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Event(req)
	if diff := cmp.Diff(in, got); diff != "" || err != nil {
		t.Errorf("err %v (-want +got):\n%s", err, diff)
	}
	resp, err := a.Response(receipt{Order: "o-1", Run: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(receipt{Order: "o-1", Run: 1}, a.Reply(resp)); diff != "" {
		t.Errorf("the result read back (-want +got):\n%s", diff)
	}
	if _, err := a.Event(idem.Request{Body: []byte("{")}); !errors.Is(err, idem.ErrCorrupt) {
		t.Errorf("a torn payload: %v", err)
	}
}

// Keys that clients choose are somebody's: refused at cold start, or with the call that
// names nobody, unless the program says whose they are.
func TestKeysThatClientsChoose(t *testing.T) {
	t.Parallel()
	type event map[string]any
	anonymous := event{"identity": nil, "arguments": event{"key": "k"}, "info": event{"parentTypeName": "Mutation", "fieldName": "pay"}}
	byUser := func(o *lambda.DirectOptions[event]) {
		o.Scope = func(context.Context, event) (string, error) { return "ann", nil }
	}
	byNobody := func(*lambda.DirectOptions[event]) {}
	for name, tc := range map[string]struct {
		key        lambda.BodyKey
		options    func(*lambda.DirectOptions[event])
		engine     func(*idem.Options)
		event      event
		panics, ok bool
	}{
		"JSON-RPC":                    {lambda.JSONRPCKey(), byNobody, func(*idem.Options) {}, nil, true, false},
		"JSON-RPC with a session":     {lambda.JSONRPCKey("/params/session"), byNobody, func(*idem.Options) {}, nil, true, false},
		"JSON-RPC, OneScope":          {lambda.JSONRPCKey(), byNobody, callertest.Anybody, event{"jsonrpc": "2.0", "id": 1, "method": "pay"}, false, true},
		"JSON-RPC, scoped":            {lambda.JSONRPCKey(), byUser, func(*idem.Options) {}, event{"jsonrpc": "2.0", "id": 1, "method": "pay"}, false, true},
		"MCP":                         {lambda.MCPToolKey("/arguments/id"), byNobody, func(*idem.Options) {}, nil, true, false},
		"MCP, compared in part":       {lambda.MCPToolKey().Comparing("/name"), byNobody, func(*idem.Options) {}, nil, true, false},
		"AppSync with an API key":     {lambda.AppSyncKey("/key"), byNobody, func(*idem.Options) {}, anonymous, false, false},
		"the same, OneScope":          {lambda.AppSyncKey("/key"), byNobody, callertest.Anybody, anonymous, false, true},
		"the same, scoped":            {lambda.AppSyncKey("/key"), byUser, func(*idem.Options) {}, anonymous, false, true},
		"a key that a producer sends": {lambda.JSONKey("/id"), byNobody, func(*idem.Options) {}, event{"id": "o-1"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if p := recover(); (p != nil) != tc.panics {
					t.Errorf("panicked with %v, want a panic: %t", p, tc.panics)
				}
			}()
			e := idem.New(&idem.MemoryStore{}, tc.engine, func(o *idem.Options) { o.CallerFromOp = true })
			h := lambda.Wrap(e, lambda.Direct[event, int](tc.key, tc.options), func(context.Context, event) (int, error) { return 1, nil },
				func(o *lambda.HandlerOptions) { o.Name = "pay" })
			if _, err := h.Handle(t.Context(), tc.event); (err == nil) != tc.ok || err != nil && !errors.Is(err, idem.ErrScope) {
				t.Errorf("got %v, want success: %t", err, tc.ok)
			}
		})
	}
}

// What a payload's number or text was is in no error, since the runtime logs it.
func TestErrorsOfPayloadsHaveNoValues(t *testing.T) {
	t.Parallel()
	type card struct {
		Number int32
		Until  time.Time
	}
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}), lambda.Direct[card, int](lambda.JSONKey("/id")), func(context.Context, card) (int, error) { return 1, nil })
	for _, payload := range []string{`{"id":"1","Number":4111111111111111}`, `{"id":"1","Until":"4111111111111111"}`} {
		if _, err := h.Invoke(t.Context(), []byte(payload)); err == nil || strings.Contains(err.Error(), "4111") {
			t.Errorf("%s: got %v", payload, err)
		}
	}
}

// An error of the key is its caller's, with a scope too; but a handler that ran all the same has
// the last word.
func TestKeyThatFails(t *testing.T) {
	t.Parallel()
	failing := errors.New("there is no key")
	key := func(order) (string, error) { return "", failing }
	scoped := func(o *lambda.DirectOptions[order]) {
		o.Scope = func(context.Context, order) (string, error) { return "s", nil }
	}
	off := func(o *idem.Options) { o.Mode = idem.ModeOff }
	runs := 0
	works := func(context.Context, order) (any, error) { runs++; return func() {}, nil }
	h := lambda.Wrap(anEngine(), lambda.Direct[order, any](key, scoped), works, named("pay"))
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, failing) || !errors.Is(err, idem.ErrKeyInvalid) || runs != 0 {
		t.Errorf("got %v after %d runs", err, runs)
	}
	h = lambda.Wrap(anEngine(off), lambda.Direct[order, any](key), works)
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, idem.ErrNotKept) || errors.Is(err, failing) || runs != 1 {
		t.Errorf("switched off: got %v after %d runs", err, runs)
	}
	foreign := lambda.Direct[order, any](key)
	foreign.Request = func(context.Context, order) (idem.Request, error) { return idem.Request{}, lambda.ErrEvent }
	h = lambda.Wrap(anEngine(off), foreign, works)
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, lambda.ErrEvent) || runs != 1 {
		t.Errorf("an event of another kind: got %v after %d runs", err, runs)
	}
}

// What becomes of an event whose key function finds none is the engine's Options.Key to say, as it
// is over HTTP. A key function that fails has not found that there is none: that is refused in every
// mode. A source brings a record again by itself: a key that is made up for one delivery would be
// another for the next one, so KeyGenerate refuses a record as KeyRequired does.
func TestKeyModes(t *testing.T) {
	t.Parallel()
	const (
		required, optional, generate = idem.KeyRequired, idem.KeyOptional, idem.KeyGenerate
		observing                    = idem.KeyMode(-1)
	)
	key := func(text string) (string, error) {
		switch text {
		case "fails":
			return "", errBad
		case "panics":
			panic(errBad)
		}
		return text, nil
	}
	for _, tc := range []struct {
		mode    idem.KeyMode
		key     string
		refused error
		runs    int // of two invocations
		records int
		queue   error // what a message is refused with; nil: as an event
	}{
		{required, "", idem.ErrKeyMissing, 0, 0, nil},
		{required, "fails", errBad, 0, 0, nil},
		{required, "o-1", nil, 1, 1, nil},
		{optional, "", nil, 2, 0, nil},
		{optional, "fails", errBad, 0, 0, nil},
		{optional, "panics", errBad, 0, 0, nil},
		{optional, "ö", idem.ErrKeyInvalid, 0, 0, nil},
		{optional, "o-1", nil, 1, 1, nil},
		{generate, "", nil, 2, 2, idem.ErrKeyMissing},
		{generate, "fails", errBad, 0, 0, nil},
		{generate, "panics", errBad, 0, 0, nil},
		{generate, "ö", idem.ErrKeyInvalid, 0, 0, nil},
		{generate, "o-1", nil, 1, 1, nil},
		{observing, "", nil, 2, 0, nil},
		{observing, "fails", nil, 2, 0, nil},
		{observing, "o-1", nil, 2, 1, nil},
	} {
		for _, source := range []string{"Direct", "SQS"} {
			t.Run(fmt.Sprintf("%s, mode %d, %q", source, tc.mode, tc.key), func(t *testing.T) {
				t.Parallel()
				store, runs := new(idem.MemoryStore), 0
				var refused []error
				e := idem.New(store, callertest.Anybody, func(o *idem.Options) {
					o.Logger, o.Key = slog.New(slog.DiscardHandler), max(tc.mode, 0)
					if tc.mode == observing {
						o.Mode = idem.ModeObserve
					}
					o.Hooks.Refused = func(_ context.Context, ev idem.Event) { refused = append(refused, ev.Err) }
				})
				want := tc
				h := lambda.Wrap(e, lambda.Direct[order, int](func(o order) (string, error) { return key(o.ID) }),
					func(context.Context, order) (int, error) { runs++; return runs, nil })
				handle := func() error { _, err := h.Handle(t.Context(), order{ID: tc.key}); return err }
				if source == "SQS" {
					if tc.queue != nil {
						want.refused, want.runs, want.records = tc.queue, 0, 0
					}
					q := lambda.WrapEach(e, quiet(lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) { return key(m.Body) })),
						func(context.Context, events.SQSMessage) error { runs++; return nil })
					handle = func() error { _, err := q.Handle(t.Context(), batch(message("1", tc.key))); return err }
				}
				for range 2 {
					var err error
					said := panicOf(func() { err = handle() })
					if source == "Direct" && tc.key == "panics" {
						if said == "" && err == nil {
							t.Error("a key function that panics is taken for one that finds no key")
						}
						continue
					}
					if !errors.Is(err, want.refused) || want.refused == nil && err != nil || said != "" {
						t.Errorf("got %v, want %v; panicked with %q", err, want.refused, said)
					}
				}
				if n := len(store.Records()); runs != want.runs || n != want.records {
					t.Errorf("%d runs and %d records, want %d and %d", runs, n, want.runs, want.records)
				}
				if source == "Direct" && tc.key != "panics" && (len(refused) == 2) != (want.refused != nil) {
					t.Errorf("Hooks.Refused was told %v", refused)
				}
			})
		}
	}
}
