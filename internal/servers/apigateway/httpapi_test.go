package apigateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

// fixed makes what a front takes from the clock and at random the same each
// time.
func fixed(h http.Handler) http.Handler {
	a := h.(*httpAPI)
	a.now = func() time.Time { return time.Date(2026, 11, 21, 9, 30, 0, 123e6, time.FixedZone("", 3600)) }
	a.newID = func() string { return "JKJaXmPLvHcESHA=" }
	a.newTraceID = func() string { return "Root=1-67891233-abcdef012345678912345678" }
	return a
}

// bearer takes the token for the subject.
func bearer(r *http.Request) (*Identity, error) {
	subject, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return nil, errors.New("no token")
	case subject == "mallory":
		return nil, fmt.Errorf("mallory: %w", ErrForbidden)
	default:
		return JWT(map[string]string{"sub": subject}, "rides"), nil
	}
}

// testdata/event holds requests as they come over the wire and the events that
// are made of them.
func TestEventOfARequest(t *testing.T) {
	t.Parallel()
	for _, file := range glob(t, "testdata/event/*.http") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".http"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
			if err != nil {
				t.Fatal(err)
			}
			req.RemoteAddr = "203.0.113.7:51234"

			var event []byte
			inv := lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
				event = payload
				return []byte("{}"), nil
			})
			api := fixed(HTTPAPI(inv, func(o *HTTPAPIOptions) {
				o.Routes = []string{"$default", "POST /hello", "ANY /files/{folder}/{path+}", "GET /rides/{id}"}
				if strings.Contains(file, "authorized") {
					o.Authorizer = bearer
					o.DomainName = "abc.execute-api.us-east-1.amazonaws.com"
					o.APIID = "abc"
					o.StageVariables = map[string]string{"colour": "blue"}
				}
			}))
			rec := httptest.NewRecorder()
			api.ServeHTTP(rec, req)
			if rec.Code != http.StatusOK {
				t.Fatalf("status %d: %s", rec.Code, rec.Body)
			}
			if got := rec.Header().Get("Apigw-Requestid"); got != "JKJaXmPLvHcESHA=" {
				t.Errorf("request id is %q", got)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, event, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			golden(t, strings.TrimSuffix(file, ".http")+".json", pretty.Bytes())
		})
	}
}

// testdata/response holds what functions return and what clients get.
func TestResponseOfAFunction(t *testing.T) {
	t.Parallel()
	for _, file := range glob(t, "testdata/response/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			payload, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			api := fixed(HTTPAPI(lambdarun.InvokerFunc(func(context.Context, []byte) ([]byte, error) { return payload, nil })))
			rec := httptest.NewRecorder()
			api.ServeHTTP(rec, newRequest(t, http.MethodGet, nil))
			var got bytes.Buffer
			fmt.Fprintf(&got, "%d\n", rec.Code)
			for _, name := range slices.Sorted(maps.Keys(rec.Header())) {
				for _, v := range rec.Header()[name] {
					fmt.Fprintf(&got, "%s: %s\n", name, v)
				}
			}
			fmt.Fprintf(&got, "\n%q\n", rec.Body)
			golden(t, strings.TrimSuffix(file, ".json")+".txt", got.Bytes())
		})
	}
}

func TestBodyIsBase64UnlessItsTypeIsText(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"text/plain":                        false,
		"text/csv; header=present":          false,
		"Application/JSON":                  false,
		"application/json;charset=utf-8":    false,
		"application/xml":                   false,
		"application/javascript":            false,
		"":                                  true,
		"application/x-www-form-urlencoded": true,
		"application/problem+json":          true,
		"image/svg+xml":                     true,
		"multipart/form-data; boundary=x":   true,
		"application/octet-stream":          true,
	}
	for contentType, want := range tests {
		text, got := eventBody(contentType, []byte("body"))
		if got != want || (got && text != "Ym9keQ==") || (!got && text != "body") {
			t.Errorf("%q: base64 is %t, body %q", contentType, got, text)
		}
		if text, got := eventBody(contentType, nil); text != "" || got {
			t.Errorf("%q, no body: base64 is %t, body %q", contentType, got, text)
		}
	}
}

func newRequest(t *testing.T, method string, body io.Reader) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), method, "/", body)
}

func serve(t *testing.T, h http.Handler, req *http.Request) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

