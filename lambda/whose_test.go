package lambda_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

// Of a handler without a name, or two with the same one, on a Resumable engine, an
// abandoned request would end in the wrong one: in the other, or in the one that took
// its place under another route. It shows at cold start.
func TestWrapOnAResumableEngineWantsAName(t *testing.T) {
	t.Parallel()
	now := time.Now()
	panics := func(fn func()) (text string) {
		defer func() { text, _ = recover().(string) }()
		fn()
		return ""
	}
	for name, tc := range map[string]struct {
		optFns []func(*idem.Options)
		names  []string
		want   string // in the panic; "" for none
	}{
		"without a name":           {nil, []string{""}, "no name"},
		"two names":                {nil, []string{"charges", "refunds"}, ""},
		"one name twice":           {nil, []string{"charges", "charges"}, `"charges"`},
		"nothing is completed":     {[]func(*idem.Options){func(o *idem.Options) { o.Resumable = false }}, []string{"", ""}, ""},
		"nothing is done about it": {[]func(*idem.Options){func(o *idem.Options) { o.Function, o.Mode, o.Resumable = "f", idem.ModeOff, false }}, []string{"", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := idem.New(new(idem.MemoryStore), append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) {
				o.Function, o.Resumable, o.Now = "f", true, func() time.Time { return now }
			}}, tc.optFns...)...)
			got := panics(func() {
				for _, n := range tc.names {
					lambda.Wrap(e, lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
						return events.APIGatewayV2HTTPResponse{}, nil
					}, named(n))
				}
			})
			if (got != "") != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("panicked with %q, want %q", got, tc.want)
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
			if due := jobs.TicketFor(rec).From(now); due.Tenant != "jane" {
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
