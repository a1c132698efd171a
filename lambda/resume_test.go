package lambda_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// resumable is an engine whose operations a completer may take up, on a clock
// that tests move.
func resumable(store store.Store, now *time.Time, optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(store, append([]func(*idem.Options){callertest.Anybody}, append(optFns, func(o *idem.Options) {
		o.Function = cmp.Or(o.Function, "f")
		o.Resumable, o.Now, o.MaxTries = true, func() time.Time { return *now }, 2
	})...)...)
}

// ticket is for the only record in store.
func ticket(t *testing.T, store *idem.MemoryStore) jobs.Ticket {
	t.Helper()
	recs := store.Records()
	if len(recs) != 1 {
		t.Fatalf("%d records, want 1", len(recs))
	}
	for _, r := range recs {
		return state.TicketFor(r)
	}
	return jobs.Ticket{}
}

func resume(t *testing.T, h awslambda.Handler, tk jobs.Ticket) envelope.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	out, err := h.Invoke(ctx, envelope.EncodeTicket(tk))
	if err != nil {
		t.Fatal(err)
	}
	o, err := envelope.ParseOutcome(out)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// An operation whose process died is completed without its client: the handler
// gets the same body and user, phases that are committed don't run again, and
// the client that comes back gets the answer.
func TestCompleterResumesThroughTheEnvelope(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		store := new(idem.MemoryStore)
		charges, dies := 0, true
		var bodies [][]byte
		h := s.wrap(resumable(store, &now), func(ctx context.Context, body []byte) (idem.Response, error) {
			bodies = append(bodies, body)
			id, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) {
				charges++
				return "ch_1", nil
			})
			if err != nil {
				return idem.Response{}, err
			}
			if dies {
				panic("the process dies")
			}
			return idem.Response{Status: 201, Body: []byte(id)}, nil
		})
		c := newCall("k")
		c.user = "jane"
		func() {
			defer func() { _ = recover() }()
			s.send(t, h, c)
		}()
		dies = false
		now = now.Add(time.Hour)
		stale := ticket(t, store)
		if o := resume(t, h, stale); o.Kind != envelope.Done {
			t.Fatalf("got %+v, want done", o)
		}
		if o := resume(t, h, stale); o.Kind != envelope.Moved {
			t.Errorf("the ticket again: %+v, want moved", o)
		}
		if charges != 1 || len(bodies) != 2 || !bytes.Equal(bodies[0], bodies[1]) {
			t.Errorf("%d charges, bodies %q", charges, bodies)
		}
		s.send(t, h, c).accepted(t, 201, "ch_1", true)
	})
}

