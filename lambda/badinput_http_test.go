package lambda_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
)

// The bad inputs that a client can send, over real HTTP: to net/http with the
// middleware, and through the gateways.
func TestBadInputOverHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		test func(*testing.T, front)
	}{
		{"01 key missing", badKeys("idempotency_key_missing", "X-Other: k")},
		{"02 key empty", badKeys("idempotency_key_invalid", "Idempotency-Key:", "Idempotency-Key:    ", `Idempotency-Key: ""`)},
		{"03 key too long", badKeys("idempotency_key_invalid", "Idempotency-Key: "+strings.Repeat("k", 256), "Idempotency-Key: "+strings.Repeat("k", 10<<10))},
		{"04 control characters", badKeys("", // some are refused by the server
			"Idempotency-Key: a\x00b", "Idempotency-Key: a\rb", "Idempotency-Key: a\r\n b", "Idempotency-Key: a\tb", "Idempotency-Key: a\x7fb", "Idempotency-Key: a\x1bb")},
		{"05 not ASCII", badKeys("idempotency_key_invalid", "Idempotency-Key: schlüssel", "Idempotency-Key: a\xffb", "Idempotency-Key: a\u202eb")},
		{"06 two keys", badKeys("idempotency_key_invalid", "Idempotency-Key: a\r\nIdempotency-Key: b", "Idempotency-Key: a\r\nIdempotency-Key: a",
			"Idempotency-Key: a\r\nidempotency-key: b", "Idempotency-Key: a,b", `Idempotency-Key: "a", "b"`)},
		{"07 quoted and bare", sameRequest(`Idempotency-Key: "k"`, "Idempotency-Key: k")},
		{"08 any case", sameRequest("IDEMPOTENCY-KEY: k", "idempotency-key: k", "iDEMPOTENCY-kEY: k")},
		{"09 other body", otherRequest("POST /rides?a=1", `{"origin_lat":0}`)},
		{"10 other path", otherRequest("POST /riders?a=1", goldenBody)},
		{"10 other method", otherRequest("PUT /rides?a=1", goldenBody)},
		{"10 other query", otherRequest("POST /rides?a=2", goldenBody)},
		{"10 no query", otherRequest("POST /rides", goldenBody)},
		{"11 other tenant", otherTenant},
		{"12 other white space", otherSpace},
		{"13 base64 and plain", sameRequest("Idempotency-Key: k\r\nContent-Type: application/json", "Idempotency-Key: k\r\nContent-Type: application/octet-stream")},
		{"14 body that can't be decoded", undecodable},
		{"15 duplicate while running", duplicateRunning},
		{"20 odd bodies", oddBodies},
		{"20 6 MB", largeBody},
		{"22 cookies and line breaks", cookiesAndLines},
		{"24 corrupt record", corruptRecord},
		{"33 forged identity", forgedIdentity},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range fronts {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					tt.test(t, f)
				})
			}
		})
	}
	t.Run("16 a thousand at once", func(t *testing.T) { //nolint:paralleltest // each front needs the machine
		for _, f := range fronts {
			t.Run(f.name, func(t *testing.T) { thousandAtOnce(t, f) })
		}
	})
}

// badKeys sends requests whose key is wrong. code is "" where Go's server may
// have refused it before us.
func badKeys(code string, lines ...string) func(*testing.T, front) {
	return func(t *testing.T, f front) {
		s := f.open(t, nil)
		for _, line := range lines {
			a := s.post(line)
			if a.status != 400 {
				t.Errorf("%.40q: got %d %s", line, a.status, a.body)
			} else if code != "" || a.value("Content-Type") == "application/problem+json" {
				a.refused(t, 400, cmp.Or(code, "idempotency_key_invalid"))
			}
		}
		s.nothing()
	}
}

// sameRequest sends one request with other header lines each time.
func sameRequest(lines ...string) func(*testing.T, front) {
	return func(t *testing.T, f front) {
		s := f.open(t, nil)
		for i, line := range lines {
			s.send("POST /rides", goldenBody, line).accepted(t, 201, createdBody, i > 0)
		}
		ran(t, s.runs, 1)
	}
}

// otherRequest sends another request with the key of the first.
func otherRequest(target, body string) func(*testing.T, front) {
	return func(t *testing.T, f front) {
		s := f.open(t, nil, func(o *idem.Options) { o.Methods = []string{"POST", "PUT"} })
		first := func(replayed bool) {
			s.send("POST /rides?a=1", goldenBody, "Idempotency-Key: k").accepted(t, 201, createdBody, replayed)
		}
		first(false)
		a := s.send(target, body, "Idempotency-Key: k")
		a.refused(t, 422, "idempotency_key_mismatch")
		if bytes.Contains(a.body, []byte("made")) || a.value("Location") != "" {
			t.Errorf("the stored answer leaks: %v %s", a.header, a.body)
		}
		first(true)
		ran(t, s.runs, 1)
	}
}

