package lambda_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// asTenant is the context of an invocation under Lambda's tenant isolation.
func asTenant(ctx context.Context, tenant string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{InvokedFunctionArn: functionARN, TenantID: tenant})
}

// Two tenants of one function have keys of their own, whoever calls for them.
func TestTenantsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for _, user := range []string{"", "alice"} {
			h, runs := counted(created)
			wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
			for i, tenant := range []string{"blue", "green", "blue", ""} {
				c := newCall("k")
				c.user = user
				ctx, cancel := context.WithTimeout(asTenant(t.Context(), tenant), ample)
				out, err := wrapped.Invoke(ctx, s.payload(t, c))
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				s.result(t, out).accepted(t, 201, createdBody, i == 2)
			}
			ran(t, runs, 3)
		}
	})
}

func TestTenantsOfDirectInvocations(t *testing.T) {
	t.Parallel()
	h, runs, _ := charging(idem.New(&idem.MemoryStore{}, callertest.Anybody))
	for i, tenant := range []string{"blue", "green", "blue", ""} {
		if _, err := h.Handle(asTenant(t.Context(), tenant), order{ID: "o-1"}); err != nil {
			t.Error(err)
		}
		if want := []int{1, 2, 2, 3}[i]; *runs != want {
			t.Errorf("%d runs after tenant %q, want %d", *runs, tenant, want)
		}
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
	h, _ := counted(created)
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	ctx, cancel := context.WithTimeout(asTenant(t.Context(), "blue"), ample)
	defer cancel()
	if _, err := httpAPI.wrap(e, h).Invoke(ctx, httpAPI.payload(t, newCall("k"))); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]int{"blue": 201, "green": 404} {
		c := newCall("k")
		c.method, c.path, c.body = "GET", "/operations/k", nil
		out, err := lambda.StatusHandler(e, lambda.HTTPAPI).Invoke(asTenant(ctx, tenant), httpAPI.payload(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if a := httpAPI.result(t, out); a.status != want {
			t.Errorf("tenant %s: %d %s, want %d", tenant, a.status, a.body, want)
		}
	}
}

// Tenants have keys of their own whoever names the caller: the program, for all or for
// one request.
func TestTenantsUnderAScope(t *testing.T) {
	t.Parallel()
	acct := func(context.Context, *idem.Request) (string, error) { return "acct_7", nil }
	own := lambda.HTTPAPI
	own.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
		req, err := lambda.HTTPAPI.Request(ctx, ev)
		req.Scope = "acct_7"
		return req, err
	}
	for name, tc := range map[string]struct {
		adapter lambda.Adapter[v2Request, v2Response]
		scope   func(context.Context, *idem.Request) (string, error)
	}{
		"Options.Scope": {lambda.HTTPAPI, acct}, "Request.Scope": {own, nil}, "RoleScope": {lambda.HTTPAPI, lambda.RoleScope},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := lambda.Wrap(idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Scope = tc.scope }), tc.adapter,
				func(context.Context, v2Request) (v2Response, error) { runs++; return v2Response{StatusCode: 201}, nil })
			ev := post("k", "{}")
			ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:sts::1:assumed-role/Checkout/s"},
			}
			for i, tenant := range []string{"blue", "green", "blue", ""} {
				if re, err := h.Handle(asTenant(t.Context(), tenant), ev); err != nil || re.StatusCode != 201 {
					t.Errorf("%q: %+v, %v", tenant, re, err)
				}
				if want := []int{1, 2, 2, 3}[i]; runs != want {
					t.Errorf("%d runs after tenant %q, want %d", runs, tenant, want)
				}
			}
		})
	}
}

// AWS hands a function with tenant isolation no events of queues. If it begins to, or
// if a program invokes it with such an event, tenants keep their keys.
func TestTenantsOfAQueue(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]lambda.Batch[events.SQSEvent, events.SQSMessage, events.SQSEventResponse]{
		"the queue's scope": lambda.SQS, "a scope of one's own": lambda.SQS.WithScope("orders"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody), batch, func(context.Context, events.SQSMessage) error { runs++; return nil })
			ev := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", Body: "{}", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:1:orders"}}}
			for i, tenant := range []string{"blue", "green", "blue", ""} {
				if re, err := h.Handle(asTenant(t.Context(), tenant), ev); err != nil || len(re.BatchItemFailures) > 0 {
					t.Errorf("%+v, %v", re, err)
				}
				if want := []int{1, 2, 2, 3}[i]; runs != want {
					t.Errorf("%d runs after tenant %q, want %d", runs, tenant, want)
				}
			}
		})
	}
}
