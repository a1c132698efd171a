package lambda_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// front is what stands between a client and a handler: net/http itself, or a
// gateway that makes events. Each knows callers by "Authorization: Bearer NAME".
type front struct {
	name    string
	gateway bool
	serve   func(*idem.Engine, handler, func(awslambda.Handler) awslambda.Handler) http.Handler
}

var fronts = []front{
	{"net http", false, serveHTTP},
	{"HTTP API", true, func(e *idem.Engine, h handler, between func(awslambda.Handler) awslambda.Handler) http.Handler {
		return apigateway.HTTPAPI(lambdarun.InProcess(between(httpAPI.wrap(e, h)), 20*time.Second), func(o *apigateway.HTTPAPIOptions) {
			o.Authorizer = func(r *http.Request) (*apigateway.Identity, error) {
				if name := bearer(r.Header); name != "" {
					return apigateway.JWT(map[string]string{"iss": "https://issuer.example", "sub": name}), nil
				}
				return nil, nil
			}
		})
	}},
	{"REST API", true, func(e *idem.Engine, h handler, between func(awslambda.Handler) awslambda.Handler) http.Handler {
		return apigateway.RESTAPI(map[string]apigateway.RESTRoute{"ANY /{proxy+}": {
			Function:   lambdarun.InProcess(between(rest.wrap(e, h)), 20*time.Second),
			Authorizer: &apigateway.RESTAuthorizer{Function: invoker(principal)},
		}}, func(o *apigateway.RESTAPIOptions) { o.BinaryMediaTypes = []string{"application/octet-stream"} })
	}},
}

func bearer(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

type invoker func(context.Context, []byte) ([]byte, error)

func (f invoker) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return f(ctx, payload) }

// principal is a REST API's authorizer; it has a name for everybody.
func principal(_ context.Context, payload []byte) ([]byte, error) {
	var ev struct{ Headers map[string]string }
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, err
	}
	name := cmp.Or(strings.TrimPrefix(ev.Headers["Authorization"], "Bearer "), "nobody")
	return fmt.Appendf(nil, `{"principalId":%q,"policyDocument":{"Version":"2012-10-17","Statement":[`+
		`{"Action":"execute-api:Invoke","Effect":"Allow","Resource":"*"}]}}`, name), nil
}

type callerKey struct{}

// serveHTTP is net/http with idem.Middleware, behind one that knows callers.
func serveHTTP(e *idem.Engine, h handler, _ func(awslambda.Handler) awslambda.Handler) http.Handler {
	keyed := e.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var resp idem.Response
		if err == nil {
			resp, err = h(r.Context(), body)
		}
		if err != nil {
			http.Error(w, "failed", http.StatusInternalServerError)
			return
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.Status)
		_, _ = w.Write(resp.Body)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := cmp.Or(bearer(r.Header), "nobody")
		keyed.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)))
	})
}

// site is a server with one wrapped handler behind a front.
type site struct {
	*testing.T
	front
	addr  string
	store *watched
	runs  *atomic.Int64
}

// open serves h, or created where it is nil, until the test ends.
func (f front) open(t *testing.T, h handler, optFns ...func(*idem.Options)) *site {
	t.Helper()
	return f.openWith(t, h, func(h awslambda.Handler) awslambda.Handler { return h }, optFns...)
}

func (f front) openWith(t *testing.T, h handler, between func(awslambda.Handler) awslambda.Handler, optFns ...func(*idem.Options)) *site {
	t.Helper()
	if h == nil {
		h = created
	}
	s := &site{T: t, front: f, store: &watched{}}
	h, s.runs = counted(h)
	if !f.gateway {
		optFns = append(optFns, func(o *idem.Options) {
			o.Scope = func(ctx context.Context, _ *idem.Request) (string, error) {
				return ctx.Value(callerKey{}).(string), nil
			}
		})
	}
	srv := httptest.NewServer(f.serve(idem.New(s.store, append([]func(*idem.Options){callertest.Anybody}, optFns...)...), h, between))
	t.Cleanup(srv.Close)
	s.addr = srv.Listener.Addr().String()
	return s
}

// send writes a request to the wire as it stands: no client in between refuses
// or repairs it. Lines are header lines.
func (s *site) send(target, body string, lines ...string) answer {
	s.Helper()
	return s.sendRaw(target+" HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n"+
		fmt.Sprintf("Content-Length: %d\r\n", len(body))+strings.Join(append(lines, "", ""), "\r\n")+body, false)
}

// sendRaw may say that nothing more will come, which gateways take for a client
// that has gone.
func (s *site) sendRaw(request string, ends bool) answer {
	s.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(ample))
	_, err = io.WriteString(conn, request) // a server that refuses what it has seen may not read the rest
	if err == nil && ends {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// post is the request of most cases.
func (s *site) post(lines ...string) answer {
	s.Helper()
	return s.send("POST /rides", goldenBody, append(lines, "Content-Type: application/json")...)
}

// nothing checks that no handler ran and nothing was stored.
func (s *site) nothing() {
	s.Helper()
	s.store.untouched(s)
	ran(s, s.runs, 0)
}
