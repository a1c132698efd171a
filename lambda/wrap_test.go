package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

type (
	v2Request  = events.APIGatewayV2HTTPRequest
	v2Response = events.APIGatewayV2HTTPResponse
)

// post is a typed request with a key, for tests through Handle.
func post(key, body string) v2Request {
	var ev v2Request
	ev.RequestContext.HTTP.Method = "POST"
	ev.RawPath = "/rides"
	ev.Body = body
	if key != "" {
		ev.Headers = map[string]string{"idempotency-key": key}
	}
	return ev
}

// Without a key, what the engine has nothing to do with must come back as the handler
// made it, also what the adapter could not even express.
func TestPassedRequestIsUntouched(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	own := v2Response{
		Headers: map[string]string{"content-TYPE": "x"}, MultiValueHeaders: map[string][]string{"X-A": {"1", "2"}},
		Body: "@@@", IsBase64Encoded: true,
	}
	for name, tc := range map[string]struct {
		ev  v2Request
		opt func(*idem.Options)
	}{
		"GET":          {func() v2Request { ev := post("", ""); ev.RequestContext.HTTP.Method = "GET"; return ev }(), nil},
		"optional key": {post("", ""), func(o *idem.Options) { o.Key = idem.KeyOptional }},
		"disabled":     {post("", ""), func(o *idem.Options) { o.Mode = idem.ModeOff }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &watched{}
			for _, ownErr := range []error{nil, boom} {
				var optFns []func(*idem.Options)
				if tc.opt != nil {
					optFns = append(optFns, tc.opt)
				}
				h := lambda.Wrap(idem.New(store, append([]func(*idem.Options){callertest.Anybody}, optFns...)...), lambda.HTTPAPI, func(_ context.Context, ev v2Request) (v2Response, error) {
					if diff := cmp.Diff(tc.ev, ev); diff != "" {
						t.Errorf("the handler's event (-want +got):\n%s", diff)
					}
					return own, ownErr
				})
				got, err := h.Handle(t.Context(), tc.ev)
				if diff := cmp.Diff(own, got); diff != "" || !errors.Is(err, ownErr) {
					t.Errorf("err %v, response (-want +got):\n%s", err, diff)
				}
			}
			store.untouched(t)
		})
	}
}

// With a key, the answer that the handler made says that the key was ignored. An error
// of the handler stays its own.
func TestPassedKeyIsMarked(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	own := v2Response{StatusCode: 201, Headers: map[string]string{"X-A": "1"}, Cookies: []string{"a=b", "c=d"}, Body: "YQ==", IsBase64Encoded: true}
	get := post("k", "")
	get.RequestContext.HTTP.Method = "GET"
	for name, tc := range map[string]struct {
		ev  v2Request
		opt func(*idem.Options)
	}{
		"GET":      {get, func(*idem.Options) {}},
		"disabled": {post("k", ""), func(o *idem.Options) { o.Mode = idem.ModeOff }},
	} {
		h := lambda.Wrap(idem.New(&watched{}, tc.opt), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { return own, nil })
		got, err := h.Handle(t.Context(), tc.ev)
		want := v2Response{
			StatusCode: 201, Headers: map[string]string{"X-A": "1", "Idempotency-Status": "ignored"}, Cookies: own.Cookies, Body: "a",
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: err %v, response (-want +got):\n%s", name, err, diff)
		}
		failing := lambda.Wrap(idem.New(&watched{}, tc.opt), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { return own, boom })
		if got, err := failing.Handle(t.Context(), tc.ev); !errors.Is(err, boom) || cmp.Diff(own, got) != "" {
			t.Errorf("%s: %+v, %v; want the handler's own answer and error", name, got, err)
		}
	}
}

// The store is down and the engine fails open: the answer is the handler's own, and
// says that it wasn't protected.
func TestModeOpenIsMarked(t *testing.T) {
	t.Parallel()
	own := v2Response{StatusCode: 201, Headers: map[string]string{"x-lower": "1"}, Body: "YQ==", IsBase64Encoded: true}
	h := lambda.Wrap(idem.New(downStore{}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen }), lambda.HTTPAPI,
		func(context.Context, v2Request) (v2Response, error) { return own, nil })
	got, err := h.Handle(t.Context(), post("k", ""))
	want := v2Response{StatusCode: 201, Headers: map[string]string{"X-Lower": "1", "Idempotency-Status": "ignored"}, Body: "a"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err %v, response (-want +got):\n%s", err, diff)
	}
}

type downStore struct{}

