package lambda_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// asTenant is the context of an invocation under Lambda's tenant isolation.
func asTenant(ctx context.Context, tenant string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{InvokedFunctionArn: functionARN, TenantID: tenant})
}

// anyEvent takes every delivery for the same event.
type anyEvent struct{}

func (anyEvent) Verify(http.Header, []byte) (webhook.Event, error) {
	return webhook.Event{ID: "evt_1"}, nil
}

// Two tenants of one function have keys of their own, whoever calls for them and whatever names
// the caller. AWS hands a function with tenant isolation no events of queues: if it begins to, or
// if a program invokes it with such an event, tenants keep their keys.
func TestTenantsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	type way = func(t *testing.T, runs *int) func(context.Context) error
	ways := make(map[string]way)
	for _, s := range sources {
		for _, user := range []string{"", "alice"} {
			ways[s.name+" of "+user] = func(t *testing.T, runs *int) func(context.Context) error {
				h := s.wrap(anEngine(), func(context.Context, []byte) (idem.Response, error) { *runs++; return idem.Response{Status: 201}, nil })
				c := newCall("k")
				c.user = user
				payload := s.payload(t, c)
				return func(ctx context.Context) error { _, err := h.Invoke(ctx, payload); return err }
			}
		}
	}
	ways["Direct"] = func(_ *testing.T, runs *int) func(context.Context) error {
		h := lambda.Wrap(anEngine(), lambda.Direct[order, int](orderID), func(context.Context, order) (int, error) { *runs++; return 1, nil })
		return func(ctx context.Context) error { _, err := h.Handle(ctx, order{ID: "o-1"}); return err }
	}
	for name, b := range map[string]queueBatch{"a queue": lambda.SQS, "a queue, a scope of one's own": lambda.SQS.WithScope("orders")} {
		ways[name] = func(_ *testing.T, runs *int) func(context.Context) error {
			h := lambda.WrapEach(anEngine(), b, func(context.Context, events.SQSMessage) error { *runs++; return nil })
			return func(ctx context.Context) error { _, err := h.Handle(ctx, batch(message("1", ""))); return err }
		}
	}
	own := lambda.HTTPAPI
	own.Request = func(ctx context.Context, ev v2Request) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		req.Scope = "acct_7"
		return req, err
	}
	acct := func(context.Context, *idem.Request) (string, error) { return "acct_7", nil }
	session := post("k", "{}")
	session.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:sts::1:assumed-role/Checkout/s"},
	}
	for name, tc := range map[string]struct {
		adapter lambda.Adapter[v2Request, v2Response]
		scope   func(context.Context, *idem.Request) (string, error)
	}{"Options.Scope": {lambda.HTTPAPI, acct}, "Request.Scope": {own, nil}, "RoleScope": {lambda.HTTPAPI, lambda.RoleScope}} {
		ways[name] = func(_ *testing.T, runs *int) func(context.Context) error {
			h := lambda.Wrap(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Scope = tc.scope }), tc.adapter,
				func(context.Context, v2Request) (v2Response, error) { *runs++; return v2Response{StatusCode: 201}, nil })
			return func(ctx context.Context) error { _, err := h.Handle(ctx, session); return err }
		}
	}
	routed := func(open func(runs *int) func(context.Context, v2Request) (v2Response, error)) way {
		return func(_ *testing.T, runs *int) func(context.Context) error {
			r := lambda.NewRouter(lambda.HTTPAPI)
			r.Route("/", open(runs))
			return func(ctx context.Context) error { _, err := r.Handle(ctx, post("k", "{}")); return err }
		}
	}
	hook := func(runs *int) *webhook.Handler {
		return webhook.New(new(idem.MemoryStore), "stripe", anyEvent{}, func(context.Context, webhook.Event) error { *runs++; return nil })
	}
	ways["Middleware"] = routed(func(runs *int) func(context.Context, v2Request) (v2Response, error) {
		return inHTTP(anEngine().Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *runs++ })))
	})
	ways["a webhook"] = routed(func(runs *int) func(context.Context, v2Request) (v2Response, error) {
		return lambda.Webhook(lambda.HTTPAPI, hook(runs)).Handle
	})
	ways["a webhook in a router"] = routed(func(runs *int) func(context.Context, v2Request) (v2Response, error) { return inHTTP(hook(runs)) })
	ways["an operation of its own"] = routed(func(runs *int) func(context.Context, v2Request) (v2Response, error) {
		e := idem.New(new(idem.MemoryStore))
		return inHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := e.Do(r.Context(), idem.Request{Key: "k", Scope: "the shop"}, func(context.Context) (idem.Response, error) {
				*runs++
				return idem.Response{}, nil
			}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
	})
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			send := open(t, &runs)
			for i, tenant := range []string{"blue", "green", "blue", ""} {
				ctx, cancel := context.WithTimeout(asTenant(t.Context(), tenant), ample)
				err := send(ctx)
				if cancel(); err != nil || runs != []int{1, 2, 2, 3}[i] {
					t.Errorf("%d runs after tenant %q, %v; want %d", runs, tenant, err, []int{1, 2, 2, 3}[i])
				}
			}
		})
	}
}

