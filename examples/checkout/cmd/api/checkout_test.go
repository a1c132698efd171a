package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// shelf is a table that has one session.
type shelf struct{ row }

func (s shelf) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	item, err := attributevalue.MarshalMap(s.row)
	return &dynamodb.GetItemOutput{Item: item}, err
}

func shop(outside http.Client, status string) *app {
	s := row{Session{ID: "cs_1", Status: status, Currency: "usd", Items: []Item{{"tea", 2}}, Totals: []Sum{{"total", 2 * price}}}, "jane", ""}
	return &app{db: shelf{s}, sessions: "sessions", payments: payments{url: "https://payments.example", http: outside}}
}

func routes(a *app, e *idem.Engine) *lambda.Router[request, response] {
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /checkout_sessions", e, a.create)
	router.Keyed("POST /checkout_sessions/{id}", e, a.update)
	router.Keyed("POST /checkout_sessions/{id}/complete", e, a.complete)
	router.Keyed("POST /checkout_sessions/{id}/cancel", e, a.cancel)
	return router
}

func post(path, body string) request {
	ev := request{RawPath: path, Body: body, Headers: map[string]string{"idempotency-key": "5f0ad0f3-7a08-4a5e-8a0f-6c1f2f0c9b1e"}}
	ev.RequestContext.HTTP.Method = http.MethodPost
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	return ev
}

var completion = post("/checkout_sessions/cs_1/complete", `{"payment_data":{"token":"tok_1","provider":"stripe"}}`)

// Whatever call the process dies at, the customer pays once, and one event is sent.
func TestACompletionSurvivesACrashEverywhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status, charges int
		fates           []idemtest.Fate
	}{
		"paid":               {200, 1, nil},
		"the answer is lost": {200, 1, []idemtest.Fate{{LoseAnswer: true}}},
		"declined":           {402, 0, []idemtest.Fate{{Refuse: 402}, {Refuse: 402}, {Refuse: 402}}},
		"a malformed token":  {402, 0, []idemtest.Fate{{Refuse: 400}, {Refuse: 400}, {Refuse: 400}}},
		"an unknown token":   {402, 0, []idemtest.Fate{{Refuse: 404}, {Refuse: 404}, {Refuse: 404}}},
		"a used token":       {402, 0, []idemtest.Fate{{Refuse: 422}, {Refuse: 422}, {Refuse: 422}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Router[request, response] {
				return routes(shop(*w.Client(), ready), w.Engine(idem.ACP))
			}, completion, func(t testing.TB, w *idemtest.World, re response) {
				if n := len(w.Provider.Effects("/charges")); re.StatusCode != tt.status || n != tt.charges {
					t.Errorf("%d %s, %d charges", re.StatusCode, re.Body, n)
				}
				if orders := idemtest.AllStaged[Order](t, w, "order_created"); len(orders) != tt.charges {
					t.Errorf("orders %+v", orders)
				}
			}, func(o *idemtest.CrashOptions) {
				o.Begin = func(w *idemtest.World) { w.Provider.Next(tt.fates...) }
			})
		})
	}
}

