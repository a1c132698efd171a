package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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
	h, runs, _ := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody))
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

// An asynchronous invocation that fails is made again by Lambda: the handler's
// error keeps its type, and frees the key.
func TestDirectHandlerErrorPassesAndFreesTheKey(t *testing.T) {
	t.Parallel()
	h, runs, fail := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody))
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
		if re, err := h.Handle(t.Context(), order{ID: "o-1"}); re.Run != 5 || err != nil {
			t.Errorf("got %+v, %v, want the fifth run's result", re, err)
		}
	}
	if *runs != 5 {
		t.Errorf("the handler ran %d times, want 5", *runs)
	}
}

func TestDirectPanicGoesOnAndFreesTheKey(t *testing.T) {
	t.Parallel()
	panicking := true
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[order, receipt](orderID), func(context.Context, order) (receipt, error) {
		if panicking {
			panic("boom")
		}
		return receipt{Run: 1}, nil
	})
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = h.Handle(t.Context(), order{ID: "o-1"})
	}()
	panicking = false
	if re, err := h.Handle(t.Context(), order{ID: "o-1"}); re.Run != 1 || err != nil {
		t.Errorf("got %+v, %v", re, err)
	}
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
		"expired": {engine: record(func(r *store.Record) {
			r.State, r.Until = store.Done, time.Now().Add(-time.Minute)
		}), in: order{ID: "1"}, want: idem.ErrExpired, called: "IdempotencyKeyExpired"},
		"answer not kept": {engine: record(func(r *store.Record) {
			r.State, r.Overflow = store.Done, &store.Overflow{}
		}), in: order{ID: "1"}, want: idem.ErrNotKept, called: "IdempotencyAnswerNotKept"},
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
	payload, _ := json.Marshal(batch(message("1", "")))
	_, err := h.Invoke(t.Context(), payload)
	if refusal, ok := err.(messages.InvokeResponse_Error); !ok || refusal.Type != "IdempotencyStoreUnavailable" { //nolint:errorlint // as the runtime has it
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
	h, runs, _ := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody))
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

	h, runs, _ = charging(idem.New(&idem.MemoryStore{}, callertest.Anybody), func(o *lambda.DirectOptions[order]) {
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
			h, runs, _ := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Fingerprint.CanonicalJSON = canonical }))
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

	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[oneWay, string](func(oneWay) (string, error) { return "k", nil }),
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

func TestDirectResults(t *testing.T) {
	t.Parallel()
	key := func(string) (string, error) { return "k", nil }
	t.Run("no JSON form", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, float64](key), func(context.Context, string) (float64, error) {
			return math.NaN(), nil
		})
		if out, err := h.Invoke(t.Context(), []byte(`"in"`)); err == nil || out != nil {
			t.Errorf("got %s, %v", out, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, any](key), func(context.Context, string) (any, error) { return nil, nil })
		for range 2 {
			if out, err := h.Invoke(t.Context(), []byte(`"in"`)); string(out) != "null" || err != nil {
				t.Errorf("got %s, %v", out, err)
			}
		}
	})
	t.Run("a type that JSON can't give back", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, fmt.Stringer](key), func(context.Context, string) (fmt.Stringer, error) {
			return time.Second, nil
		})
		if re, err := h.Handle(t.Context(), "in"); re != time.Second || err != nil {
			t.Errorf("first: got %v, %v", re, err)
		}
		if re, err := h.Handle(t.Context(), "in"); re != nil || !errors.Is(err, idem.ErrCorrupt) {
			t.Errorf("replay: got %v, %v", re, err)
		}
		for range 2 {
			if out, err := h.Invoke(t.Context(), []byte(`"in"`)); string(out) != "1000000000" || err != nil {
				t.Errorf("Invoke: got %s, %v", out, err)
			}
		}
	})
	t.Run("too large to keep", func(t *testing.T) {
		t.Parallel()
		runs := 0
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, string](key), func(context.Context, string) (string, error) {
			runs++
			return strings.Repeat("x", defaults.MaxBody), nil
		})
		if re, err := h.Handle(t.Context(), "in"); len(re) != defaults.MaxBody || err != nil {
			t.Errorf("first: %d bytes, %v", len(re), err)
		}
		if _, err := h.Handle(t.Context(), "in"); !errors.Is(err, idem.ErrNotKept) || runs != 1 {
			t.Errorf("second: %v, %d runs", err, runs)
		}
	})
	t.Run("of a phase", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(context.Context) (string, error){
			"Respond": func(context.Context) (string, error) { return "", idem.Respond("stored") },
			"Finish": func(ctx context.Context) (string, error) {
				return idem.Finish(ctx, func(context.Context, *idem.Tx) (string, error) { return "stored", nil })
			},
		} {
			h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, string](key), func(ctx context.Context, _ string) (string, error) {
				return end(ctx)
			})
			for range 2 {
				if re, err := h.Handle(t.Context(), "in"); re != "stored" || err != nil {
					t.Errorf("%s: got %q, %v", name, re, err)
				}
			}
			if out, err := h.Invoke(t.Context(), []byte(`"in"`)); string(out) != `"stored"` || err != nil {
				t.Errorf("%s: got %s, %v", name, out, err)
			}
		}
	})
	t.Run("of a phase, without a body", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, string](key), func(context.Context, string) (string, error) {
			return "", idem.Respond(idem.Response{Status: 204})
		})
		for range 2 {
			if out, err := h.Invoke(t.Context(), []byte(`"in"`)); string(out) != "null" || err != nil {
				t.Errorf("got %s, %v", out, err)
			}
			if re, err := h.Handle(t.Context(), "in"); re != "" || err != nil {
				t.Errorf("got %q, %v", re, err)
			}
		}
	})
	t.Run("of a phase, of another type", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[string, string](key), func(context.Context, string) (string, error) {
			return "", idem.Respond(42)
		})
		if re, err := h.Handle(t.Context(), "in"); re != "" || !errors.Is(err, idem.ErrResult) {
			t.Errorf("got %q, %v", re, err)
		}
	})
}

func TestDirectWithoutEngine(t *testing.T) {
	t.Parallel()
	store := &watched{}
	h, runs, fail := charging(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOff }))
	for i, id := range []string{"o-1", "o-1", ""} {
		if re, err := h.Handle(t.Context(), order{ID: id}); re.Run != i+1 || err != nil {
			t.Errorf("got %+v, %v", re, err)
		}
	}
	*fail = errBad
	if _, err := h.Invoke(t.Context(), []byte(`{}`)); err != errBad { //nolint:errorlint // this very value
		t.Errorf("got %v", err)
	}
	if *runs != 4 {
		t.Errorf("%d runs", *runs)
	}
	store.untouched(t)
}

func TestDirectBadPayload(t *testing.T) {
	t.Parallel()
	store := &watched{}
	h, runs, _ := charging(idem.New(store, callertest.Anybody))
	for _, payload := range []string{``, `{`, `[]`, `{"id":1}`, `"warm"`} {
		if out, err := h.Invoke(t.Context(), []byte(payload)); !errors.Is(err, lambda.ErrEvent) || out != nil {
			t.Errorf("%q: got %s, %v", payload, out, err)
		}
	}
	if *runs != 0 {
		t.Errorf("%d runs", *runs)
	}
	store.untouched(t)
	defer func() {
		if r := recover(); r == nil {
			t.Error("no panic for a nil key")
		}
	}()
	lambda.Direct[order, receipt, func(order) (string, error)](nil)
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
