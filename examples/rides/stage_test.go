package rides_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
)

const (
	jane = "jane@example.com"
	omar = "omar@example.com"

	trip  = `{"origin_lat":37.7,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}`
	other = `{"origin_lat":37.6,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}`
)

// stage is the app with its outside world and a store, in this process.
type stage struct {
	store    store.Store
	function *rides.Function
	receipts *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] // nil until a message comes
	app      *rides.App
	world    *world.World
	url      string // of the world
	clock    time.Time
	log      logged

	look    func(t *testing.T) seen
	records func(t *testing.T) []*store.Record
	refuse  func(t *testing.T)    // makes the last phase's condition false
	calls   func() map[string]int // since the last time, nil in memory
	direct  *dynamodb.Client      // nil in memory
	engine  func(...func(*idem.Options)) *idem.Engine
}

// logged keeps a log, for a search.
type logged struct {
	mu sync.Mutex
	b  []byte
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, b...)
	return len(b), nil
}

func (l *logged) text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b
}

// seen is what there is to see in the app's tables and in the world.
type seen struct {
	Rides, Paid, Audits, Jobs int
	Charges, Calls            int // Calls that reached the provider for them
}

// whole is all that a ride leaves behind.
var whole = seen{Rides: 1, Paid: 1, Audits: 1, Jobs: 1, Charges: 1, Calls: 1}

// each runs a test on both stores.
func each(t *testing.T, test func(t *testing.T, st *stage), optFns ...func(*idem.Options)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, inMemory(t, optFns...))
	})
	t.Run("DynamoDB", func(t *testing.T) {
		t.Parallel()
		test(t, onDynamoDB(t, optFns...))
	})
}

func newStage(t *testing.T, inner store.Store, optFns []func(*idem.Options)) *stage {
	t.Helper()
	st := &stage{store: inner, world: &world.World{}, clock: time.Now()}
	srv := httptest.NewServer(st.world.Handler())
	t.Cleanup(srv.Close)
	st.url = srv.URL
	st.engine = func(more ...func(*idem.Options)) *idem.Engine {
		base := func(o *idem.Options) {
			o.Function, o.Resumable = "f", true
			o.Hooks = idem.Hooks{}
			o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &st.log), nil))
			o.Now = func() time.Time { return st.clock }
		}
		return rides.Engine(inner, rides.RidesNamespace, slices.Concat([]func(*idem.Options){base}, optFns, more)...)
	}
	st.app = &rides.App{RidesTable: "rides", AuditTable: "audit", Payments: rides.Payments{URL: srv.URL}}
	st.function = rides.NewFunction(st.app, st.engine())
	return st
}

// inMemory is a stage that only remembers what would be written.
func inMemory(t *testing.T, optFns ...func(*idem.Options)) *stage {
	t.Helper()
	inner := &idem.MemoryStore{}
	st := newStage(t, inner, optFns)
	st.records = func(*testing.T) []*store.Record { return slices.Collect(maps.Values(inner.Records())) }
	refused := false
	inner.Apply = func(writes []idem.Write) error {
		if refused && strings.HasPrefix(writes[0].String(), "update rides ") {
			return fmt.Errorf("%w: the ride is gone", idem.ErrCondition)
		}
		return nil
	}
	st.refuse = func(*testing.T) { refused = true }
	st.look = func(t *testing.T) (s seen) {
		t.Helper()
		for _, w := range inner.Writes() {
			verb, _, _ := strings.Cut(w.String(), " {")
			switch verb {
			case "put rides":
				s.Rides++
			case "update rides":
				s.Paid++
			case "put audit":
				s.Audits++
			default:
				t.Errorf("unexpected write: %s", w)
			}
		}
		return s
	}
	st.calls = func() map[string]int { return nil }
	return st
}