func TestResumeSaysWhatBecameOfATicket(t *testing.T) {
	t.Parallel()
	s := httpAPI
	now := time.Now()
	store := new(idem.MemoryStore)
	var fail func() error
	h := s.wrap(resumable(store, &now), func(ctx context.Context, _ []byte) (idem.Response, error) {
		if _, err := idem.Foreign(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{Status: 200}, fail()
	})
	down := errors.New("the provider is down")
	fail = func() error {
		if o := resume(t, h, ticket(t, store)); o.Kind != envelope.InFlight || o.RetryAfter <= 0 {
			t.Errorf("while it runs: %+v", o)
		}
		return down
	}
	s.send(t, h, newCall("k"))
	fail = func() error { return down }
	now = now.Add(time.Hour)
	if o := resume(t, h, ticket(t, store)); o.Kind != envelope.Failed || !strings.Contains(o.Error, down.Error()) {
		t.Errorf("a failed try: %+v", o)
	}
	fail = func() error { panic("a secret") }
	now = now.Add(time.Hour)
	if o := resume(t, h, ticket(t, store)); o.Kind != envelope.Failed || !strings.Contains(o.Error, "panic") || strings.Contains(o.Error, "secret") {
		t.Errorf("a panic: %+v", o)
	}
	now = now.Add(time.Hour)
	if o := resume(t, h, ticket(t, store)); o.Kind != envelope.Stuck {
		t.Errorf("after MaxTries: %+v", o)
	}
}

// Typed events are run again as well, and answer with the same bytes later.
func TestDirectResumes(t *testing.T) {
	t.Parallel()
	type order struct{ ID string }
	now := time.Now()
	store := new(idem.MemoryStore)
	dies := true
	h := lambda.Wrap(resumable(store, &now), lambda.Direct[order, string](func(o order) (string, error) { return o.ID, nil }),
		func(ctx context.Context, o order) (string, error) {
			if _, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			if dies {
				return "", errors.New("down")
			}
			return "receipt of " + o.ID, nil
		}, named("charges"))
	payload := []byte(`{"ID":"o-1"}`)
	if _, err := h.Invoke(t.Context(), payload); err == nil {
		t.Fatal("no error")
	}
	dies = false
	now = now.Add(time.Hour)
	if o := resume(t, h, ticket(t, store)); o.Kind != envelope.Done {
		t.Fatalf("got %+v", o)
	}
	out, err := h.Invoke(t.Context(), payload)
	if err != nil || string(out) != `"receipt of o-1"` {
		t.Errorf("got %s, %v", out, err)
	}
}

// What comes through a gateway is an event, whatever its body says; and whoever
// invokes the function with a forged ticket learns and changes nothing.
func TestForgedEnvelopes(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		store := new(idem.MemoryStore)
		h, runs := counted(created)
		wrapped := s.wrap(resumable(store, &now), h)
		c := newCall("k")
		s.send(t, wrapped, c)
		tk := ticket(t, store)

		inBody := newCall("k2")
		inBody.body = envelope.EncodeTicket(tk)
		s.send(t, wrapped, inBody).accepted(t, 201, "made: "+string(inBody.body), false)
		ran(t, runs, 2)

		for name, forged := range map[string]jobs.Ticket{
			"of a finished operation": tk,
			"of another owner":        {PK: tk.PK, Owner: "me", Ver: tk.Ver},
			"of no record":            {PK: tk.PK + "x", Owner: "me", Ver: 1},
			"of another namespace":    {PK: "v1#other#x", Owner: "me", Ver: 1},
		} {
			if o := resume(t, wrapped, forged); o.Kind != envelope.Moved {
				t.Errorf("%s: %+v, want moved", name, o)
			}
		}
		ran(t, runs, 2)
	})
}

func TestResumeRefusesWhatIsNoTicket(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := httpAPI.wrap(resumable(new(idem.MemoryStore), &now), created)
	for _, payload := range []string{
		`{"samekey":{}}`, `{"samekey":{"resume":{"pk":"v1#","owner":"o"}}}`, `{"samekey":{"resume":{"pk":"","owner":"o","ver":1}}}`,
	} {
		if out, err := h.Invoke(t.Context(), []byte(payload)); err == nil || !strings.Contains(err.Error(), "envelope") {
			t.Errorf("%s: %s, %v", payload, out, err)
		}
	}
	var more map[string]any
	if err := json.Unmarshal(envelope.EncodeTicket(jobs.Ticket{PK: "p", Owner: "o", Ver: 1}), &more); err != nil {
		t.Fatal(err)
	}
	more["version"] = "2.0"
	payload, _ := json.Marshal(more)
	if _, err := h.Invoke(t.Context(), payload); !errors.Is(err, lambda.ErrEvent) {
		t.Errorf("an event with a member samekey: %v, want ErrEvent", err)
	}
}

// An adapter without the inverse says so, and changes nothing.
func TestResumeNeedsAnInverse(t *testing.T) {
	t.Parallel()
	a := lambda.HTTPAPI
	a.Event = nil
	now := time.Now()
	store := new(idem.MemoryStore)
	h := wrapped(a)(resumable(store, &now), created)
	if o := resume(t, h, jobs.Ticket{PK: "v1##x", Owner: "o", Ver: 1}); o.Kind != envelope.Failed || !strings.Contains(o.Error, "Event") {
		t.Errorf("got %+v", o)
	}
}

