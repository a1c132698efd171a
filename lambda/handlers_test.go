package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// Equal keys of two handlers are two operations: a refund of an order is not its
// charge.
func TestTwoDirectHandlersHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	e := anEngine()
	answers := func(what string) *lambda.Handler[order, string] {
		return lambda.Wrap(e, lambda.Direct[order, string](orderID),
			func(context.Context, order) (string, error) { return what, nil }, named(what))
	}
	charge, refund := answers("charged"), answers("refunded")
	for range 2 {
		for want, h := range map[string]*lambda.Handler[order, string]{"charged": charge, "refunded": refund} {
			if got, err := h.Handle(t.Context(), order{ID: "o-1", Amount: 20}); got != want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
	}
}

// Each consumer of a topic's messages does its own work, also where two of them
// are in one function.
func TestTwoConsumersHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	e := anEngine()
	w := &worker{}
	for _, name := range []string{"mails", "ledger", ""} {
		h := lambda.WrapEach(e, quiet(lambda.SNS.WithName(name)), func(_ context.Context, r events.SNSEventRecord) error { return w.do(name) })
		for range 2 {
			if _, err := h.Handle(invoked(t.Context(), functionARN), events.SNSEvent{Records: []events.SNSEventRecord{notification("1")}}); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		w.ran(t, name)
	}
}

// A handler that gets a name, or another one, can keep the keys it had.
func TestAFormerNamesKeysAreFound(t *testing.T) {
	t.Parallel()
	store := process{&idem.MemoryStore{}}
	runs := 0
	call := func(name, operation string) {
		t.Helper()
		h := lambda.Wrap(idem.New(store, callertest.Anybody), lambda.Direct[order, string](orderID), func(context.Context, order) (string, error) {
			runs++
			return "", nil
		}, func(o *lambda.HandlerOptions) { o.Name, o.Operation = name, operation })
		if _, err := h.Handle(t.Context(), order{ID: "o-1"}); err != nil {
			t.Error(err)
		}
	}
	for i, step := range []struct {
		name, operation string
		runs            int
	}{
		{"", "", 1},
		{"charge", lambda.Unnamed, 1},
		{"charge", "", 2}, // another operation
		{"pay", "charge", 2},
		{"pay", "", 3},
		{"", lambda.Unnamed, 3},
		{"", "pay", 3},
	} {
		if call(step.name, step.operation); runs != step.runs {
			t.Errorf("step %d, %+v: %d runs", i, step, runs)
		}
	}
}

// What a record's scope says is what an operator reads: the operation, and then
// the scope as it would be without.
func TestTheOperationIsInTheScope(t *testing.T) {
	t.Parallel()
	store := &idem.MemoryStore{}
	h := lambda.WrapEach(idem.New(store, callertest.Anybody), lambda.SQS.WithName("a|b"), func(context.Context, events.SQSMessage) error { return nil })
	m := message("1", "")
	re, err := h.Handle(t.Context(), batch(m))
	reported(t, re, err)
	for _, r := range store.Records() {
		if want := "operation:a%7Cb|source:" + m.EventSourceARN; r.Scope != want {
			t.Errorf("scope %q, want %q", r.Scope, want)
		}
	}
}

// Routes with one engine have the path between their keys, or else what Scope returns.
func TestRoutesHaveTheirOwnKeysByPathOrScope(t *testing.T) {
	t.Parallel()
	type (
		in  = events.APIGatewayV2HTTPRequest
		out = events.APIGatewayV2HTTPResponse
	)
	for name, tc := range map[string]struct {
		skip, scope bool
		want        string
	}{
		"by the path":  {false, false, "422 "},
		"by the scope": {true, true, "200 refunded"},
		"by nothing":   {true, false, "200 charged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := anEngine(func(o *idem.Options) {
				if tc.skip {
					o.Fingerprint.FuncName = "body"
					o.Fingerprint.Func = func(r *idem.Request) ([]byte, error) { return r.Body, nil }
				}
				if tc.scope {
					o.Scope = func(_ context.Context, r *idem.Request) (string, error) { return r.Route, nil }
				}
			})
			router := lambda.NewRouter(lambda.HTTPAPI)
			answers := map[string]string{"/charge": "charged", "/refund": "refunded"}
			for path, said := range answers {
				router.Keyed("POST "+path, e, func(context.Context, in) (out, error) { return out{StatusCode: 200, Body: said}, nil })
			}
			got := ""
			for _, path := range []string{"/charge", "/refund"} {
				ev := in{RawPath: path, Headers: map[string]string{"idempotency-key": "k"}}
				ev.RequestContext.HTTP.Method = "POST"
				re, err := router.Handle(t.Context(), ev)
				if err != nil {
					t.Fatal(err)
				}
				if got = fmt.Sprint(re.StatusCode, " "); re.StatusCode == 200 {
					got += re.Body
				}
			}
			if got != tc.want {
				t.Errorf("refund: got %q, want %q", got, tc.want)
			}
		})
	}
}