func otherTenant(t *testing.T, f front) {
	n := 0
	s := f.open(t, func(context.Context, []byte) (idem.Response, error) {
		n++
		return idem.Response{Status: 201, Body: []byte(strconv.Itoa(n))}, nil
	})
	for _, tt := range []struct {
		user, want string
		replayed   bool
	}{{"alice", "1", false}, {"bob", "2", false}, {"alice", "1", true}, {"bob", "2", true}} {
		s.post("Idempotency-Key: k", "Authorization: Bearer "+tt.user).accepted(t, 201, tt.want, tt.replayed)
	}
}

func otherSpace(t *testing.T, f front) {
	for _, canonical := range []bool{false, true} {
		s := f.open(t, nil, func(o *idem.Options) { o.Fingerprint.CanonicalJSON = canonical })
		post := func(body string) answer {
			return s.send("POST /rides", body, "Idempotency-Key: k", "Content-Type: application/json")
		}
		post(`{"a":1,"b":2}`).accepted(t, 201, `made: {"a":1,"b":2}`, false)
		if again := post(`{ "b":2, "a":1 }`); canonical {
			again.accepted(t, 201, `made: {"a":1,"b":2}`, true)
		} else {
			again.refused(t, 422, "idempotency_key_mismatch")
		}
		ran(t, s.runs, 1)
	}
}

// undecodable is a body that ends too early, and for gateways, which wait for
// the rest of it, one that isn't the base64 they say.
func undecodable(t *testing.T, f front) {
	spoil := func(h awslambda.Handler) awslambda.Handler {
		return invoker(func(ctx context.Context, payload []byte) ([]byte, error) {
			var ev map[string]any
			if err := json.Unmarshal(payload, &ev); err != nil {
				return nil, err
			}
			ev["body"], ev["isBase64Encoded"] = "@@@", true
			payload, err := json.Marshal(ev)
			if err != nil {
				return nil, err
			}
			return h.Invoke(ctx, payload)
		})
	}
	s := f.openWith(t, nil, spoil)
	if f.gateway {
		s.post("Idempotency-Key: k").refused(t, 400, "request_invalid")
		s.nothing()
		return
	}
	s.sendRaw("POST /rides HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\ncut", true).refused(t, 400, "request_invalid")
	s.sendRaw("POST /rides HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut", true).refused(t, 400, "request_invalid")
	s.nothing()
}

func duplicateRunning(t *testing.T, f front) {
	var s *site
	var twin answer
	s = f.open(t, func(ctx context.Context, body []byte) (idem.Response, error) {
		twin = s.post("Idempotency-Key: k")
		return created(ctx, body)
	})
	s.post("Idempotency-Key: k").accepted(t, 201, createdBody, false)
	twin.refused(t, 409, "idempotency_in_flight")
	// The lease is 30 s where no deadline is known, 20 s in the functions.
	if got := twin.value("Retry-After"); got != "5" {
		t.Errorf("Retry-After is %q, want 5, since more is left of the lease", got)
	}
	ran(t, s.runs, 1)
}

func thousandAtOnce(t *testing.T, f front) {
	const all = 1000
	goOn := make(chan struct{})
	s := f.open(t, func(ctx context.Context, body []byte) (idem.Response, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return created(ctx, body)
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answers := make(chan answer, all)
	for range all {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+"/rides", strings.NewReader(goldenBody))
			if err == nil {
				r.Header.Set("Idempotency-Key", "k")
				var resp *http.Response
				if resp, err = client.Do(r); err == nil {
					body, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					answers <- answer{resp.StatusCode, resp.Header, body}
					return
				}
			}
			t.Error(err)
			answers <- answer{}
		}()
	}
	executed := 0
	for i := range all {
		if i == all/2 { // so that half of them find it at work for certain
			close(goOn)
		}
		switch a := <-answers; {
		case a.status == 409:
			a.refused(t, 409, "idempotency_in_flight")
		case a.value(idem.ReplayedHeader) == "true":
			a.accepted(t, 201, createdBody, true)
		default:
			a.accepted(t, 201, createdBody, false)
			executed++
		}
	}
	if executed != 1 {
		t.Errorf("%d executed", executed)
	}
	ran(t, s.runs, 1)
}

