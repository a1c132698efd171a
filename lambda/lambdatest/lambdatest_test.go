package lambdatest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/failtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // processes crash on purpose here
	os.Exit(m.Run())
}

func post(body string) request {
	ev := request{RawPath: "/orders", Body: body, Headers: map[string]string{"idempotency-key": "7f0c"}}
	ev.RequestContext.HTTP.Method = "POST"
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	return ev
}

// payer pays; derived: with the key of the operation.
type payer struct {
	w       *idemtest.World
	derived bool
}

func (p payer) pay(ctx context.Context, ev request) (response, error) {
	id, err := idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (string, error) {
		key := rand.Text()
		if p.derived {
			key = tx.Key("payments")
		}
		e, err := p.w.Call(ctx, "charge", key, ev.Body)
		return e.ID, err
	})
	return response{StatusCode: 201, Body: id, Headers: map[string]string{"X-Trace": rand.Text(), "Location": "/orders/1"}, Cookies: []string{"a=b"}}, err
}

func one(t testing.TB, w *idemtest.World, answer response) {
	t.Helper()
	if answer.StatusCode != 201 || len(w.Provider.Effects()) != 1 || string(w.Provider.Effects()[0].Body) != `"20"` {
		t.Errorf("%+v, %+v", answer, w.Provider.Effects())
	}
}

func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	runs := 0
	for _, derived := range []bool{false, true} {
		got := failtest.Run(func(t testing.TB) {
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
				return lambda.Wrap(w.Engine(), lambda.HTTPAPI, payer{w, derived}.pay, func(o *lambda.HandlerOptions) { o.Name = "pay" })
			}, post("20"), func(t testing.TB, w *idemtest.World, answer response) {
				runs++
				one(t, w, answer)
			})
		})
		if derived && got != nil || !derived && !slices.Contains(got, "crash after call 3 (charge), then the client's retry: effects of charge: 2, and without a crash 1") {
			t.Errorf("derived key %t: %q", derived, got)
		}
	}
	if runs < 15 {
		t.Errorf("%d runs", runs)
	}
}

// A completer reaches the route that the record names.
func TestCrashEverywhereRunsRouters(t *testing.T) {
	t.Parallel()
	completed := 0
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Router[request, response] {
		r, e := lambda.NewRouter(lambda.HTTPAPI), w.Engine()
		r.Keyed("POST /orders", e, func(ctx context.Context, ev request) (response, error) {
			if ev.RequestContext.RequestID == "" && ev.Headers["x-client"] == "" { // made from a record
				completed++
			}
			return payer{w, true}.pay(ctx, ev)
		})
		r.Keyed("POST /refunds", e, payer{w, true}.pay)
		return r
	}, func() request { ev := post("20"); ev.Headers["x-client"] = "1"; return ev }(), one)
	if completed < 3 {
		t.Errorf("%d events were made from records", completed)
	}
}

func TestCrashEverywhereRunsTypedHandlersAndBatches(t *testing.T) {
	t.Parallel()
	typed := func(derived bool) []string {
		return failtest.Run(func(t testing.TB) {
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[order, order] {
				byID := lambda.Direct[order, order](func(o order) (string, error) { return o.ID, nil })
				return lambda.Wrap(w.Engine(), byID, func(ctx context.Context, o order) (order, error) {
					re, err := payer{w, derived}.pay(ctx, post(o.ID))
					return order{re.Body}, err
				}, func(o *lambda.HandlerOptions) { o.Name = "pay" })
			}, order{"20"}, nil)
		})
	}
	messages := func(derived bool) []string {
		return failtest.Run(func(t testing.TB) {
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
				return lambda.WrapEach(w.Engine(), lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) { return m.Body, nil }), func(ctx context.Context, m events.SQSMessage) error {
					_, err := payer{w, derived}.pay(ctx, post(m.Body))
					return err
				})
			}, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", Body: "20", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders"}}}, nil)
		})
	}
	for name, run := range map[string]func(bool) []string{"invocations": typed, "messages": messages} {
		if got := run(true); got != nil {
			t.Errorf("%s: %q", name, got)
		}
		if got := run(false); len(got) == 0 || !strings.Contains(got[0], "effects of charge: 2") {
			t.Errorf("%s without a derived key: %q", name, got)
		}
	}
}

type order struct{ ID string }

