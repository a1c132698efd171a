package lambda_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

func sqsMessage(id, body string) events.SQSMessage {
	return events.SQSMessage{MessageId: id, Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:1:q"}
}

func accepts(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }

type in struct{ ID string }

type paid struct {
	Status string `json:"status"`
	Paid   int
}

// Engine shared with HTTP routes in 202 mode: second delivery while first runs is reported done.
func TestAcceptLosesRecord(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, accepts)
	begun, fail := make(chan struct{}), make(chan struct{})
	runs := 0
	h := lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error {
		runs++
		close(begun)
		<-fail
		return errors.New("the card machine is down")
	})
	first := make(chan error)
	ev := events.SQSEvent{Records: []events.SQSMessage{sqsMessage("1", "pay")}}
	go func() { _, err := h.Handle(context.Background(), ev); first <- err }()
	<-begun
	re, err := h.Handle(t.Context(), ev) // second delivery
	if err == nil && len(re.BatchItemFailures) == 0 {
		t.Errorf("second delivery: told the queue to delete the message while the first is running")
	}
	close(fail)
}

func TestAcceptDirectAnswersStatusDocument(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, accepts)
	begun, end := make(chan struct{}), make(chan struct{})
	h := lambda.Wrap(e, lambda.Direct[in, paid](func(i in) (string, error) { return i.ID, nil }, func(o *lambda.DirectOptions[in]) { o.Synchronous = true }), func(context.Context, in) (paid, error) {
		close(begun)
		<-end
		return paid{}, errors.New("declined")
	})
	go func() { _, _ = h.Invoke(context.Background(), []byte(`{"ID":"1"}`)) }()
	<-begun
	out, err := h.Invoke(t.Context(), []byte(`{"ID":"1"}`))
	if err == nil {
		t.Errorf("in flight, but Invoke succeeded with %s", out)
	}
	close(end)
}

// An inner operation's refusal is reported as the outer's.
func TestDirectReportsInnerRefusalAsOwn(t *testing.T) {
	t.Parallel()
	store := &idem.MemoryStore{}
	now := time.Now()
	clock := func(o *idem.Options) { o.Now = func() time.Time { return now } }
	inner := idem.New(store, callertest.Anybody, clock, func(o *idem.Options) { o.Namespace = "inner"; o.Tombstone = 24 * time.Hour })
	use := func(ctx context.Context) error {
		_, err := inner.Do(ctx, idem.Request{Key: "shared", Scope: "s"}, func(context.Context) (idem.Response, error) { return idem.Response{}, nil })
		return err
	}
	_ = use(t.Context())
	now = now.Add(30 * time.Hour)
	outer := idem.New(store, callertest.Anybody, clock)
	h := lambda.Wrap(outer, lambda.Direct[in, paid](func(i in) (string, error) { return i.ID, nil }), func(ctx context.Context, _ in) (paid, error) {
		if err := use(ctx); err != nil {
			return paid{}, err
		}
		return paid{Paid: 1}, nil
	})
	_, err := h.Invoke(t.Context(), []byte(`{"ID":"new"}`))
	if m, ok := errors.AsType[messages.InvokeResponse_Error](err); ok || !errors.Is(err, idem.ErrExpired) {
		t.Errorf("a new operation, of which nothing is done, is reported to Step Functions as %s: %v", m.Type, err)
	}
}

// A result with no JSON form frees the key: each retry charges again.
func TestDirectResultWithoutJSONIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	type out struct{ Rate float64 }
	charges := 0
	h := lambda.Wrap(e, lambda.Direct[in, out](func(i in) (string, error) { return i.ID, nil }), func(context.Context, in) (out, error) {
		charges++
		return out{math.NaN()}, nil
	})
	for range 3 {
		_, err := h.Invoke(t.Context(), []byte(`{"ID":"1"}`))
		if reported, _ := errors.AsType[messages.InvokeResponse_Error](err); reported.Type != "IdempotencyAnswerNotKept" {
			t.Errorf("got %v", err)
		}
	}
	if charges != 1 {
		t.Errorf("%d charges under one key; handler returned success each time", charges)
	}
}

