package lambda_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

func named(name string) func(*lambda.HandlerOptions) {
	return func(o *lambda.HandlerOptions) { o.Name = name }
}

func keyedEvent(key string) events.APIGatewayV2HTTPRequest {
	ev := events.APIGatewayV2HTTPRequest{RawPath: "/x", Headers: map[string]string{"idempotency-key": key}}
	ev.RequestContext.HTTP.Method = "POST"
	return ev
}

// A wrapper in a wrapper, resumed: the inner one finds no key.
func TestNestedWrapResumed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := new(idem.MemoryStore)
	e := resumable(store, &now)
	dies := true
	type re = events.APIGatewayV2HTTPResponse
	inner := lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (re, error) {
		if _, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return re{}, err
		}
		if dies {
			panic("dies")
		}
		return re{StatusCode: 201}, nil
	}, named("inner"))
	outer := lambda.Wrap(e, lambda.HTTPAPI, inner.Handle, named("outer"))
	func() {
		defer func() { _ = recover() }()
		_, _ = outer.Handle(t.Context(), keyedEvent("k"))
	}()
	dies = false
	now = now.Add(time.Hour)
	if o := resume(t, outer, ticket(t, store)); o.Kind != envelope.Done {
		t.Errorf("got %+v, want done", o)
	}
}

// A handler's own error that is another operation's is taken for the ticket's.
func TestOutcomeOfInnerError(t *testing.T) {
	t.Parallel()
	for _, own := range []error{jobs.ErrMoved, idem.ErrStuck, idem.ErrInFlight, idem.ErrLeaseLost} {
		now := time.Now()
		store := new(idem.MemoryStore)
		e := resumable(store, &now)
		type re = events.APIGatewayV2HTTPResponse
		h := lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (re, error) {
			if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				return re{}, err
			}
			return re{}, &idem.Error{Op: "inner", Err: own} // a nested operation of another key
		}, named("outer"))
		_, _ = h.Handle(t.Context(), keyedEvent("k"))
		now = now.Add(time.Hour)
		o := resume(t, h, ticket(t, store))
		for _, r := range store.Records() {
			if o.Kind != envelope.Failed {
				t.Errorf("own error %v: outcome %q, want failed; the record is %q, try %d", own, o.Kind, r.State, r.Tries)
			}
		}
	}
}

// The same with KeyGenerate: the inner wrapper makes a key of its own, so every try charges under a new derived key.
func TestNestedGenerateChargesAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	store := new(idem.MemoryStore)
	e := resumable(store, &now, func(o *idem.Options) { o.Key = idem.KeyGenerate })
	dies := true
	keys := map[string]int{}
	type re = events.APIGatewayV2HTTPResponse
	inner := lambda.Wrap(e, lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (re, error) {
		if _, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { keys[tx.Key("payments")]++; return 1, nil }); err != nil {
			return re{}, err
		}
		if dies {
			panic("dies")
		}
		return re{StatusCode: 201}, nil
	}, named("inner"))
	outer := lambda.Wrap(e, lambda.HTTPAPI, inner.Handle, named("outer"))
	func() {
		defer func() { _ = recover() }()
		_, _ = outer.Handle(t.Context(), keyedEvent("k"))
	}()
	dies = false
	now = now.Add(time.Hour)
	o := resume(t, outer, ticket(t, store))
	if len(keys) != 1 {
		t.Errorf("%d derived keys (charges) for one request: %v; outcome %+v", len(keys), keys, o)
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
	type re = events.APIGatewayV2HTTPResponse
	inner := lambda.Wrap(innerE, lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (re, error) {
		charges++
		return re{StatusCode: 201}, nil
	}, named("inner"))
	outer := lambda.Wrap(outerE, lambda.HTTPAPI, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (re, error) {
		if _, err := idem.Atomic(ctx, "order", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return re{}, err
		}
		out, err := inner.Handle(ctx, ev)
		if dies {
			panic("dies")
		}
		return out, err
	}, named("outer"))
	func() {
		defer func() { _ = recover() }()
		_, _ = outer.Handle(t.Context(), keyedEvent("k"))
	}()
	dies = false
	now = now.Add(time.Hour)
	var tk jobs.Ticket
	for _, r := range st.Records() {
		if r.State == store.Open {
			tk = jobs.TicketFor(r)
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
				h := lambda.Wrap(resumable(s, &now), lambda.HTTPAPI, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (re events.APIGatewayV2HTTPResponse, _ error) {
					if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
						return re, err
					}
					return re, errors.New("the provider is down")
				}, named("charges"))
				if _, err := h.Handle(t.Context(), keyedEvent("k")); err != nil {
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
