package webhook_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// Over a real connection the handler gets the body byte for byte, and each delivery an answer.
func TestHTTP(t *testing.T) {
	t.Parallel()
	const binary = "{\"id\":\"evt_2\",\"x\":\"\u00e9\u2028\",\"y\":\"\\ud83d\"}\r\n"
	e := newEndpoint(t, nil, func(o *idem.Options) { o.MaxRequest = 1000 })
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	large := strings.Repeat("x", 1001)
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }
	for _, tt := range []struct {
		method string
		signed string
		body   io.Reader
		status int
		code   string
	}{
		{"POST", succeeded, strings.NewReader(succeeded), 200, ""},
		{"POST", succeeded, chunked(succeeded), 200, "duplicate"},
		{"POST", binary, strings.NewReader(binary), 200, ""},
		{"POST", large, strings.NewReader(large), 413, "body_too_large"},
		{"POST", large, chunked(large), 413, "body_too_large"},
		{"POST", "", strings.NewReader(succeeded), 400, "not_signed"},
		{"GET", succeeded, nil, 405, "method_not_allowed"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, srv.URL, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		if tt.signed != "" {
			r.Header = stripeSigned(tt.signed, start, stripeSecret)
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		want(t, idem.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, tt.status, tt.code)
	}
	if e.ran(t, 2); string(e.events[1].Body) != binary {
		t.Errorf("the handler got %q", e.events[1].Body)
	}
}

// Of a connection that breaks in the middle of a body, and of a body that a middleware in
// front has read, the log tells, instead of an invalid signature.
func TestHTTPWithoutItsBody(t *testing.T) {
	t.Parallel()
	for log, body := range map[string]io.Reader{
		"unexpected EOF":                     io.MultiReader(strings.NewReader(succeeded[:20]), errReader{io.ErrUnexpectedEOF}),
		"another reader has already read it": strings.NewReader(""),
		"closed":                             errReader{net.ErrClosed},
	} {
		e := newEndpoint(t, nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		r.Header, r.ContentLength = stripeSigned(succeeded, start, stripeSecret), int64(len(succeeded))
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		want(t, idem.Response{Status: w.Code, Header: w.Result().Header, Body: w.Body.Bytes()}, 400, "malformed")
		if !strings.Contains(e.log.String(), log) {
			t.Errorf("log: %s, want %q", &e.log, log)
		}
		e.ran(t, 0)
		e.store.untouched(t)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