// ModeObserve is ignored by Direct/WrapEach: they enforce.
func TestObserveOnSources(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	runs := 0
	h := lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error { runs++; return nil })
	ev := events.SQSEvent{Records: []events.SQSMessage{sqsMessage("1", "pay")}}
	for range 2 {
		if _, err := h.Handle(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 2 {
		t.Errorf("ModeObserve executes every request; ran %d of 2", runs)
	}
	ev.Records[0].Body = "other"
	_, err := h.Handle(t.Context(), ev)
	if err != nil {
		t.Errorf("ModeObserve never fails a request: %v", err)
	}
}

// IAM role session changes (credentials refreshed, other ECS task) => second execution.
func TestRoleScope(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Scope = lambda.RoleScope })
	charges := 0
	h := lambda.Wrap(e, lambda.HTTPAPI, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		charges++
		return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
	})
	for _, session := range []string{"botocore-session-1700000000", "botocore-session-1700003600"} {
		ev := events.APIGatewayV2HTTPRequest{RawPath: "/charges", Headers: map[string]string{"idempotency-key": "k"}}
		ev.RequestContext.HTTP.Method = "POST"
		ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{
			AccountID: "1", UserARN: "arn:aws:sts::111122223333:assumed-role/Checkout/" + session, CallerID: "AROAX:" + session,
		}}
		if _, err := h.Handle(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	if charges != 1 {
		t.Errorf("the same service retried with the same key after its credentials were refreshed: %d charges", charges)
	}
}

// Without a verified IAM identity there is no role: callers without one would share
// their keys.
func TestRoleScopeNeedsAVerifiedRole(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]idem.Identity{
		"nobody":                   {},
		"an IAM caller, not named": {Kind: "iam"},
		"a token's user":           {Kind: "jwt", Subject: "iss|u1"},
	} {
		if scope, err := lambda.RoleScope(t.Context(), &idem.Request{Identity: id}); err == nil || scope != "" {
			t.Errorf("%s: scope %q, %v", name, scope, err)
		}
	}
}

// Function URL: all users of one identity pool have one session name.
func TestFunctionURLPoolUsers(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	n := 0
	h := lambda.Wrap(e, lambda.FunctionURL, func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		n++
		return events.LambdaFunctionURLResponse{StatusCode: 200, Body: "secret"}, nil
	})
	for range 2 {
		ev := events.LambdaFunctionURLRequest{RawPath: "/me", Headers: map[string]string{"idempotency-key": "k"}}
		ev.RequestContext.HTTP.Method = "POST"
		ev.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{
			UserARN: "arn:aws:sts::111122223333:assumed-role/Cognito_Auth/CognitoIdentityCredentials",
		}}
		if re, err := h.Handle(t.Context(), ev); err != nil || re.StatusCode != 500 {
			t.Errorf("got %d, %v", re.StatusCode, err)
		}
	}
	if n != 0 {
		t.Errorf("the handler ran %d times for users nobody can tell apart", n)
	}
}

func TestWrapRefusesAPolicyThatKeepsNoResult(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Stored = func(r idem.Response) bool { return r.Status == 201 } })
	for name, wrap := range map[string]func(){
		"WrapEach": func() { lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error { return nil }) },
		"Direct": func() {
			lambda.Wrap(e, lambda.Direct[in, paid](func(i in) (string, error) { return i.ID, nil }),
				func(context.Context, in) (paid, error) { return paid{}, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			wrap()
		}()
	}
}

// A nil-looking result after a failed phase isn't stored, but one without JSON form now is.
func TestNoFormCoversFailedPhase(t *testing.T) {
	t.Parallel()
	type out struct{ Rate float64 }
	rate := 1.0
	fails := true
	phase := 0
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	h := lambda.Wrap(e, lambda.Direct[in, out](func(i in) (string, error) { return i.ID, nil }), func(ctx context.Context, _ in) (out, error) {
		_, err := idem.Atomic(ctx, "pay", func(context.Context, *idem.Tx) (int, error) {
			if fails {
				return 0, errors.New("refused")
			}
			phase++
			return 1, nil
		})
		_ = err // swallowed
		return out{rate}, nil
	})
	for _, rate = range []float64{1, math.NaN()} {
		_, _ = h.Invoke(t.Context(), []byte(`{"ID":"`+map[bool]string{true: "nan", false: "one"}[math.IsNaN(rate)]+`"}`))
	}
	fails, rate = false, 2
	for _, id := range []string{"one", "nan"} {
		phase = 0
		_, err := h.Invoke(t.Context(), []byte(`{"ID":"`+id+`"}`))
		if phase != 1 {
			t.Errorf("%s: the phase that failed is never done: %v", id, err)
		}
	}
}