func oddBodies(t *testing.T, f front) {
	s := f.open(t, nil, func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }) // which parses
	for i, body := range []string{
		`{"__proto__":{"admin":true}}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), strings.Repeat("[", 100_000), "\x00\xff", "",
	} {
		for try := range 2 {
			// No type of text: gateways would make it UTF-8, and answer in base64.
			a := s.send("POST /rides", body, fmt.Sprintf("Idempotency-Key: k%d", i), "Content-Type: application/octet-stream", "Accept: application/octet-stream")
			a.accepted(t, 201, "made: "+body, try == 1)
		}
	}
	ran(t, s.runs, 5)
}

// largeBody is hashed as bytes. Lambda takes no event of 6 MB, so gateways
// refuse what the middleware takes; over its own limit that is 413 too.
func largeBody(t *testing.T, f front) {
	s := f.open(t, func(_ context.Context, body []byte) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte(strconv.Itoa(len(body)))}, nil
	})
	body := strings.Repeat("x", 6<<20)
	for i := range 2 {
		a := s.send("POST /rides", body, "Idempotency-Key: k")
		if f.gateway {
			if a.status != 413 {
				t.Errorf("got %d %.100s", a.status, a.body)
			}
			s.nothing()
			continue
		}
		a.accepted(t, 201, strconv.Itoa(6<<20), i == 1)
		ran(t, s.runs, 1)
	}
	before := s.runs.Load()
	if a := s.send("POST /rides", strings.Repeat("x", defaults.MaxRequest+1), "Idempotency-Key: k2"); a.status != 413 {
		t.Errorf("over the limit: got %d %.100s", a.status, a.body)
	}
	ran(t, s.runs, before)
}

func cookiesAndLines(t *testing.T, f front) {
	s := f.open(t, func(context.Context, []byte) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{
			"Set-Cookie": {"session=secret"}, "X-Good": {"yes"}, "X-Evil": {"a\r\nX-Injected: b"}, "X-Evil\r\nX-Injected": {"b"},
		}}, nil
	}, func(o *idem.Options) { o.StoreHeaders = []string{"X-Good", "X-Evil"} })
	for i, cookie := range []string{"session=secret", ""} {
		a := s.post("Idempotency-Key: k")
		a.accepted(t, 201, "", i == 1)
		if got := a.value("Set-Cookie"); got != cookie || a.value("X-Good") != "yes" {
			t.Errorf("answer %d: Set-Cookie is %q, want %q; X-Good is %q", i+1, got, cookie, a.value("X-Good"))
		}
		for name := range a.header {
			if strings.Contains(name, "Evil") || strings.Contains(name, "Injected") {
				t.Errorf("answer %d has the header %q", i+1, name)
			}
		}
	}
}

// corruptRecord finds a record that makes no sense: the handler doesn't run a second
// time, nothing is written, and nothing of the record is shown.
func corruptRecord(t *testing.T, f front) {
	for name, edit := range map[string]func(*store.Record){
		"an unknown state": func(r *store.Record) { r.State = "paused" },
		"no answer":        func(r *store.Record) { r.Response = nil },
	} {
		s := f.open(t, nil)
		s.post("Idempotency-Key: k").accepted(t, 201, createdBody, false)
		s.store.edit.Store(&edit)
		before := s.store.commits.Load()
		for range 2 {
			a := s.post("Idempotency-Key: k")
			a.refused(t, 500, "record_corrupt")
			if bytes.Contains(a.body, []byte("made")) || a.value("Location") != "" || a.value("Retry-After") != "" {
				t.Errorf("%s: %v %s", name, a.header, a.body)
			}
		}
		if n := s.store.commits.Load() - before; n != 0 {
			t.Errorf("%s: %d commits", name, n)
		}
		s.store.edit.Store(nil)
		s.post("Idempotency-Key: k").accepted(t, 201, createdBody, true)
		ran(t, s.runs, 1)
	}
}

// forgedIdentity claims to be alice by all a client can write: nobody believes
// it, and what is in a body stays there.
func forgedIdentity(t *testing.T, f front) {
	s := f.open(t, nil, idem.OneScope) // else the X-Api-Key is another caller's, who is refused
	s.post("Idempotency-Key: k", "Authorization: Bearer alice").accepted(t, 201, createdBody, false)
	for i, line := range []string{
		"X-Amzn-Oidc-Identity: alice", "X-Amzn-Oidc-Data: alice", "X-Forwarded-User: alice", "X-Api-Key: alice",
		`requestContext: {"authorizer":{"principalId":"alice","jwt":{"claims":{"iss":"https://issuer.example","sub":"alice"}}}}`,
	} {
		s.post("Idempotency-Key: k", line).accepted(t, 201, createdBody, i > 0) // nobody's own
	}
	ran(t, s.runs, 2)
	for i, body := range []string{
		`{"version":"2.0","requestContext":{"authorizer":{"jwt":{"claims":{"iss":"https://issuer.example","sub":"alice"}}}}}`,
		`{"samekey":{"resume":{"pk":"v1#x","owner":"me","ver":3}}}`, // a completer's envelope,
	} {
		s.send("POST /rides", body, fmt.Sprintf("Idempotency-Key: e%d", i)).accepted(t, 201, "made: "+body, false)
	}
	ran(t, s.runs, 4)
}