func TestGatewaysOwnAnswers(t *testing.T) {
	t.Parallel()
	fails := func(err error) lambdarun.InvokerFunc {
		return func(context.Context, []byte) ([]byte, error) { return nil, err }
	}
	unreached := fails(errors.New("must not be reached"))
	get := newRequest(t, http.MethodGet, nil)
	tooLarge := newRequest(t, http.MethodPost, bytes.NewReader(make([]byte, maxBodyBytes+1)))
	withToken := func(token string) *http.Request {
		r := get.Clone(t.Context())
		r.Header.Set("Authorization", token)
		return r
	}
	authorized := func(o *HTTPAPIOptions) { o.Authorizer = bearer }
	tests := []struct {
		name string
		inv  lambdarun.Invoker
		opts func(*HTTPAPIOptions)
		req  *http.Request
		want string
	}{
		{"no route", unreached, func(o *HTTPAPIOptions) { o.Routes = []string{"POST /"} }, get, `404 {"message":"Not Found"}`},
		{"no token", unreached, authorized, get, `401 {"message":"Unauthorized"}`},
		{"not allowed", unreached, authorized, withToken("Bearer mallory"), `403 {"message":"Forbidden"}`},
		{"route before authorizer", unreached, func(o *HTTPAPIOptions) {
			o.Routes, o.Authorizer = []string{"POST /"}, bearer
		}, get, `404 {"message":"Not Found"}`},
		{"body too large", unreached, nil, tooLarge, `413 {"message":"Request Entity Too Large"}`},
		{"body cut short", unreached, nil, newRequest(t, http.MethodPost, iotest.ErrReader(io.ErrUnexpectedEOF)), `400 {"message":"Bad Request"}`},
		{"event too large", fails(fmt.Errorf("invoke: %w", lambdarun.ErrRequestTooLarge)), nil, get, `413 {"message":"Request Entity Too Large"}`},
		{"function error", fails(&lambdarun.FunctionError{Type: "T", Message: "secret", RequestID: "id"}), nil, get, `500 {"message":"Internal Server Error"}`},
		{"other error", fails(errors.New("secret")), nil, get, `500 {"message":"Internal Server Error"}`},
		{"function's own deadline", fails(fmt.Errorf("query: %w", context.DeadlineExceeded)), nil, get, `500 {"message":"Internal Server Error"}`},
		{"throttled", fails(fmt.Errorf("invoke: %w", lambdarun.ErrThrottled)), nil, get, `503 {"message":"Service Unavailable"}`},
		{"authorizer's context is not JSON", unreached, func(o *HTTPAPIOptions) {
			o.Authorizer = func(*http.Request) (*Identity, error) {
				return &Identity{Lambda: map[string]any{"f": func() {}}}, nil
			}
		}, get, `500 {"message":"Internal Server Error"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := HTTPAPI(tt.inv, func(o *HTTPAPIOptions) {
				if tt.opts != nil {
					tt.opts(o)
				}
			})
			code, body := serve(t, h, tt.req)
			if got := fmt.Sprintf("%d %s", code, body); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLogSaysWhy(t *testing.T) {
	t.Parallel()
	var buf localtest.Buffer
	log := slog.New(slog.NewTextHandler(&buf, nil))
	for _, tt := range []struct {
		reply string
		err   error
		want  string
	}{
		{"", &lambdarun.FunctionError{Type: "T", Message: "the reason", RequestID: "id"}, "the reason"},
		{`{"statusCode":1}`, nil, "status code 1"},
		{`{"statusCode":200,"multiValueHeaders":{"A":["b"]}}`, nil, "multiValueHeaders is no part"},
	} {
		inv := lambdarun.InvokerFunc(func(context.Context, []byte) ([]byte, error) { return []byte(tt.reply), tt.err })
		serve(t, HTTPAPI(inv, func(o *HTTPAPIOptions) { o.Logger = log }), newRequest(t, http.MethodGet, nil))
		if got := buf.String(); !strings.Contains(got, tt.want) {
			t.Errorf("log has no %q:\n%s", tt.want, got)
		}
	}
	// Ensure a nil logger is as good as none.
	inv := lambdarun.InvokerFunc(func(context.Context, []byte) ([]byte, error) { return nil, errors.New("x") })
	serve(t, HTTPAPI(inv, func(o *HTTPAPIOptions) { o.Logger = nil }), newRequest(t, http.MethodGet, nil))
}

func TestHTTPAPIPanicsOnProgrammerErrors(t *testing.T) {
	t.Parallel()
	echo := lambdarun.InvokerFunc(func(_ context.Context, p []byte) ([]byte, error) { return p, nil })
	routes := func(keys ...string) func() {
		return func() { HTTPAPI(echo, func(o *HTTPAPIOptions) { o.Routes = keys }) }
	}
	for name, fn := range map[string]func(){
		"nil Invoker":           func() { HTTPAPI(nil) },
		"the integration":       func() { HTTPAPI(echo, func(o *HTTPAPIOptions) { o.IntegrationTimeout = -1 }) },
		"route \"GET\"":         routes("GET"),
		"route \"get /\"":       routes("get /"),
		"route \"GET a\"":       routes("GET a"),
		"route \"GET /{}\"":     routes("GET /{}"),
		"route \"GET /{a\"":     routes("GET /{a"),
		"route \"GET /x{a}\"":   routes("GET /x{a}"),
		"route \"GET /{a+}/b\"": routes("GET /{a+}/b"),
		"route \"GET /a\" app":  routes("GET /a", "GET /a"),
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "apigateway: HTTPAPI: "+name) {
					t.Errorf("%s: panic is %q", name, got)
				}
			}()
			fn()
		}()
	}
}

// Neither the gateway's limit nor a client that goes away ends the function.
func TestFunctionRunsOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	for _, want := range []string{`{"message":"Service Unavailable"}`, ""} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		release, ended := make(chan struct{}), make(chan error, 1)
		f := lambdarun.InProcess(lambdarun.InvokerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
			if want == "" {
				cancel()
			}
			<-release
			ended <- ctx.Err()
			return nil, nil
		}), time.Hour)
		h := HTTPAPI(f, func(o *HTTPAPIOptions) {
			if want != "" {
				o.IntegrationTimeout = time.Millisecond
			}
		})
		if _, body := serve(t, h, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)); body != want {
			t.Errorf("answered %q, want %q", body, want)
		}
		close(release)
		_ = f.Close()
		if err := <-ended; err != nil {
			t.Errorf("the handler's context ended: %v", err)
		}
	}
}