var errDown = errors.New("down")

func (downStore) Claim(context.Context, store.Claim) (*store.Record, error) { return nil, errDown }

func (downStore) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errDown }

func (downStore) Load(context.Context, string) (*store.Record, error) { return nil, errDown }

// An answer that isn't the base64 it says it is: the effect has happened, so it
// is taken as it stands and replayed, never run again.
func TestUndecodableResponse(t *testing.T) {
	t.Parallel()
	runs := 0
	h := lambda.Wrap(anEngine(), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) {
		runs++
		return v2Response{StatusCode: 201, Body: "{}", IsBase64Encoded: true}, nil
	})
	for i := range 3 {
		got, err := h.Handle(t.Context(), post("k", ""))
		if err != nil || got.StatusCode != 201 || got.Body != "{}" || got.IsBase64Encoded {
			t.Errorf("call %d: got %+v, %v", i+1, got, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}

func TestWrongKindOfEvent(t *testing.T) {
	t.Parallel()
	wraps := map[string]source{"httpapi": httpAPI, "rest": rest, "functionurl": functionURL, "alb": albMulti}
	type event struct{ kind, payload, says string }
	others := []event{
		{"", `{}`, "an empty object"},
		{"", `null`, "an empty object"},
		{"", `[]`, "no JSON object"},
		{"", `"warm"`, "no JSON object"},
		{"", `{`, "no JSON object"},
		{"", ``, "no JSON object"},
		{"", `{"warmup":true,"secret":"s3cr3t"}`, `an object of ["secret" "warmup"]`},
		{
			"", `{"f":1,"e":2,"d":3,"c":4,"b":5,"` + strings.Repeat("a", 99) + `":6}`,
			`an object of ["` + strings.Repeat("a", 40) + `" "b" "c" "d" "e"]`,
		},
		{"", `{"Records":[{"messageId":"m","body":"hello","eventSource":"aws:sqs"}]}`, `records of "aws:sqs"`},
		{"", `{"Records":[{"EventSource":"aws:sns","Sns":{"Message":"hello"}}]}`, `records of "aws:sns"`},
		{"", `{"version":"0","id":"x","detail-type":"Ride","source":"rides","detail":{}}`, "an EventBridge event"},
		{"", `{"requestContext":{"connectionId":"c","routeKey":"$connect","eventType":"CONNECT"},"body":"x"}`, "a WebSocket API event"},
	}
	// Payload format 2.0 is the same for both, see HTTPAPI.
	fits := map[string]string{"httpapi": "httpapi functionurl", "rest": "rest", "functionurl": "functionurl", "alb": "alb"}
	for _, file := range golden(t) {
		k, _, _ := strings.Cut(file, "_")
		says := map[string]string{
			"httpapi": "an HTTP API event", "rest": "a REST API event", "functionurl": "a function URL event", "alb": "a load balancer's event",
		}[k]
		others = append(others, event{k, string(load(t, file)), says})
	}
	for name, s := range wraps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ev := range others {
				if ev.kind != "" && strings.Contains(fits[name], ev.kind) {
					continue
				}
				store := &watched{}
				h, runs := counted(created)
				for _, mode := range []idem.Mode{idem.ModeEnforce, idem.ModeOff} {
					e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Mode = mode })
					out, err := s.wrap(e, h).Invoke(t.Context(), []byte(ev.payload))
					if !errors.Is(err, lambda.ErrEvent) || out != nil {
						t.Errorf("%.60s: got %s, %v, want ErrEvent", ev.payload, out, err)
						continue
					}
					if !strings.HasSuffix(err.Error(), "the payload is "+ev.says) && !strings.Contains(err.Error(), "the payload is "+ev.says+" (") {
						t.Errorf("%.60s: the error does not say %q: %v", ev.payload, ev.says, err)
					}
					if strings.Contains(err.Error(), "s3cr3t") {
						t.Errorf("the payload leaks: %v", err)
					}
				}
				store.untouched(t)
				ran(t, runs, 0)
			}
		})
	}
	t.Run("through Handle", func(t *testing.T) {
		t.Parallel()
		h := lambda.Wrap(anEngine(), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) {
			t.Error("the handler ran")
			return v2Response{}, nil
		})
		re, err := h.Handle(t.Context(), v2Request{})
		if diff := cmp.Diff(v2Response{}, re); !errors.Is(err, lambda.ErrEvent) || diff != "" {
			t.Errorf("got %+v, %v, want ErrEvent", re, err)
		}
		const want = "lambda: event of another kind: want an HTTP API event (payload format 2.0): it has no requestContext.http.method"
		if err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// A field of the wrong type must not come through as an empty one.
func TestWrongTypeInEvent(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		bad := editedSource(s, func(ev map[string]any) { ev["body"] = map[string]any{"no": "string"} })
		out, err := s.wrap(idem.New(&watched{}, callertest.Anybody), h).Invoke(t.Context(), bad.payload(t, newCall("k")))
		if !errors.Is(err, lambda.ErrEvent) || out != nil {
			t.Errorf("got %s, %v", out, err)
		}
		ran(t, runs, 0)
	})
}