// A source that delivers again needs nothing stored.
func TestEachStoresNoRequest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := new(idem.MemoryStore)
	var ran, stored atomic.Int64 // records of a batch run side by side
	h := lambda.WrapEach(resumable(store, &now), lambda.SQS, func(context.Context, events.SQSMessage) error {
		ran.Add(1)
		for _, r := range store.Records() {
			if r.Input != nil {
				stored.Add(1)
			}
		}
		return nil
	})
	if _, err := h.Invoke(t.Context(), loadBatch(t, "sqs")); err != nil {
		t.Fatal(err)
	}
	if ran.Load() == 0 || stored.Load() != 0 {
		t.Errorf("%d messages ran, %d times a message was stored with its claim", ran.Load(), stored.Load())
	}
}

// A client may retry through another kind of event, whose handler then owns the
// operation. A record that has the request in the first one's words would lose its
// caller there: the handler isn't run for nobody.
func TestResumeLosesNoCaller(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := new(idem.MemoryStore)
	e := resumable(store, &now)
	runs := 0
	fails := func() error { runs++; return errors.New("the provider is down") }
	rest := lambda.Wrap(e, lambda.REST, func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{}, fails()
	}, named("rest"))
	http := lambda.Wrap(e, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { return v2Response{}, fails() }, named("http"))

	var first events.APIGatewayProxyRequest
	first.HTTPMethod, first.Resource, first.Path, first.Body = "POST", "/rides", "/rides", "{}"
	first.Headers = map[string]string{"Idempotency-Key": "k"}
	first.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "pool", "sub": "jane"}}
	second := post("k", "{}")
	second.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "pool", "sub": "jane"}},
	}
	if re, err := rest.Handle(t.Context(), first); re.StatusCode != 500 || err != nil {
		t.Fatalf("got %+v, %v", re, err)
	}
	if re, err := http.Handle(t.Context(), second); re.StatusCode != 500 || err != nil || runs != 2 {
		t.Fatalf("got %+v, %v after %d runs", re, err, runs)
	}
	now = now.Add(time.Hour)
	if o := resume(t, http, ticket(t, store)); o.Kind != envelope.Failed || !strings.Contains(o.Error, "caller") || runs != 2 {
		t.Errorf("got %+v after %d runs, want failed after 2", o, runs)
	}
}

// A wrapper in a wrapper, resumed: the inner one finds no key, and its phase has the derived key of
// the first try, also if a generated key would be another.
func TestNestedWrapResumed(t *testing.T) {
	t.Parallel()
	for _, mode := range []idem.KeyMode{idem.KeyRequired, idem.KeyGenerate} {
		now := time.Now()
		store := new(idem.MemoryStore)
		e := resumable(store, &now, func(o *idem.Options) { o.Key = mode })
		dies, keys := true, make(map[string]int)
		inner := lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ v2Request) (v2Response, error) {
			if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { keys[tx.Key("payments")]++; return 1, nil }); err != nil {
				return v2Response{}, err
			}
			if dies {
				panic("dies")
			}
			return v2Response{StatusCode: 201}, nil
		}, named("inner"))
		outer := lambda.Wrap(e, lambda.HTTPAPI, inner.Handle, named("outer"))
		_ = panicOf(func() { _, _ = outer.Handle(t.Context(), post("k", "")) })
		dies = false
		now = now.Add(time.Hour)
		if o := resume(t, outer, ticket(t, store)); o.Kind != envelope.Done || len(keys) != 1 {
			t.Errorf("mode %d: got %+v, charged under the keys %v", mode, o, keys)
		}
	}
}

