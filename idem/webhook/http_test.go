package webhook_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

// send posts over a real connection.
func send(t testing.TB, srv *httptest.Server, h http.Header, body io.Reader) idem.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/webhooks/stripe", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h.Clone()
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return idem.Response{Status: resp.StatusCode, Header: resp.Header, Body: b}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, nil, func(o *idem.Options) { o.MaxRequest = 1000 })
	mux := http.NewServeMux()
	mux.Handle("/webhooks/stripe", e)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	good := stripeSigned(succeeded, start, stripeSecret)

	want(t, send(t, srv, good, strings.NewReader(succeeded)), http.StatusOK, "")
	want(t, send(t, srv, good, strings.NewReader(succeeded)), http.StatusOK, "duplicate")
	want(t, send(t, srv, good, io.MultiReader(strings.NewReader(succeeded))), http.StatusOK, "duplicate") // chunked
	e.ran(t, 1)

	binary := "{\"id\":\"evt_2\",\"x\":\"\u00e9\u2028\",\"y\":\"\\ud83d\"}\r\n"
	want(t, send(t, srv, stripeSigned(binary, start, stripeSecret), strings.NewReader(binary)), http.StatusOK, "")
	if got := string(e.events[1].Body); got != binary {
		t.Errorf("the handler got %q", got)
	}

	large := strings.Repeat("x", 1001)
	want(t, send(t, srv, stripeSigned(large, start, stripeSecret), strings.NewReader(large)), http.StatusRequestEntityTooLarge, "body_too_large")
	want(t, send(t, srv, stripeSigned(large, start, stripeSecret), io.MultiReader(strings.NewReader(large))), http.StatusRequestEntityTooLarge, "body_too_large")
	want(t, send(t, srv, nil, strings.NewReader(succeeded)), http.StatusBadRequest, "not_signed")

	resp, err := srv.Client().Get(srv.URL + "/webhooks/stripe")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", resp.StatusCode, resp.Header)
	}
	e.ran(t, 2)
}

// A connection breaks in the middle of a body.
func TestHTTPTruncatedBody(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, nil)
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
		webhook.StripeHeader, stripeSigned(succeeded, start, stripeSecret).Get(webhook.StripeHeader), len(succeeded), succeeded[:20])
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	want(t, idem.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, http.StatusBadRequest, "malformed")
	if !bytes.Contains(e.log.Bytes(), []byte("unexpected EOF")) {
		t.Errorf("log: %s", &e.log)
	}
	e.ran(t, 0)
	e.store.untouched(t)
}

// If a middleware in front has read the body, the error says so, instead of
// reporting an invalid signature.
func TestHTTPBodyAlreadyRead(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	want(t, send(t, srv, stripeSigned(succeeded, start, stripeSecret), strings.NewReader(succeeded)), http.StatusBadRequest, "malformed")
	if !bytes.Contains(e.log.Bytes(), []byte("read by somebody else")) {
		t.Errorf("log: %s", &e.log)
	}
	e.ran(t, 0)
}