// The handler stops before the deadline, so that its answer can be stored.
func TestHandlerContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), ample)
	defer cancel()
	h := lambda.Wrap(anEngine(), lambda.HTTPAPI, func(hctx context.Context, _ v2Request) (v2Response, error) {
		outer, _ := ctx.Deadline()
		inner, ok := hctx.Deadline()
		if got := outer.Sub(inner); !ok || got != defaults.Reserve {
			t.Errorf("the handler's context ends %v before the invocation's, want %v", got, defaults.Reserve)
		}
		if op, ok := idem.FromContext(hctx); !ok || op.ID() == "" {
			t.Error("no operation in the handler's context")
		}
		if hctx.Value(key{}) != "v" {
			t.Error("values of the invocation's context are lost")
		}
		return v2Response{}, nil
	})
	if _, err := h.Handle(ctx, post("k", "")); err != nil {
		t.Error(err)
	}
}

// A wrapper in a wrapper would else answer "in flight" to itself.
func TestNestedWrapper(t *testing.T) {
	t.Parallel()
	e := anEngine()
	runs := 0
	inner := lambda.Wrap(e, lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) {
		runs++
		return v2Response{StatusCode: 201, Body: "made"}, nil
	})
	outer := lambda.Wrap(e, lambda.HTTPAPI, inner.Handle)
	for i := range 2 {
		re, err := outer.Handle(t.Context(), post("k", ""))
		if err != nil || re.StatusCode != 201 || re.Body != "made" {
			t.Errorf("call %d: got %+v, %v", i+1, re, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times, want 1", runs)
	}
}

// Escapes would cost six bytes for one. The runtime leaves them out, so do we.
func TestInvokeLeavesHTMLAlone(t *testing.T) {
	t.Parallel()
	h := func(context.Context, v2Request) (v2Response, error) {
		return v2Response{StatusCode: 200, Body: "<a&b>\u2028"}, nil
	}
	var ev v2Request
	ev.RequestContext.HTTP.Method = "GET" // passes, so both are the handler's own
	payload, _ := json.Marshal(ev)
	want, err := awslambda.NewHandler(h).Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	got, err := lambda.Wrap(anEngine(), lambda.HTTPAPI, h).Invoke(t.Context(), payload)
	if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
		t.Errorf("err %v; the runtime's encoding (-) and ours (+):\n%s", err, diff)
	}
}

// Adapters for events of one's own: what they return is taken as it is.
func TestOwnAdapter(t *testing.T) {
	t.Parallel()
	type order struct{ ID, Tenant string }
	adapter := lambda.Adapter[order, string]{
		Request: func(_ context.Context, o order) (idem.Request, error) {
			req := idem.Request{Method: "POST", Key: o.ID, Scope: o.Tenant, Body: []byte(o.ID)}
			if o.Tenant == "" {
				return req, errors.New("no tenant")
			}
			return req, nil
		},
		Response: func(s string) (idem.Response, error) { return idem.Response{Body: []byte(s)}, nil },
		Reply: func(r idem.Response) string {
			return fmt.Sprintf("%d %s %s", r.Status, r.Header.Get(idem.ReplayedHeader), r.Body)
		},
	}
	runs := 0
	h := lambda.Wrap(anEngine(), adapter, func(context.Context, order) (string, error) {
		runs++
		return fmt.Sprint("run ", runs), nil
	})
	for _, tc := range []struct{ payload, want string }{
		{`{"ID":"1","Tenant":"a"}`, `"200  run 1"`},
		{`{"ID":"1","Tenant":"a"}`, `"200 true run 1"`},
		{`{"ID":"1","Tenant":"b"}`, `"200  run 2"`},
	} {
		if got, err := h.Invoke(t.Context(), []byte(tc.payload)); string(got) != tc.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", tc.payload, got, err, tc.want)
		}
	}
	got, err := h.Invoke(t.Context(), []byte(`{"ID":"1"}`))
	if err != nil || !strings.Contains(string(got), "400") || !strings.Contains(string(got), "request_invalid") {
		t.Errorf("an error of Request: got %s, %v, want 400", got, err)
	}
}

