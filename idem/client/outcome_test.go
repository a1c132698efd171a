package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// A replayed answer stays the same.
func TestReplayedAnswerIsFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(500), answer(500, idem.ReplayedHeader, "true"), answer(200)}}
		if got := status(t, client.New(s), request(t, "POST", "x")); got != 500 || len(s.attempts()) != 2 {
			t.Errorf("status %d after %d attempts, want the replayed 500 after 2", got, len(s.attempts()))
		}
		s = &script{steps: []step{answer(500, idem.ReplayedHeader, "true", "Stripe-Should-Retry", "true"), answer(200)}}
		if got := status(t, client.New(s), request(t, "POST", "x")); got != 200 {
			t.Errorf("status %d, want another try where the server asks for it", got)
		}
	})
}

// sentThenRefused behaves like net/http after a broken connection, if its own
// second try finds no server.
func sentThenRefused(req *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(req.Context()).WroteHeaders()
	return nil, errRefused
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		first  step
		want   bool
	}{
		"no answer": {"POST", failing(errReset), true}, "503": {"POST", answer(503), true}, "409": {"POST", answer(409), true},
		"429": {"POST", answer(429), false}, "refused": {"POST", failing(errRefused), false},
		"refused after it was sent":      {"POST", sentThenRefused, true},
		"409 about something else's key": {"PUT", answer(409), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{tt.first, failing(errRefused)}}
				if e := failure(t, client.New(s), request(t, tt.method, "x")); e.Unknown != tt.want {
					t.Errorf("unknown: %t, want %t", e.Unknown, tt.want)
				}
			})
		})
	}
}

// An earlier request may have had the caller's own key.
func TestOutcomeOfACallersKeyIsNeverKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		req := request(t, "POST", "x")
		req.Header.Set(keyHeader, "mine")
		if e := failure(t, client.New(&script{steps: []step{failing(errRefused)}}), req); !e.Unknown || e.Key != "mine" {
			t.Errorf("%+v, want unknown", e)
		}
	})
}

// An answer that settles nothing must not look like "not done".
func TestAnswersThatDontSettleAreMarked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method string
		own    string
		steps  []step
		marked bool
	}{
		"401 at once":                 {steps: []step{answer(401)}},
		"429 at once":                 {steps: []step{answer(429)}},
		"401 after no answer":         {steps: []step{failing(errReset), answer(401)}, marked: true},
		"429 after no answer":         {steps: []step{failing(errReset), answer(429)}, marked: true},
		"429 after refused":           {steps: []step{failing(errRefused), answer(429)}},
		"429 after a 503":             {steps: []step{answer(503), answer(429)}, marked: true},
		"429 after a 409":             {steps: []step{answer(409), answer(429)}, marked: true},
		"429, the caller's key":       {own: "mine", steps: []step{answer(429)}, marked: true},
		"409":                         {steps: []step{answer(409)}, marked: true},
		"503":                         {steps: []step{answer(503)}, marked: true},
		"500, the last attempt's":     {steps: []step{answer(500)}, marked: true},
		"500, not to be retried":      {steps: []step{answer(500, "Stripe-Should-Retry", "false")}, marked: true},
		"503, replayed":               {steps: []step{failing(errReset), answer(503, idem.ReplayedHeader, "true")}},
		"402 after no answer":         {steps: []step{failing(errReset), answer(402)}},
		"422 after no answer":         {steps: []step{failing(errReset), answer(422)}},
		"307 after no answer":         {steps: []step{failing(errReset), answer(307)}},
		"202 still running":           {steps: []step{answer(202, "Retry-After", "1")}, marked: true},
		"201 after no answer":         {steps: []step{failing(errReset), answer(201)}},
		"503 to a GET, needs no mark": {method: "GET", steps: []step{answer(503)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if tt.method == "" {
					tt.method = "POST"
				}
				req := request(t, tt.method, "x")
				if tt.own != "" {
					req.Header.Set(keyHeader, tt.own)
				}
				resp, _, err := roundTrip(t, client.New(&script{steps: tt.steps}), req)
				if err != nil {
					t.Fatal(err)
				}
				if got := resp.Header.Get(client.ResultHeader); got != map[bool]string{true: client.OutcomeUnknown}[tt.marked] {
					t.Errorf("%s: %q, want marked: %t", client.ResultHeader, got, tt.marked)
				}
			})
		})
	}
}