// Functions that share a table without a Namespace don't end each other's
// operations, also those that have died before their first commit; a client's retry
// of one goes on, and so does its own function's completer.
func TestFunctionsOnOneTable(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, committed := range []bool{false, true} {
			now := time.Now()
			stX := new(idem.MemoryStore)
			function := func(st store.Store, name string, h handler) awslambda.Handler {
				return s.wrap(resumable(st, &now, func(o *idem.Options) { o.Function = name }), h)
			}
			made := 0
			refund := func(died func()) handler {
				return func(ctx context.Context, _ []byte) (idem.Response, error) {
					if committed {
						if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
							return idem.Response{}, err
						}
					}
					died()
					made++
					return idem.Response{Status: 201, Body: []byte("refunded")}, nil
				}
			}
			c := on("k", "POST", "/refunds")
			for _, back := range []string{"its client", "its completer"} {
				c.header.Set("Idempotency-Key", back[4:])
				faulty := idemtest.Faulty(process{stX}, nil)
				s.send(t, function(faulty, "refunds", refund(faulty.Crash)), c)
				made = 0
				now = now.Add(time.Hour)
				tk := open(t, stX)
				charges := function(process{stX}, "charges", func(context.Context, []byte) (idem.Response, error) {
					t.Error("the charges handler ran")
					return idem.Response{Status: 404, Body: []byte("no such charge")}, nil
				})
				for range 3 {
					if o := resume(t, charges, tk); o.Kind != envelope.NotMine || !strings.Contains(o.Error, "refunds") {
						t.Errorf("the other function: %+v, want not_mine", o)
					}
				}
				if after := open(t, stX); after != tk {
					t.Fatalf("the record was written: %+v, was %+v", after, tk)
				}
				refunds := function(process{stX}, "refunds", refund(func() {}))
				if back == "its client" {
					s.send(t, refunds, c).accepted(t, 201, "refunded", false)
				} else if o := resume(t, refunds, tk); o.Kind != envelope.Done {
					t.Errorf("its own function: %+v", o)
				}
				s.send(t, refunds, c).accepted(t, 201, "refunded", true)
				if made != 1 {
					t.Errorf("%s: refunded %d times", back, made)
				}
			}
		}
	})
}

// A renamed function says which one it was.
func TestRenamedFunction(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		st := new(idem.MemoryStore)
		function := func(name string) func(*idem.Options) { return func(o *idem.Options) { o.Function = name } }
		faulty := idemtest.Faulty(st, nil)
		c := newCall("k")
		s.send(t, s.wrap(resumable(faulty, &now, function("charges")), func(context.Context, []byte) (idem.Response, error) {
			faulty.Crash()
			return idem.Response{}, errors.New("died")
		}), c)
		now = now.Add(time.Hour)
		tk := open(t, st)
		if o := resume(t, s.wrap(resumable(st, &now, function("payments")), created), tk); o.Kind != envelope.NotMine {
			t.Errorf("without a word: %+v", o)
		}
		r := s.shop()
		r.keyed("POST /rides", resumable(st, &now, function("payments")), created, func(o *lambda.HandlerOptions) {
			o.Accepts = []store.HandlerID{{Function: "charges", Name: sourceName}}
		})
		if o := resume(t, r, tk); o.Kind != envelope.Done {
			t.Errorf("declared: %+v", o)
		}
		s.send(t, r, c).accepted(t, 201, createdBody, true)
	})
}

// A tenant's operation is completed in an invocation for that tenant, and in no
// other.
func TestTenantsOperationIsCompletedForIt(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		now := time.Now()
		store := new(idem.MemoryStore)
		faulty := idemtest.Faulty(store, nil)
		dying := s.wrap(resumable(faulty, &now), func(context.Context, []byte) (idem.Response, error) {
			faulty.Crash()
			return idem.Response{}, errors.New("died")
		})
		invoke := func(h awslambda.Handler, tenant string, payload []byte) []byte {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			defer cancel()
			if tenant != "" {
				ctx = asTenant(ctx, tenant)
			}
			out, err := h.Invoke(ctx, payload)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		invoke(dying, "jane", s.payload(t, newCall("k")))
		now = now.Add(time.Hour)
		tk := open(t, store)
		for _, rec := range store.Records() {
			if due := state.TicketFor(rec).From(now); due.Tenant != "jane" {
				t.Errorf("the ticket is for the tenant %q", due.Tenant)
			}
		}
		h, runs := counted(created)
		wrapped := s.wrap(resumable(store, &now), h)
		for _, tenant := range []string{"omar", ""} {
			o, err := envelope.ParseOutcome(invoke(wrapped, tenant, envelope.EncodeTicket(tk)))
			if err != nil || o.Kind != envelope.NotMine || strings.Contains(o.Error, "jane") {
				t.Errorf("for the tenant %q: %+v, %v", tenant, o, err)
			}
		}
		ran(t, runs, 0)
		if o, err := envelope.ParseOutcome(invoke(wrapped, "jane", envelope.EncodeTicket(tk))); err != nil || o.Kind != envelope.Done {
			t.Errorf("for its own: %+v, %v", o, err)
		}
		ran(t, runs, 1)
		s.result(t, invoke(wrapped, "jane", s.payload(t, newCall("k")))).accepted(t, 201, createdBody, true)
	})
}
