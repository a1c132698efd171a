//go:build unix

package killsweep_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/tap"
)

const user = "jane@example.com"

// patience is how long anything may take.
const patience = 10 * time.Minute

// run is one ride, with a function, a payment provider and a client of its own.
type run struct {
	*backstage
	tap      tap.Tap // the calls to DynamoDB and to the provider
	provider world.World
	function *lambdarun.Function
	api      string
	key      string
	lat      int // where it begins, unlike any other
	end      ending
	pk       string // of its record; "" before it is known
}

var lats atomic.Int64

func newRun(t *testing.T, b *backstage, m mode, end ending, env ...string) *run {
	t.Helper()
	r := &run{backstage: b, key: rand.Text(), lat: int(lats.Add(1)), end: end}
	provider := httptest.NewServer(r.provider.Handler())
	t.Cleanup(provider.Close)
	var err error
	r.function, err = lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "rides", Binary: b.bootstrap, Timeout: timeout, Overtime: 2 * patience, Stderr: t.Output(),
		Env: append([]string{
			"IDEM_TABLE=" + b.records, "RIDES_TABLE=" + b.rides, "AUDIT_TABLE=" + b.audit,
			"PAYMENTS_URL=" + through(t, &r.tap, provider.URL, tap.Path),
			"AWS_ENDPOINT_URL_DYNAMODB=" + through(t, &r.tap, b.db.Endpoint, tap.DynamoDB),
			"SAMEKEY_LEASE_MARGIN=" + margin.String(),
		}, append(b.db.Env(), env...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.function.Close() })
	api := httptest.NewServer(apigateway.HTTPAPI(r.function, func(o *apigateway.HTTPAPIOptions) {
		o.Routes = []string{"POST /rides"}
		o.IntegrationTimeout = 2 * patience
		o.Authorizer = func(*http.Request) (*apigateway.Identity, error) {
			return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": user}}, nil
		}
	}))
	t.Cleanup(api.Close)
	r.api = api.URL
	return r
}

// through is the URL at which a service is reached through a tap.
func through(t *testing.T, tp *tap.Tap, service string, name func(*http.Request) string) string {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(tp.Handler(target, name))
	t.Cleanup(srv.Close)
	return srv.URL
}

// reply is what the client gets.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r *run) post(ctx context.Context) reply {
	body := fmt.Sprintf(`{"origin_lat":%d.%03d,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3}`, r.lat/1000, r.lat%1000)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.api+"/rides", strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", r.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(all), err}
}

// inBackground sends the first request.
func (r *run) inBackground(t *testing.T) <-chan reply {
	t.Helper()
	done := make(chan reply, 1)
	go func() { done <- r.post(t.Context()) }()
	return done
}

// retry sends the request until it is answered for good, as a client does.
func (r *run) retry(t *testing.T) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		a := r.post(ctx)
		wait := 50 * time.Millisecond
		switch {
		case a.err != nil:
			t.Fatalf("the client gets no answer: %v", a.err)
		case a.status == http.StatusCreated:
			return a
		case a.status == http.StatusConflict || a.status >= http.StatusInternalServerError:
			if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		default:
			t.Fatalf("the client gets %d %s", a.status, a.body)
		}
		if !sleep(ctx, wait) {
			t.Fatalf("the client gets %d %s to the end", a.status, a.body)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

var pkOf = regexp.MustCompile(`"S":"(v1#rides#[^"]+)"`)

// harmed plays runs until a process is harmed at its call: on a busy machine an attempt
// may be out of time, and have given its call up, before a test gets at it.
func harmed(t *testing.T, play func() bool) {
	t.Helper()
	for range 20 {
		if play() || t.Failed() {
			return
		}
	}
	t.Fatal("no process was harmed: each had given its call up")
}

// reached waits until a call is held, and returns the process that makes it; false if
// that has given the call up.
func (r *run) reached(t *testing.T, h *tap.Held) (pid int, ok bool) {
	t.Helper()
	pid, ok = reached(t, h, r.function)
	r.named(t)
	return pid, ok
}

// named notes the record of the run, which its calls name, for as long as the run
// lasts.
func (r *run) named(t *testing.T) {
	t.Helper()
	for _, c := range r.tap.Calls() {
		if m := pkOf.FindStringSubmatch(c.Body); m != nil {
			r.pk = m[1]
		}
	}
	r.mu.Lock()
	r.runs[r.pk] = r
	r.mu.Unlock()
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.runs, r.pk)
	})
}

func reached(t *testing.T, h *tap.Held, f *lambdarun.Function) (pid int, ok bool) {
	t.Helper()
	select {
	case <-h.Reached():
	case <-time.After(patience):
		t.Fatal("the call never came")
	}
	// Others may have work too, such as the next delivery of the stream: they end by
	// themselves, and the process that is held doesn't.
	for begin := time.Now(); ; sleep(t.Context(), 10*time.Millisecond) {
		running := f.Running()
		switch {
		case len(running) == 0:
			return 0, false
		case len(running) == 1:
			return running[0].PID, true
		case time.Since(begin) > patience:
			t.Fatalf("%d processes at work, want 1", len(running))
		}
	}
}

// kill kills a process, and with it the call it was making: one that was held
// before it was passed on never arrives.
func kill(t *testing.T, f *lambdarun.Function, pid int, h *tap.Held) {
	t.Helper()
	if err := f.Kill(pid); err != nil {
		t.Fatal(err)
	}
	h.Drop()
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// record is the run's record; nil if there is none.
func (r *run) record(t *testing.T) *store.Record {
	t.Helper()
	rec, err := r.store.Load(t.Context(), r.pk)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// settled waits until the operation is done and its job delivered.
func (r *run) settled(t *testing.T) *store.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		rec := r.record(t)
		if atEnd(rec) {
			return rec
		}
		if !sleep(ctx, 50*time.Millisecond) {
			t.Fatalf("it doesn't come to its end: %+v", rec)
		}
	}
}

// atEnd reports whether an operation is done and its jobs are delivered.
func atEnd(rec *store.Record) bool {
	return rec != nil && rec.State == store.Done && len(rec.Jobs) == 0 && rec.Keep == store.KeepNothing
}

// left is what a ride has left behind.
type left struct{ Rides, Paid, Audits, Charges, Mails, MailCalls int }

var whole = left{Rides: 1, Paid: 1, Audits: 1, Charges: 1, Mails: 1, MailCalls: 1}

// look looks for it in the tables and in the world.
func (r *run) look(t *testing.T) (l left, rideID string) {
	t.Helper()
	var all []rides.Ride
	r.scan(t, r.rides, &all)
	var audits []struct {
		Ride string `dynamodbav:"resource_id"`
	}
	r.scan(t, r.audit, &audits)
	var charges []struct{ ID string }
	list(t, &r.provider, "/v1/charges", &charges)
	var mails []struct {
		Ride  string `json:"ride_id"`
		Calls int
	}
	list(t, &r.mails, "/v1/mails", &mails)
	l.Charges = len(charges)
	for _, ride := range all {
		if ride.OriginLat != float64(r.lat)/1000 {
			continue
		}
		l.Rides++
		rideID = ride.ID
		if len(charges) > 0 && ride.ChargeID == charges[0].ID {
			l.Paid++
		}
		for _, a := range audits {
			if a.Ride == ride.ID {
				l.Audits++
			}
		}
		for _, m := range mails {
			if m.Ride == ride.ID {
				l.Mails++
				l.MailCalls += m.Calls
			}
		}
	}
	return l, rideID
}

func list(t *testing.T, w *world.World, path string, out any) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
		t.Fatal(err)
	}
}