// want compares what is there with what should be.
func (st *stage) want(t *testing.T, want seen) {
	t.Helper()
	got := st.look(t)
	for _, r := range st.records(t) {
		got.Jobs += len(r.Jobs)
	}
	for _, c := range st.charges(t) {
		got.Charges++
		got.Calls += c.Calls
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("there is (-want +got):\n%s", diff)
	}
}

type charge struct {
	ID, Key, Customer string
	Amount, Calls     int
}

func (st *stage) charges(t *testing.T) (all []charge) {
	t.Helper()
	rec := httptest.NewRecorder()
	st.world.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/charges", http.NoBody))
	if err := json.Unmarshal(rec.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// record is the only record there is.
func (st *stage) record(t *testing.T) *store.Record {
	t.Helper()
	all := st.records(t)
	if len(all) != 1 {
		t.Fatalf("%d records, want 1", len(all))
	}
	return all[0]
}

// at wants the only record to be open, released, and at a recovery point.
func (st *stage) at(t *testing.T, point string) {
	t.Helper()
	r := st.record(t)
	got := "started"
	if n := len(r.Phases); n > 0 {
		got = r.Phases[n-1].Name
	}
	if r.State != store.Open || !r.Lease.IsZero() || got != point {
		t.Errorf("the record is %s at %s with a lease until %v, want it open at %s, released", r.State, got, r.Lease, point)
	}
}

// event is a request as the gateway hands it on, behind the authorizer.
func event(user, key, body string) events.APIGatewayV2HTTPRequest {
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /rides", RawPath: "/rides",
		Headers: map[string]string{"content-type": "application/json", "authorization": "Bearer " + user},
		Body:    body,
	}
	if key != "" {
		ev.Headers["idempotency-key"] = key
	}
	ev.RequestContext.Stage = "$default"
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path, ev.RequestContext.HTTP.SourceIP = "POST", "/rides", "192.0.2.1"
	if user != "" {
		ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": user}}
	}
	return ev
}

// answer is what a client gets.
type answer struct {
	events.APIGatewayV2HTTPResponse
}

func (st *stage) send(t *testing.T, ev events.APIGatewayV2HTTPRequest) answer {
	t.Helper()
	return send(t, st.function.Handle, ev)
}

func send(t *testing.T, handle func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error), ev events.APIGatewayV2HTTPRequest) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	re, err := handle(ctx, ev)
	if err != nil {
		t.Fatalf("the function failed: %v", err)
	}
	return answer{re}
}

func (st *stage) post(t *testing.T, user, key, body string) answer {
	t.Helper()
	return st.send(t, event(user, key, body))
}

// is checks the status, and that the answer is no replay.
func (a answer) is(t *testing.T, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("got %d %s, want %d", a.StatusCode, a.Body, status)
	}
	if a.Headers["Idempotent-Replayed"] != "" {
		t.Errorf("got a replay of %d, want a first answer", a.StatusCode)
	}
	return a
}

// replays checks that the answer is was again, to the byte.
func (a answer) replays(t *testing.T, was answer) {
	t.Helper()
	if a.StatusCode != was.StatusCode || a.Body != was.Body || a.IsBase64Encoded != was.IsBase64Encoded {
		t.Errorf("got %d %.300s, want %d %.300s again", a.StatusCode, a.Body, was.StatusCode, was.Body)
	}
	if a.Headers["Idempotent-Replayed"] != "true" {
		t.Error("the replay is not marked as one")
	}
	for _, name := range []string{"Content-Type", "Location"} {
		if a.Headers[name] != was.Headers[name] {
			t.Errorf("%s is %q, was %q", name, a.Headers[name], was.Headers[name])
		}
	}
}

// has checks that the body has a text in it.
func (a answer) has(t *testing.T, text string) answer {
	t.Helper()
	if !strings.Contains(a.Body, text) {
		t.Errorf("got %s, want it to say %q", a.Body, text)
	}
	return a
}

// ride is the ride in an answer.
func (a answer) ride(t *testing.T) rides.Ride {
	t.Helper()
	var r rides.Ride
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	return r
}

func newKey() string { return rand.Text() }
