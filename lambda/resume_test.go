package lambda_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/internal/envelope"
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
		return jobs.TicketFor(r)
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
func TestA22CompleterResumesThroughTheEnvelope(t *testing.T) {
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
	named := func(name string) func(*lambda.HandlerOptions) {
		return func(o *lambda.HandlerOptions) { o.Name = name }
	}
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