// If the server ignored the key, a repetition is a second operation. The header
// says so, whatever becomes of the rest of the answer.
func TestIgnoredKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	ignored := []string{"Idempotency-Status", "ignored"}
	for name, tt := range map[string]struct {
		method string
		first  step
		want   int // attempts
	}{
		"POST":                       {"POST", answer(503, ignored...), 1},
		"POST, the server asks":      {"POST", answer(503, append(ignored, "Stripe-Should-Retry", "true")...), 1},
		"POST, still running":        {"POST", answer(409, append(ignored, "Retry-After", "1")...), 1},
		"POST, torn":                 {"POST", torn(201, ignored...), 1},
		"PATCH, torn":                {"PATCH", torn(200, ignored...), 1},
		"POST, the body never ends":  {"POST", hangingBody(201, ignored...), 1},
		"DELETE is idempotent as is": {"DELETE", answer(503, ignored...), 2},
		"DELETE, torn":               {"DELETE", torn(204, ignored...), 2},
		"another status":             {"POST", answer(503, "Idempotency-Status", "open"), 2},
		"another status, torn":       {"POST", torn(201, "Idempotency-Status", "open"), 2},
		"no answer":                  {"POST", failing(errReset), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &counts{}
				s := &script{steps: []step{tt.first, answer(200)}}
				resp, err := client.New(s, func(o *client.Options) {
					o.Hooks, o.AttemptTimeout, o.Methods = c.hooks(), time.Minute, []string{tt.method}
				}).RoundTrip(request(t, tt.method, "x"))
				if err == nil {
					_ = resp.Body.Close()
				}
				if got := len(s.attempts()); got != tt.want || (c.of("gave up ignored") == 1) != (tt.want == 1) {
					t.Errorf("%d attempts, %v; want %d", got, c.n, tt.want)
				}
			})
		})
	}
}

// R95.
func TestRepeatedDelete(t *testing.T) {
	t.Parallel()
	gone := func(req *http.Request) (*http.Response, error) {
		resp, err := answerBody(404, "no such order", "Content-Type", "text/plain", "Etag", "1", "Last-Modified", "today", "Trailer", "Sum", "X-Request-Id", "r1")(req)
		resp.Trailer, resp.Uncompressed = http.Header{"Sum": nil}, true
		return resp, err
	}
	for name, tt := range map[string]struct {
		method string
		steps  []step
		opt    func(*client.Options)
		want   int
	}{
		"first 404":                 {steps: []step{gone}, want: 404},
		"after no answer":           {steps: []step{failing(errReset), gone}, want: 204},
		"after a 5xx":               {steps: []step{answer(502), gone}, want: 204},
		"after a torn answer":       {opt: idemStripe, steps: []step{torn(200), gone}, want: 204},
		"after refused connections": {steps: []step{failing(errRefused), gone}, want: 404},
		"after a 429":               {steps: []step{answer(429), gone}, want: 404},
		"after a 409":               {steps: []step{answer(409), gone}, want: 404},
		"unknown further back":      {steps: []step{failing(errReset), answer(429), gone}, want: 204},
		"replayed":                  {opt: idemStripe, steps: []step{failing(errReset), answer(404, idem.ReplayedHeader, "true")}, want: 404},
		"by option":                 {opt: func(o *client.Options) { o.KeepNotFound = true }, steps: []step{failing(errReset), gone}, want: 404},
		"410":                       {steps: []step{failing(errReset), answer(410)}, want: 410},
		"PUT":                       {method: "PUT", steps: []step{failing(errReset), gone}, want: 404},
		"POST":                      {method: "POST", steps: []step{failing(errReset), gone}, want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if tt.opt == nil {
					tt.opt = func(*client.Options) {}
				}
				if tt.method == "" {
					tt.method = "DELETE"
				}
				c := &counts{}
				s := &script{steps: tt.steps}
				resp, body, err := roundTrip(t, client.New(s, tt.opt, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, tt.method, ""))
				if err != nil {
					t.Fatal(err)
				}
				made := resp.Header.Get(client.ResultHeader) == client.DeletedBefore
				if resp.StatusCode != tt.want || made != (tt.want == 204) || (c.of("deleted") == 1) != made {
					t.Errorf("status %d, header %v, %v; want %d", resp.StatusCode, resp.Header, c.n, tt.want)
				}
				if made && (body != "" || resp.Trailer != nil || resp.Uncompressed || resp.ContentLength != 0 || resp.Status != "204 No Content" ||
					fmt.Sprint(resp.Header) != "map[Idempotency-Client:[deleted-before] X-Request-Id:[r1]]") {
					t.Errorf("%q %q, length %d, %v", resp.Status, body, resp.ContentLength, resp.Header)
				}
				s.allClosed(t)
			})
		})
	}
}

// Only this package sets the header.
func TestServerSpoofsResultHeader(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(client.ResultHeader, client.OutcomeUnknown)
		w.WriteHeader(201)
	}))
	defer srv.Close()
	resp, err := (&http.Client{Transport: client.New(nil)}).Post(srv.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get(client.ResultHeader) != "" {
		t.Errorf("header of ours, by the server: %v", resp.Header)
	}
}
