package main

import (
	"context"
	"log/slog"
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

// changing is a table whose session has another status at each read.
type changing struct {
	row

	next []string
}

func (c *changing) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if len(c.next) > 0 {
		c.Status, c.next = c.next[0], c.next[1:]
	}
	return shelf{c.row}.GetItem(ctx, in, opts...)
}

func (s shelf) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	item, err := attributevalue.MarshalMap(s.row)
	return &dynamodb.GetItemOutput{Item: item}, err
}

func shop(outside http.Client, status string) *app {
	s := row{Session{ID: "cs_1", Status: status, Currency: "usd", Items: []Item{{"tea", 2}}, Totals: []Sum{{"total", 2 * price}}}, "jane", "", ""}
	return &app{db: shelf{s}, sessions: "sessions", payments: payments{url: "https://payments.example", http: outside}}
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
		"a used token":       {402, 0, []idemtest.Fate{{Refuse: 422}, {Refuse: 422}, {Refuse: 422}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Router[request, response] {
				return shop(*w.Client(), ready).routes(w.Engine(idem.ACP))
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
		re := lambdatest.Replays(t, a.routes(idem.New(new(idem.MemoryStore), idem.ACP)), post(tt.path, tt.body))
		if re.StatusCode != tt.status || !strings.Contains(re.Body, tt.says) {
			t.Errorf("POST %s, %s: %d %s", tt.path, tt.state, re.StatusCode, re.Body)
		}
	}
	omar := post("/checkout_sessions/cs_1/cancel", "")
	omar.RequestContext.Authorizer.Lambda["sub"] = "omar"
	re, err := shop(http.Client{}, ready).routes(idem.New(new(idem.MemoryStore), idem.ACP)).Handle(t.Context(), omar)
	if err != nil || re.StatusCode != 404 {
		t.Errorf("another caller's session: %d %s, %v", re.StatusCode, re.Body, err)
	}
}

// While a session is being completed, no refusal is kept: that payment may be declined, and
// then the same request succeeds. Nor is one kept if the completion begins after the look at
// the session.
func TestARequestWhileACompletionIsInProgress(t *testing.T) {
	t.Parallel()
	for name, ev := range map[string]request{
		"update": post("/checkout_sessions/cs_1", `{"items":[{"id":"tea","quantity":1}]}`), "complete": completion, "cancel": post("/checkout_sessions/cs_1/cancel", ""),
	} {
		a := shop(http.Client{Transport: new(idemtest.Provider)}, inProgress)
		db := &changing{row: a.db.(shelf).row}
		a.db = db
		router := a.routes(idem.New(new(idem.MemoryStore), idem.ACP, func(o *idem.Options) {
			o.Resumable, o.Function, o.Logger = true, "checkout", slog.New(slog.DiscardHandler)
		}))
		for range 2 {
			re, err := router.Handle(t.Context(), ev)
			if err != nil || re.StatusCode != 409 || !strings.Contains(re.Body, `"code":"invalid"`) || re.Headers["Idempotent-Replayed"] != "" {
				t.Errorf("%s, in progress: %d %s %v, %v", name, re.StatusCode, re.Body, re.Headers, err)
			}
		}
		db.next = []string{ready, inProgress}
		if re, err := router.Handle(t.Context(), ev); err != nil || re.StatusCode != 500 || re.Headers["Idempotent-Replayed"] != "" {
			t.Errorf("%s, in progress meanwhile: %d %s %v, %v", name, re.StatusCode, re.Body, re.Headers, err)
		}
		db.Status = ready
		if re, err := router.Handle(t.Context(), ev); err != nil || re.StatusCode != 200 {
			t.Errorf("%s, ready again: %d %s, %v", name, re.StatusCode, re.Body, err)
		}
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
	router := a.routes(idem.New(new(idem.MemoryStore), idem.ACP))
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