// A handler's own error that is another operation's is taken for the ticket's.
func TestOutcomeOfInnerError(t *testing.T) {
	t.Parallel()
	for _, own := range []error{jobs.ErrMoved, idem.ErrStuck, idem.ErrInFlight, idem.ErrLeaseLost} {
		now := time.Now()
		store := new(idem.MemoryStore)
		e := resumable(store, &now)
		type re = v2Response
		h := lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ v2Request) (re, error) {
			if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return re{}, err
			}
			return re{}, &idem.Error{Op: "inner", Err: own} // a nested operation of another key
		}, named("outer"))
		_, _ = h.Handle(t.Context(), post("k", ""))
		now = now.Add(time.Hour)
		o := resume(t, h, ticket(t, store))
		for _, r := range store.Records() {
			if o.Kind != envelope.Failed {
				t.Errorf("own error %v: outcome %q, want failed; the record is %q, try %d", own, o.Kind, r.State, r.Tries)
			}
		}
	}
}

// The inner wrapper is of another namespace on the same table: its operation is done once, with the client's key, and again without any when resumed.
func TestResumedInnerOfOtherNamespace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := new(idem.MemoryStore)
	outerE := resumable(st, &now)
	innerE := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.Namespace = "payments"; o.Now = func() time.Time { return now } })
	dies := true
	charges := 0
	type re = v2Response
	inner := lambda.Wrap(innerE, lambda.HTTPAPI, func(context.Context, v2Request) (re, error) {
		charges++
		return re{StatusCode: 201}, nil
	}, named("inner"))
	outer := lambda.Wrap(outerE, lambda.HTTPAPI, func(ctx context.Context, ev v2Request) (re, error) {
		if _, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return re{}, err
		}
		out, err := inner.Handle(ctx, ev)
		if dies {
			panic("dies")
		}
		return out, err
	}, named("outer"))
	_ = panicOf(func() { _, _ = outer.Handle(t.Context(), post("k", "")) })
	dies = false
	now = now.Add(time.Hour)
	var tk jobs.Ticket
	for _, r := range st.Records() {
		if r.State == store.Open {
			tk = state.TicketFor(r)
		}
	}
	o := resume(t, outer, tk)
	if charges != 1 {
		t.Errorf("%d charges, outcome %+v", charges, o)
	}
}

// unsure is a store that goes down with the write that gives an operation up, before
// or after it is applied.
type unsure struct {
	*idem.MemoryStore
	down, applies bool
}

func (s *unsure) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if !s.down || c.Next.State != store.Stuck {
		return s.MemoryStore.Commit(ctx, c)
	}
	if s.applies {
		if _, err := s.MemoryStore.Commit(ctx, c); err != nil {
			return nil, err
		}
	}
	return nil, store.ErrUnknown
}

func (s *unsure) Load(ctx context.Context, pk string) (*store.Record, error) {
	if s.down {
		return nil, errors.New("no connection")
	}
	return s.MemoryStore.Load(ctx, pk)
}

// A ticket is dropped as stuck only if the record is known to say so: otherwise
// nobody would ever be told of the operation.
func TestTicketIsKeptUntilTheRecordIsStuck(t *testing.T) {
	t.Parallel()
	for name, applies := range map[string]bool{"the write is lost": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := new(idem.MemoryStore)
				s := &unsure{MemoryStore: mem, applies: applies}
				now := time.Now()
				h := lambda.Wrap(resumable(s, &now), lambda.HTTPAPI, func(ctx context.Context, _ v2Request) (re v2Response, _ error) {
					if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
						return re, err
					}
					return re, errors.New("the provider is down")
				}, named("charges"))
				if _, err := h.Handle(t.Context(), post("k", "")); err != nil {
					t.Fatal(err)
				}
				try := func(want envelope.Kind) {
					t.Helper()
					now = now.Add(time.Hour)
					if o := resume(t, h, ticket(t, mem)); o.Kind != want {
						t.Errorf("%+v, want %s", o, want)
					}
				}
				try(envelope.Failed)
				try(envelope.Failed)
				s.down = true
				try(envelope.Failed) // it is to be given up, and nobody knows whether it is
				s.down = false
				if applies {
					try(envelope.Moved) // the record has said stuck since
				} else {
					try(envelope.Stuck)
				}
				for _, r := range mem.Records() {
					if r.State != store.Stuck {
						t.Errorf("the record is %s", r.State)
					}
				}
			})
		})
	}
}