// Direct: an operator's or phase's own 500 answer.
func TestRespond500(t *testing.T) {
	t.Parallel()
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.Direct[in, paid](func(i in) (string, error) { return i.ID, nil }), func(context.Context, in) (paid, error) {
		return paid{}, idem.Respond(idem.Response{Status: 500, Body: []byte(`{"status":"failed for good","Paid":0}`)})
	})
	for range 2 {
		_, err := h.Invoke(t.Context(), []byte(`{"ID":"1"}`))
		if err != nil {
			t.Errorf("a definitive answer comes as an error: %v", err)
		}
	}
}

// An attribute that only sounds like tracing identifies the work: two orders, one key, no mismatch.
func TestTraceInBusinessName(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	b := lambda.SQS
	b.Failed = func(context.Context, events.SQSMessage, error) {}
	n := 0
	h := lambda.WrapEach(e, b, func(context.Context, events.SQSMessage) error { n++; return nil })
	for _, v := range []string{"card-1", "card-2"} {
		m := sqsMessage(v, "pay")
		s, k := v, "k"
		m.MessageAttributes = map[string]events.SQSMessageAttribute{"dd-account": {DataType: "String", StringValue: &s}, lambda.KeyAttribute: {DataType: "String", StringValue: &k}}
		_, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}})
		if v == "card-2" && err == nil {
			t.Error("another value of dd-account (direct debit) under the same key is taken for done")
		}
	}
}

// Without the header a browser takes the replay of a payment for a network error.
func TestBrowsersCanReadReplays(t *testing.T) {
	t.Parallel()
	type re = events.APIGatewayProxyResponse
	h := lambda.Wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), lambda.REST, func(context.Context, events.APIGatewayProxyRequest) (re, error) {
		return re{StatusCode: 201, Headers: map[string]string{"Access-Control-Allow-Origin": "https://shop.example", "Content-Type": "application/json"}, Body: "{}"}, nil
	})
	for i, body := range []string{"a", "a"} {
		r, err := h.Handle(t.Context(), events.APIGatewayProxyRequest{
			HTTPMethod: "POST", Resource: "/pay", Path: "/pay", Body: body,
			Headers: map[string]string{"Origin": "https://shop.example", "Idempotency-Key": "k"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Headers["Access-Control-Allow-Origin"] == "" {
			t.Errorf("answer %d (%d, replayed %q): no Access-Control-Allow-Origin", i, r.StatusCode, r.Headers["Idempotent-Replayed"])
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
	named := func(o *lambda.HandlerOptions) { o.Name = "pay" }
	runs := 0
	h := lambda.Wrap(idem.New(new(idem.MemoryStore)), lambda.Direct[order, any](key, scoped), func(context.Context, order) (any, error) { runs++; return nil, nil }, named)
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, failing) || !errors.Is(err, idem.ErrKeyInvalid) || runs != 0 {
		t.Errorf("got %v after %d runs", err, runs)
	}
	off := func(o *idem.Options) { o.Mode = idem.ModeOff }
	h = lambda.Wrap(idem.New(new(idem.MemoryStore), off), lambda.Direct[order, any](key), func(context.Context, order) (any, error) { runs++; return func() {}, nil })
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, idem.ErrNotKept) || errors.Is(err, failing) || runs != 1 {
		t.Errorf("switched off: got %v after %d runs", err, runs)
	}
	foreign := lambda.Direct[order, any](key)
	foreign.Request = func(context.Context, order) (idem.Request, error) { return idem.Request{}, lambda.ErrEvent }
	h = lambda.Wrap(idem.New(new(idem.MemoryStore), off), foreign, func(context.Context, order) (any, error) { runs++; return nil, nil })
	if _, err := h.Handle(t.Context(), order{}); !errors.Is(err, lambda.ErrEvent) || runs != 1 {
		t.Errorf("an event of another kind: got %v after %d runs", err, runs)
	}
}