// A response that JSON can't hold is an error, not a panic.
func TestUnencodableResponse(t *testing.T) {
	t.Parallel()
	adapter := lambda.Adapter[string, chan int]{
		Request:  func(context.Context, string) (idem.Request, error) { return idem.Request{Method: "GET"}, nil },
		Response: func(chan int) (idem.Response, error) { return idem.Response{}, nil },
		Reply:    func(idem.Response) chan int { return nil },
	}
	h := lambda.Wrap(anEngine(), adapter, func(context.Context, string) (chan int, error) { return nil, nil })
	if out, err := h.Invoke(t.Context(), []byte(`""`)); err == nil || out != nil {
		t.Errorf("got %s, %v, want an error", out, err)
	}
}

// A definitive answer is one for a request without a key too.
func TestRespondWithoutKey(t *testing.T) {
	t.Parallel()
	for name, optFn := range map[string]func(*idem.Options){
		"optional key": func(o *idem.Options) { o.Key = idem.KeyOptional },
		"disabled":     func(o *idem.Options) { o.Mode = idem.ModeOff },
	} {
		h := lambda.Wrap(anEngine(optFn), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) {
			return v2Response{}, idem.Respond(v2Response{StatusCode: 402, Body: "declined"})
		})
		re, err := h.Handle(t.Context(), post("", ""))
		if re.StatusCode != 402 || re.Body != "declined" || err != nil {
			t.Errorf("%s: got %+v, %v", name, re, err)
		}
	}
}

// What a phase answers comes in the adapter's own type, and is stored whatever
// its status.
func TestRespondInTheHandlersType(t *testing.T) {
	t.Parallel()
	h := lambda.Wrap(anEngine(), lambda.HTTPAPI, func(ctx context.Context, ev v2Request) (v2Response, error) {
		switch ev.Body {
		case "finish":
			return idem.Finish(ctx, func(context.Context, *idem.Tx) (v2Response, error) {
				return v2Response{StatusCode: 422, Body: "no"}, nil
			})
		case "respond":
			return v2Response{}, idem.Respond(v2Response{StatusCode: 422, Body: "no"})
		default:
			return v2Response{}, idem.Respond("another type")
		}
	})
	for _, body := range []string{"finish", "respond"} {
		for i := range 2 {
			re, err := h.Handle(t.Context(), post(body, body))
			if replayed := re.Headers[idem.ReplayedHeader] == "true"; re.StatusCode != 422 || re.Body != "no" || replayed != (i == 1) || err != nil {
				t.Errorf("%s: got %+v, %v", body, re, err)
			}
		}
	}
	if re, err := h.Handle(t.Context(), post("k", "")); re.StatusCode != 500 || err != nil {
		t.Errorf("another type: got %+v, %v", re, err)
	}
}

// Where nothing is overdue and nothing panicked, a function answers and its process goes on.
func TestFunctionGoesOn(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	e := func() *idem.Engine { return anEngine() }
	each := lambda.WrapEach(e(), quiet(lambda.SQS), func(context.Context, events.SQSMessage) error { return nil })
	if re, err := each.Handle(t.Context(), batch(message("1", ""))); err != nil || len(re.BatchItemFailures) != 0 {
		t.Errorf("a batch: %+v, %v", re, err)
	}
	payload, err := json.Marshal(batch(message("2", "")))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := each.Invoke(t.Context(), payload); err != nil || string(out) != `{"batchItemFailures":[]}` {
		t.Errorf("a batch: %s, %v", out, err)
	}
	if _, err := each.Invoke(t.Context(), []byte(`{"Records":[]}`)); !errors.Is(err, lambda.ErrEvent) {
		t.Errorf("no batch: %v", err)
	}
	h := lambda.Wrap(e(), lambda.HTTPAPI, func(context.Context, v2Request) (v2Response, error) { return v2Response{StatusCode: 201}, nil })
	if re, err := h.Handle(t.Context(), post("k", "")); err != nil || re.StatusCode != 201 {
		t.Errorf("a request: %+v, %v", re, err)
	}
	if re, err := lambda.StatusHandler(e(), lambda.HTTPAPI).Handle(t.Context(), post("k", "")); err != nil || re.StatusCode < 400 {
		t.Errorf("an endpoint: %+v, %v", re, err)
	}
}
