package lambda_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// status makes the status resource for a source.
func (s source) status(e *idem.Engine) awslambda.Handler {
	switch s.name {
	case "HTTPAPI":
		return lambda.StatusHandler(e, lambda.HTTPAPI)
	case "REST":
		return lambda.StatusHandler(e, lambda.REST)
	case "FunctionURL":
		return lambda.StatusHandler(e, lambda.FunctionURL)
	}
	return lambda.StatusHandler(e, lambda.ALB)
}

// A10 in 202 mode: a Location, under which the operation can be seen by who asked
// for it, and nobody else.
func TestA10StatusResource(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/"
		})
		const key = `a/b%"c:d?`
		get := newCall("")
		get.method, get.path, get.header, get.body = "GET", "/operations/a%2Fb%25%22c:d%3F", http.Header{}, nil
		get.user, get.query = "jane", ""
		post := newCall(key)
		post.user = "jane"

		resource := s.status(e)
		s.send(t, resource, get).refused(t, http.StatusNotFound, "idempotency_key_unknown")
		running, goOn, first := make(chan struct{}), make(chan struct{}), make(chan answer)
		h := s.wrap(e, func(ctx context.Context, body []byte) (idem.Response, error) {
			close(running)
			<-goOn
			return created(ctx, body)
		})
		go func() { first <- s.send(t, h, post) }()
		select {
		case <-running:
		case <-time.After(ample):
			t.Fatal("the handler doesn't run")
		}
		accepted := s.send(t, h, post)
		if accepted.status != http.StatusAccepted || accepted.value("Location") != get.path || accepted.value("Retry-After") == "" {
			t.Errorf("in flight: %d %v", accepted.status, accepted.header)
		}
		if open := s.send(t, resource, get); open.status != http.StatusAccepted || !strings.Contains(string(open.body), `"in_flight"`) {
			t.Errorf("while open: %d %s", open.status, open.body)
		}
		close(goOn)
		(<-first).accepted(t, 201, createdBody, false)
		s.send(t, resource, get).accepted(t, 201, createdBody, true)

		if s.name != "ALB" && s.name != "ALB multi-value" { // which verify nobody
			get.user = "omar"
			s.send(t, resource, get).refused(t, http.StatusNotFound, "idempotency_key_unknown")
			get.user = "jane"
		}
		get.method = "POST"
		if a := s.send(t, resource, get); a.status != http.StatusMethodNotAllowed || a.value("Allow") == "" {
			t.Errorf("POST: %d %v", a.status, a.header)
		}
	})
}
