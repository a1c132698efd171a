package tenants_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

// wire notes the size of each request to the database and of its answer.
type wire struct {
	mu    sync.Mutex
	calls []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	size := req.ContentLength
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf("%s sends %d and gets %d", req.Header.Get("X-Amz-Target"), size, len(body)))
	return resp, err
}

func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// payment is a request of a verified caller.
func payment(sub, key string) events.APIGatewayV2HTTPRequest {
	ev := events.APIGatewayV2HTTPRequest{RawPath: "/pay", Body: `{"amount":10}`, Headers: map[string]string{"idempotency-key": key}}
	ev.RequestContext.HTTP.Method = http.MethodPost
	ev.RequestContext.Authorizer = httpAPIAuthorizer(caller{kind: "jwt", a: "pool", b: sub})
	return ev
}

type v2Handler = lambda.Handler[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse]

// paying answers 201 with as many bytes as asked for; during runs in the handler.
func paying(s store.Store, a app, size int, during func(sub string) error) *v2Handler {
	now := time.Now().Truncate(time.Second)
	e := idem.New(s, func(o *idem.Options) {
		if a.opt != nil {
			a.opt(o)
		}
		o.Logger = slog.New(slog.DiscardHandler)
		o.Now = func() time.Time { return now } // some times are written only if they differ
	})
	body := noise("x")[:size]
	return lambda.Wrap(e, lambda.HTTPAPI, func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		err := during(ev.RequestContext.Authorizer.JWT.Claims["sub"])
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: body}, err
	}, named(rand.Text()))
}

// A caller can't tell a key that another tenant uses from a key that nobody uses: the
// engine makes the same calls, and the requests and answers on the wire have the same
// sizes. What the other tenant's operation does doesn't matter.
func TestForeignKeyCostsWhatAnUnknownKeyCosts(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	w := &wire{}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: w, Timeout: 10 * time.Minute} })
	table := "t-" + rand.Text()
	if err := dynamo.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	for _, a := range apps {
		if a.phases && !a.resumable {
			continue // its claim comes with its phases
		}
		for _, size := range []int{100, 9000} {
			for _, use := range []string{"done", "failed", "in flight"} {
				s, err := dynamo.New(client, table) // its count of companions begins anew
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%s, %d bytes, %s", a.name, size, use)
				var h *v2Handler
				var foreign, unknown []string
				key, other := "victim-"+rand.Text(), "nobody-"+rand.Text()
				measure := func() {
					w.taken()
					send(t, h, payment("mallory", key))
					foreign = w.taken()
					send(t, h, payment("mallory", other))
					unknown = w.taken()
				}
				h = paying(s, a, size, func(sub string) error {
					switch {
					case sub == "victor" && use == "failed":
						return io.ErrUnexpectedEOF
					case sub == "victor" && use == "in flight":
						measure()
					}
					return nil
				})
				send(t, h, payment("victor", key))
				if use != "in flight" {
					measure()
				}
				if diff := cmp.Diff(unknown, foreign); diff != "" || len(unknown) == 0 {
					t.Errorf("%s (-an unknown key +another tenant's key):\n%s", name, diff)
				}
				// Seen from its own tenant the key differs, or this test would see nothing.
				w.taken()
				send(t, h, payment("victor", key))
				if own := w.taken(); use == "done" && slices.Equal(own, unknown) {
					t.Errorf("%s: its owner's key costs what an unknown key costs", name)
				}
			}
		}
	}
}

func send(tb testing.TB, h *v2Handler, ev events.APIGatewayV2HTTPRequest) {
	tb.Helper()
	if _, err := h.Handle(tb.Context(), ev); err != nil {
		tb.Fatal(err)
	}
}
