package lambda_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Where no authorizer says who is calling, what the request presents does: the
// same through each adapter.
func TestOtherCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		h, runs := counted(created)
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}), h)
		from := func(header map[string]string, domain string) []byte {
			c := newCall("k")
			c.header.Set("Authorization", "Bearer ann")
			for name, value := range header {
				c.header.Set(name, value)
			}
			if domain == "" {
				return s.payload(t, c)
			}
			c.header.Set("Host", domain)
			ev := s.event(c)
			ev["requestContext"].(map[string]any)["domainName"] = domain
			payload, err := json.Marshal(ev)
			if err != nil {
				t.Fatal(err)
			}
			return payload
		}
		s.invoke(t, wrapped, from(nil, "")).accepted(t, 201, createdBody, false)
		s.invoke(t, wrapped, from(map[string]string{"Traceparent": "00-1-1-01", "Cookie": "theme=dark"}, "")).accepted(t, 201, createdBody, true)
		for name, payload := range map[string][]byte{
			"another token": from(map[string]string{"Authorization": "Bearer bob"}, ""),
			"an API key":    from(map[string]string{"X-Api-Key": "live-1"}, ""),
			"another host":  from(nil, "b.lambda-url.example"),
		} {
			a := s.invoke(t, wrapped, payload)
			a.refused(t, 422, "idempotency_credentials")
			if strings.Contains(string(a.body), "origin_lat") || a.value(idem.ReplayedHeader) != "" {
				t.Errorf("%s: the first caller's answer is shown: %v %s", name, a.header, a.body)
			}
		}
		s.invoke(t, wrapped, from(nil, "")).accepted(t, 201, createdBody, true)
		ran(t, runs, 1)
	})
}

// Who is verified may come with a fresh token, or another key of a usage plan.
func TestVerifiedCallersMayRefreshTheirToken(t *testing.T) {
	t.Parallel()
	each(t, []source{httpAPI, rest, functionURL}, func(t *testing.T, s source) {
		h, runs := counted(created)
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}), h)
		for i, token := range []string{"Bearer 1", "Bearer 2"} {
			c := newCall("k")
			c.user = "ann"
			c.header.Set("Authorization", token)
			s.send(t, wrapped, c).accepted(t, 201, createdBody, i == 1)
		}
		ran(t, runs, 1)
	})
}

func TestOtherCredentialsSeeNoStatus(t *testing.T) {
	t.Parallel()
	h, _ := counted(created)
	e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
	c := newCall("k")
	c.header.Set("Authorization", "Bearer ann")
	httpAPI.send(t, httpAPI.wrap(e, h), c).accepted(t, 201, createdBody, false)
	for token, want := range map[string]int{"Bearer ann": 201, "Bearer bob": 422} {
		c := newCall("k")
		c.method, c.path, c.body = "GET", "/operations/k", nil
		c.header.Set("Authorization", token)
		if a := httpAPI.send(t, lambda.StatusHandler(e, lambda.HTTPAPI), c); a.status != want {
			t.Errorf("%s: %d %s, want %d", token, a.status, a.body, want)
		}
	}
}