// A generated key makes an operation, so that handlers with phases run. A handler
// inside of an operation has no other one without a key of its own: its phases
// commit with those around it, once for all.
func TestGeneratedKeyOfANestedHandler(t *testing.T) {
	t.Parallel()
	store := process{&idem.MemoryStore{}}
	e := func() *idem.Engine {
		return idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
	}
	charge := func(ctx context.Context, o order) (receipt, error) {
		n, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { return len(tx.Key("payments")), nil })
		return receipt{Order: o.ID, Run: n}, err
	}
	inner := lambda.Wrap(e(), lambda.Direct[order, receipt](orderID), charge)
	outer := lambda.Wrap(e(), lambda.Direct[order, receipt](orderID), inner.Handle)
	if re, err := outer.Handle(t.Context(), order{}); re.Run == 0 || err != nil {
		t.Errorf("got %+v, %v", re, err)
	}
	records := slices.Collect(maps.Values(store.Records()))
	if len(records) != 1 || len(records[0].Phases) != 1 {
		t.Errorf("the records are %+v, want one with the phase", records)
	}
}

// The same over HTTP.
func TestGeneratedKeyOfANestedRequest(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := &idem.MemoryStore{}
		e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
		h, runs := counted(created)
		inner := idem.Request{Method: "POST", Path: "/inner"}
		a := s.send(t, s.wrap(e, func(ctx context.Context, body []byte) (idem.Response, error) {
			res, err := e.Serve(ctx, inner, func(ctx context.Context) (idem.Response, error) { return h(ctx, body) })
			return res.Response, err
		}), withoutKey())
		a.accepted(t, 201, createdBody, false)
		ran(t, runs, 1)
		if n := len(store.Records()); n != 1 {
			t.Errorf("%d records, want one for both", n)
		}
	})
}

// dead is a store whose process dies in a handler, and the time until its lease is over.
func dead(now *time.Time) (alive *idem.MemoryStore, engine *idem.Engine, dies func(), over func()) {
	alive = new(idem.MemoryStore)
	faulty := idemtest.Faulty(alive, nil)
	return alive, resumable(faulty, now), faulty.Crash, func() { *now = now.Add(time.Hour) }
}

// A payload that is run again from its record is done although its key can't be found any more,
// and although its result has no JSON form.
func TestPayloadIsRunAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	alive, engine, dies, over := dead(&now)
	named := named("pay")
	first := lambda.Wrap(engine, lambda.Direct[order, any](orderID), func(context.Context, order) (any, error) { dies(); return nil, errors.New("died") }, named)
	if _, err := first.Handle(t.Context(), order{ID: "1"}); err == nil {
		t.Fatal("it didn't die")
	}
	over()
	runs := 0
	noKey := func(order) (string, error) { return "", errors.New("no key any more") }
	again := lambda.Wrap(resumable(alive, &now), lambda.Direct[order, any](noKey), func(context.Context, order) (any, error) {
		runs++
		return func() {}, nil
	}, named)
	if o := resume(t, again, ticket(t, alive)); o.Kind != envelope.Done || runs != 1 {
		t.Errorf("got %+v after %d runs", o, runs)
	}
	if _, err := lambda.Wrap(resumable(process{alive}, &now), lambda.Direct[order, any](orderID), func(context.Context, order) (any, error) { runs++; return nil, nil }, named).
		Handle(t.Context(), order{ID: "1"}); !errors.Is(err, idem.ErrNotKept) || runs != 1 {
		t.Errorf("its caller gets %v after %d runs, want ErrNotKept", err, runs)
	}
}