// A name with the divider in it must not reach into another tenant's scope.
func TestTenantsNamesDontRunTogether(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, c := range []struct {
		tenant string
		id     idem.Identity
	}{
		{"", idem.Identity{}},
		{"a", idem.Identity{}},
		{"a|", idem.Identity{}},
		{"a|jwt:x", idem.Identity{}},
		{"a%7Cjwt:x", idem.Identity{}},
		{"a", idem.Identity{Kind: "jwt", Subject: "x|"}},
		{"a", idem.Identity{Kind: "jwt", Subject: "x|one:"}},
		{"a", idem.Identity{Kind: "jwt", Subject: "x"}},
		{"", idem.Identity{Kind: "jwt", Subject: "x"}},
		{"", idem.Identity{Kind: "lambda", Subject: "a|jwt:x"}},
		{"", idem.Identity{Kind: "apikey", Subject: "x"}},
	} {
		store := &idem.MemoryStore{}
		_, err := idem.New(store, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Tenant: c.tenant, Identity: c.id, Method: http.MethodPost},
			func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range store.Records() {
			if before, there := seen[rec.PK]; there {
				t.Errorf("%+v shares a record with %s", c, before)
			}
			seen[rec.PK] = rec.Scope
		}
	}
}

// The status of an operation is its tenant's, too.
func TestTenantsStatus(t *testing.T) {
	t.Parallel()
	e := anEngine(accepting)
	ctx, cancel := context.WithTimeout(asTenant(t.Context(), "blue"), ample)
	defer cancel()
	if _, err := httpAPI.wrap(e, created).Invoke(ctx, httpAPI.payload(t, newCall("k"))); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]int{"blue": 201, "green": 404} {
		out, err := lambda.StatusHandler(e, lambda.HTTPAPI).Invoke(asTenant(ctx, tenant), httpAPI.payload(t, on("", "GET", "/operations/k")))
		if err != nil {
			t.Fatal(err)
		}
		if a := httpAPI.result(t, out); a.status != want {
			t.Errorf("tenant %s: %d %s, want %d", tenant, a.status, a.body, want)
		}
	}
}

// The tenant that an adapter has found goes before the invocation's.
func TestTenantOfAnAdapter(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"own": "own", "": "lambda's"} {
		api, b := lambda.HTTPAPI, lambda.SQS
		api.Request = func(ctx context.Context, ev v2Request) (idem.Request, error) {
			req, err := lambda.HTTPAPI.Request(ctx, ev)
			req.Tenant = own
			return req, err
		}
		b.Request = func(ctx context.Context, m events.SQSMessage) (idem.Request, error) {
			req, err := lambda.SQS.Request(ctx, m)
			req.Tenant = own
			return req, err
		}
		store, ctx := new(idem.MemoryStore), asTenant(t.Context(), "lambda's")
		e := idem.New(store, callertest.Anybody)
		_, err1 := lambda.Wrap(e, api, noContent).Handle(ctx, post("k", ""))
		_, err2 := lambda.WrapEach(e, b, func(context.Context, events.SQSMessage) error { return nil }).Handle(ctx, batch(message("1", "")))
		if err1 != nil || err2 != nil || len(store.Records()) != 2 {
			t.Errorf("%v, %v, %d records, want 2", err1, err2, len(store.Records()))
		}
		for _, r := range store.Records() {
			if r.Tenant != want {
				t.Errorf("the record is of the tenant %q, want %q", r.Tenant, want)
			}
		}
	}
}