func TestSessionsAreCreatedChangedAndCanceled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, body, state string
		status            int
		says              string
	}{
		{"/checkout_sessions", `{"items":[{"id":"tea","quantity":3}]}`, ready, 201, `"totals":[{"type":"total","amount":3600}]`},
		{"/checkout_sessions", `{"items":[]}`, ready, 400, `"code":"invalid"`},
		{"/checkout_sessions/cs_1", `{"items":[{"id":"tea","quantity":1}]}`, ready, 200, `"amount":1200`},
		{"/checkout_sessions/cs_1", `{"items":[{"id":"tea","quantity":1}]}`, completed, 409, `"code":"invalid"`},
		{"/checkout_sessions/cs_1/complete", `{}`, ready, 400, `"code":"missing"`},
		{"/checkout_sessions/cs_1/complete", completion.Body, completed, 409, `"code":"invalid"`},
		{"/checkout_sessions/cs_1/complete", completion.Body, canceled, 409, `"code":"invalid"`},
		{"/checkout_sessions/cs_1/cancel", "", ready, 200, `"status":"canceled"`},
		{"/checkout_sessions/cs_1/cancel", "", completed, 405, `"code":"invalid"`},
	} {
		a := shop(http.Client{Transport: new(idemtest.Provider)}, tt.state)
		re := lambdatest.Replays(t, routes(a, idem.New(new(idem.MemoryStore), idem.ACP)), post(tt.path, tt.body))
		if re.StatusCode != tt.status || !strings.Contains(re.Body, tt.says) {
			t.Errorf("POST %s, %s: %d %s", tt.path, tt.state, re.StatusCode, re.Body)
		}
	}
	omar := post("/checkout_sessions/cs_1/cancel", "")
	omar.RequestContext.Authorizer.Lambda["sub"] = "omar"
	re, err := routes(shop(http.Client{}, ready), idem.New(new(idem.MemoryStore), idem.ACP)).Handle(t.Context(), omar)
	if err != nil || re.StatusCode != 404 {
		t.Errorf("another caller's session: %d %s, %v", re.StatusCode, re.Body, err)
	}
}

// While another completion is in progress, the refusal is not kept: that payment may be
// declined, and then the same request completes the session.
func TestACompletionWhileAnotherIsInProgress(t *testing.T) {
	t.Parallel()
	a := shop(http.Client{Transport: new(idemtest.Provider)}, inProgress)
	router := routes(a, idem.New(new(idem.MemoryStore), idem.ACP, func(o *idem.Options) { o.Resumable, o.Function = true, "checkout" }))
	for range 2 {
		re, err := router.Handle(t.Context(), completion)
		if err != nil || re.StatusCode != 409 || !strings.Contains(re.Body, `"code":"invalid"`) || re.Headers["Idempotent-Replayed"] != "" {
			t.Errorf("in progress: %d %s %v, %v", re.StatusCode, re.Body, re.Headers, err)
		}
	}
	s := a.db.(shelf).row
	s.Status = ready
	a.db = shelf{s}
	if re, err := router.Handle(t.Context(), completion); err != nil || re.StatusCode != 200 {
		t.Errorf("ready again: %d %s, %v", re.StatusCode, re.Body, err)
	}
}

// Behind an authorizer that the example doesn't know, nobody has a session: not even those
// that somebody nameless made.
func TestACallerWithoutANameHasNoSession(t *testing.T) {
	t.Parallel()
	a := shop(http.Client{Transport: new(idemtest.Provider)}, ready)
	nobodys := a.db.(shelf).row
	nobodys.Owner = ""
	a.db = shelf{nobodys}
	router := routes(a, idem.New(new(idem.MemoryStore), idem.ACP))
	router.Route("GET /checkout_sessions/{id}", a.show)
	show := post("/checkout_sessions/cs_1", "")
	show.RequestContext.HTTP.Method = http.MethodGet
	for _, ev := range []request{
		show, completion, post("/checkout_sessions", `{"items":[{"id":"tea","quantity":1}]}`),
		post("/checkout_sessions/cs_1", `{"items":[{"id":"tea","quantity":1}]}`), post("/checkout_sessions/cs_1/cancel", ""),
	} {
		ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "https://id.example", "sub": "jane"}},
		}
		for range 2 { // the refusal is not kept
			re, err := router.Handle(t.Context(), ev)
			if err != nil || re.StatusCode != http.StatusUnauthorized || !strings.Contains(re.Body, `"code":"unauthorized"`) || re.Headers["Idempotent-Replayed"] != "" {
				t.Errorf("%s %s: %d %s %v, %v", ev.RequestContext.HTTP.Method, ev.RawPath, re.StatusCode, re.Body, re.Headers, err)
			}
		}
	}
}
