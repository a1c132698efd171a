package lambda_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// panicOf is what f panics with, "" for nothing.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// Equal keys of two handlers are two operations: a refund of an order is not its
// charge.
func TestTwoDirectHandlersHaveTheirOwnKeys(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
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
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
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

// Handlers of one kind that are not told apart would take each other's work for
// done: the program doesn't start.
func TestHandlersThatShareKeysPanic(t *testing.T) {
	t.Parallel()
	direct := func(e *idem.Engine, optFns ...func(*lambda.HandlerOptions)) {
		lambda.Wrap(e, lambda.Direct[order, string](orderID), func(context.Context, order) (string, error) { return "", nil }, optFns...)
	}
	scoped := func(e *idem.Engine, optFns ...func(*lambda.HandlerOptions)) {
		own := func(o *lambda.DirectOptions[order]) {
			o.Scope = func(context.Context, order) (string, error) { return "acme", nil }
		}
		lambda.Wrap(e, lambda.Direct[order, string](orderID, own), func(context.Context, order) (string, error) { return "", nil }, optFns...)
	}
	topic := func(e *idem.Engine, name string) {
		lambda.WrapEach(e, lambda.SNS.WithName(name), func(context.Context, events.SNSEventRecord) error { return nil })
	}
	queue := func(e *idem.Engine) {
		lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error { return nil })
	}
	http := func(e *idem.Engine) {
		lambda.Wrap(e, lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{}, nil
		})
	}
	formerly := func(name, former string) func(*lambda.HandlerOptions) {
		return func(o *lambda.HandlerOptions) { o.Name, o.Operation = name, former }
	}
	for name, tc := range map[string]struct {
		wrap func(e *idem.Engine)
		want string // in the panic; "" for none
	}{
		"two Direct without a name":           {func(e *idem.Engine) { direct(e); direct(e) }, "HandlerOptions.Name"},
		"two Direct with one name":            {func(e *idem.Engine) { direct(e, named("a")); direct(e, named("a")) }, `"a"`},
		"one Direct has the other's former":   {func(e *idem.Engine) { direct(e, named("a")); direct(e, formerly("b", "a")) }, `"a"`},
		"two Direct that had no name":         {func(e *idem.Engine) { direct(e); direct(e, formerly("b", lambda.Unnamed)) }, "without a name"},
		"a name that is too long":             {func(e *idem.Engine) { direct(e, formerly("b", strings.Repeat("x", 257))) }, "256 bytes"},
		"one Direct has a name":               {func(e *idem.Engine) { direct(e); direct(e, named("a")) }, ""},
		"a scope of its own, without a name":  {func(e *idem.Engine) { scoped(e) }, "HandlerOptions.Name"},
		"a scope of its own, with a name":     {func(e *idem.Engine) { scoped(e, named("a")) }, ""},
		"a scope of its own, from before":     {func(e *idem.Engine) { scoped(e, formerly("", lambda.Unnamed)) }, ""},
		"two topics without a name":           {func(e *idem.Engine) { topic(e, ""); topic(e, "") }, "Batch.WithName"},
		"two topics with one name":            {func(e *idem.Engine) { topic(e, "a"); topic(e, "a") }, `"a"`},
		"two topics with names":               {func(e *idem.Engine) { topic(e, "a"); topic(e, "b") }, ""},
		"a topic with a name that's too long": {func(e *idem.Engine) { topic(e, strings.Repeat("x", 257)) }, "256 bytes"},
		"a queue, a topic, a Direct":          {func(e *idem.Engine) { queue(e); topic(e, ""); direct(e) }, ""},
		"a name for each kind":                {func(e *idem.Engine) { topic(e, "a"); direct(e, named("a")) }, ""},
		"two for HTTP":                        {func(e *idem.Engine) { http(e); http(e) }, ""}, // the path is in the fingerprint
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := panicOf(func() { tc.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody)) })
			if (said != "") != (tc.want != "") || !strings.Contains(said, tc.want) {
				t.Errorf("panicked with %q, want %q", said, tc.want)
			}
			if said := panicOf(func() { tc.wrap(idem.New(nil, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOff })) }); said != "" && !strings.Contains(said, "256") && !strings.Contains(said, "DirectOptions.Scope") {
				t.Errorf("a disabled engine keeps nothing apart: %q", said)
			}
		})
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

// Routes with one engine have the path between their keys, or else the route.
func TestRoutesThatSkipThePathHaveTheirOwnKeysByScopeRoute(t *testing.T) {
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
			e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Fingerprint.SkipPath, o.ScopeRoute = tc.skip, tc.scope })
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