// A stored request from which no event can be made, or an answer that can't be made neutral,
// fails its ticket, and so does an event that can't be read.
func TestRequestThatCannotBeRunAgain(t *testing.T) {
	t.Parallel()
	failing := errors.New("it can't be made")
	for name, breaks := range map[string]func(*lambda.Adapter[v2Request, v2Response]){
		"the event": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Event = func(idem.Request) (v2Request, error) { return v2Request{}, failing }
		},
		"its request": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Request = func(context.Context, v2Request) (idem.Request, error) { return idem.Request{}, failing }
		},
		"the answer": func(a *lambda.Adapter[v2Request, v2Response]) {
			a.Response = func(v2Response) (idem.Response, error) { return idem.Response{}, failing }
		},
	} {
		now := time.Now()
		alive, engine, dies, over := dead(&now)
		named := named("pay")
		first := lambda.Wrap(engine, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { dies(); return v2Response{}, failing }, named)
		if _, err := first.Handle(t.Context(), post("k", "")); err != nil {
			t.Fatal(err)
		}
		over()
		api, runs := lambda.HTTPAPI, 0
		breaks(&api)
		h := lambda.Wrap(resumable(alive, &now), api, func(context.Context, v2Request) (re v2Response, _ error) { runs++; return re, nil }, named)
		if o := resume(t, h, ticket(t, alive)); o.Kind != envelope.Failed || (runs == 1) != (name == "the answer") {
			t.Errorf("%s: got %+v after %d runs", name, o, runs)
		}
	}
}

// An adapter may say how a phase's answer becomes a response, also in a run from the record.
func TestAdapterConvertsAnswers(t *testing.T) {
	t.Parallel()
	api, converted := lambda.HTTPAPI, 0
	api.Request = func(ctx context.Context, ev v2Request) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		req.Answer = func(any) (idem.Response, error) { converted++; return idem.Response{Status: 207}, nil }
		return req, err
	}
	h := lambda.Wrap(anEngine(), api, answersInAPhase)
	if re, err := h.Handle(t.Context(), post("k", "")); err != nil || re.StatusCode != 207 || converted != 1 {
		t.Errorf("got %+v, %v, converted %d times", re, err, converted)
	}
	typed := lambda.Direct[order, int](orderID)
	read := typed.Request
	typed.Request = func(ctx context.Context, o order) (idem.Request, error) {
		req, err := read(ctx, o)
		req.Answer = func(any) (idem.Response, error) { converted++; return idem.Response{Body: []byte("7")}, nil }
		return req, err
	}
	d := lambda.Wrap(anEngine(), typed, func(ctx context.Context, _ order) (int, error) {
		_, err := answersInAPhase(ctx, v2Request{})
		return 0, err
	})
	if got, err := d.Handle(t.Context(), order{ID: "1"}); err != nil || got != 7 || converted != 2 {
		t.Errorf("got %d, %v, converted %d times", got, err, converted)
	}
}

// answersInAPhase is a handler whose phase answers.
func answersInAPhase(ctx context.Context, _ v2Request) (v2Response, error) {
	_, err := idem.Atomic(ctx, "phase", func(context.Context, *idem.Tx) (int, error) { return 0, idem.Respond(v2Response{StatusCode: 422}) })
	return v2Response{StatusCode: 500}, err
}

// A ticket that no engine has is over; one that an engine has, but none of its routes, is not
// this function's, in whatever order the engines are asked.
func TestRouterTellsWhoseATicketIs(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"has it", "another"}, {"another", "has it"}, {"another", "has it", "a third"}} {
		now := time.Now()
		alive, engine, dies, over := dead(&now)
		first := lambda.Wrap(engine, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { dies(); return v2Response{}, errors.New("died") },
			func(o *lambda.HandlerOptions) { o.Name = "gone" })
		if _, err := first.Handle(t.Context(), post("k", "")); err != nil {
			t.Fatal(err)
		}
		over()
		r := lambda.NewRouter(lambda.HTTPAPI)
		for _, name := range order {
			st := store.Store(new(idem.MemoryStore))
			if name == "has it" {
				st = alive
			}
			r.Keyed("POST /"+name[:1]+name[len(name)-1:], resumable(st, &now), func(context.Context, v2Request) (re v2Response, _ error) { return re, nil })
		}
		if o := resume(t, r, ticket(t, alive)); o.Kind != envelope.NotMine {
			t.Errorf("%v: got %+v, want that it is another function's", order, o)
		}
	}
}