func TestReplays(t *testing.T) {
	t.Parallel()
	answering := func(status int, optFns ...func(*idem.Options)) *lambda.Handler[request, response] {
		return lambda.Wrap(idem.New(new(idem.MemoryStore), append([]func(*idem.Options){callertest.Anybody}, optFns...)...), lambda.HTTPAPI, func(context.Context, request) (response, error) {
			return response{StatusCode: status, Body: rand.Text(), Headers: map[string]string{"X-Trace": rand.Text()}}, nil
		})
	}
	typed := func(log *idemtest.FaultyStore, optFns ...func(*idem.Options)) *lambda.Handler[order, order] {
		return lambda.Wrap(idem.New(log, append([]func(*idem.Options){callertest.Anybody}, optFns...)...), lambda.Direct[order, order](func(o order) (string, error) { return o.ID, nil }), func(context.Context, order) (order, error) {
			return order{rand.Text()}, nil
		})
	}
	if re := lambdatest.Replays(t, answering(201), post("20")); re.StatusCode != 201 {
		t.Errorf("got %+v", re)
	}
	watched := idemtest.Watch(new(idem.MemoryStore))
	if re := lambdatest.Replays(t, typed(watched), order{"1"}, watched); len(re.ID) != 26 {
		t.Errorf("got %+v", re)
	}
	optional := func(o *idem.Options) { o.Key = idem.KeyOptional }
	unkeyed := post("20")
	unkeyed.Headers = nil
	failing := lambda.Wrap(idem.New(new(idem.MemoryStore), callertest.Anybody), lambda.Direct[order, order](func(o order) (string, error) { return o.ID, nil }), func(context.Context, order) (order, error) {
		return order{}, errors.New("no stock")
	})
	for name, tt := range map[string]struct {
		test func(testing.TB)
		want string
	}{
		"an answer that isn't kept": {func(t testing.TB) { lambdatest.Replays(t, answering(429), post("20")) }, "the same event again ran the handler"},
		"a failure":                 {func(t testing.TB) { lambdatest.Replays(t, answering(503), post("20")) }, "the first event: answered 503"},
		"no key":                    {func(t testing.TB) { lambdatest.Replays(t, answering(201, optional), unkeyed) }, "the same event again ran the handler"},
		"an error":                  {func(t testing.TB) { lambdatest.Replays(t, failing, order{"1"}) }, "the first event: no stock"},
		"a typed answer":            {func(t testing.TB) { lambdatest.Replays(t, typed(watched), order{"2"}) }, "this answer doesn't say"},
		"a used key":                {func(t testing.TB) { lambdatest.Replays(t, typed(watched), order{"1"}, watched) }, "the first event was answered from a record"},
		"typed and without a key": {func(t testing.TB) {
			log := idemtest.Watch(new(idem.MemoryStore))
			lambdatest.Replays(t, typed(log, optional), order{}, log)
		}, "the first event was answered from a record, or not by the engine"},
	} {
		if got := failtest.Run(tt.test); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The same event again is answered from the record. t is a test's own.
func ExampleReplays() {
	failtest.Print(os.Stdout, func(t testing.TB) {
		h := lambda.Wrap(idem.New(new(idem.MemoryStore), callertest.Anybody), lambda.HTTPAPI, func(context.Context, request) (response, error) {
			return response{StatusCode: 201, Body: "paid"}, nil
		})
		fmt.Println(lambdatest.Replays(t, h, post("20")).Body)

		lambdatest.Replays(t, h, post("20")) // fails the test: the key is used by now
	})
	// Output:
	// paid
	// the first event was answered from a record, or not by the engine: its key is not new
}

// A call with a key of its own is made twice, where the process dies after it.
func ExampleCrashEverywhere() {
	failtest.Print(os.Stdout, func(t testing.TB) {
		lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
			return lambda.Wrap(w.Engine(), lambda.HTTPAPI, func(ctx context.Context, ev request) (response, error) {
				_, err := idem.Foreign(ctx, "paid", func(ctx context.Context, _ *idem.Tx) (string, error) {
					charge, err := w.Call(ctx, "charge", rand.Text(), ev.Body) // not tx.Key("payments")
					return charge.ID, err
				})
				return response{StatusCode: 201}, err
			}, func(o *lambda.HandlerOptions) { o.Name = "pay" })
		}, post("20"), nil)
	})
	// Output:
	// crash after call 3 (charge), then the client's retry: effects of charge: 2, and without a crash 1
}
