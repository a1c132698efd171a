package check_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
)

const token = "t0ken-of-jane"

func bad(url string) check.Template {
	return check.Template{
		URL: url + "/orders?api_key=" + token, Body: []byte(`{}`), Header: http.Header{"Authorization": {"Bearer " + token}},
	}
}

// trouble runs an examination that can't begin, and returns the error.
func trouble(t *testing.T, template check.Template, optFns ...func(*check.Options)) string {
	t.Helper()
	plan, err := check.Make(template, append([]func(*check.Options){patient}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Run(t.Context())
	if err == nil {
		t.Fatalf("the examination succeeds: %+v", report)
	}
	var shown strings.Builder
	if err := report.Print(&shown); err != nil {
		t.Fatal(err)
	}
	if report.Trouble != err.Error() || len(report.Checks) > 0 || strings.Contains(shown.String(), token) || strings.ContainsRune(shown.String(), '\x1b') {
		t.Errorf("%v in the report\n%s", err, &shown)
	}
	return err.Error()
}

func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "https://elsewhere.example/orders?token="+token)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// An API that can't be examined gives an error of one line, whatever the API answers.
func TestBadServers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		opt     func(*check.Options)
		says    string
	}{
		{"HTML", answering(200, "text/html; charset=utf-8", "<html>"), nil, "the answer (200) is HTML: is this the URL of an API?"},
		{"a redirect", answering(307, "", ""), nil, "the API redirects to https://elsewhere.example/orders (307)"},
		{"no credentials", answering(401, "", ""), nil, "the API answers 401: does the request lack credentials?"},
		{"nothing there", answering(404, "application/json", "{}"), nil, "the API answers 404 to your request, but an examination needs a success: correct --body, --header or the URL"},
		{"refused in both forms", answering(400, "application/json", "{}"), nil, "the API answers 400 to your request, but an examination needs a success: correct --body, --header or the URL"},
		{
			"a huge body", answering(200, "application/json", strings.Repeat("x", 1000)), func(o *check.Options) { o.MaxBody = 999 },
			"the answer (status 200) has more than 999 bytes",
		},
		{"a torn body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "x")
		}, nil, "the answer (status 200) breaks off: "},
		{
			"an answer that never comes", func(_ http.ResponseWriter, r *http.Request) { hang(r) },
			func(o *check.Options) { o.Timeout = 50 * time.Millisecond }, "no answer within 50ms; the API may have carried out the request",
		},
		{"a body that never ends", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, func(o *check.Options) { o.Timeout = 50 * time.Millisecond }, "no answer within 50ms"},
		{
			"too long in all", func(_ http.ResponseWriter, r *http.Request) { hang(r) },
			func(o *check.Options) { o.Total = 50 * time.Millisecond }, "the examination reached the limit of 50ms: raise",
		},
		{"an end without an answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, "closed the connection before the answer was complete"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(tc.handler)
			t.Cleanup(srv.Close)
			var opts []func(*check.Options)
			if tc.opt != nil {
				opts = append(opts, tc.opt)
			}
			if got := trouble(t, bad(srv.URL), opts...); !strings.Contains(got, tc.says) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}

// A server without HTTP, and a missing server, give an error.
func TestNoServers(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(answering(200, "", ""))
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(answering(200, "", ""))
	t.Cleanup(plain.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tc := range []struct{ name, url, says string }{
		{"an unknown certificate", secure.URL, "is not trusted: x509: certificate signed by unknown authority"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), "doesn't speak TLS: should its URL begin with http://?"},
		{"nothing listens", gone.URL, "nothing listens at 127.0.0.1:"},
		{"another protocol", saying(t, "220 mail.example ESMTP "+token+" \x1b[31m\r\n"), `no HTTP answer from 127.0.0.1:`},
		{"a closed door", saying(t, ""), "closed the connection before the answer was complete"},
		{"no such host", "http://no-such-host.invalid", "no-such-host.invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := trouble(t, bad(tc.url)); !strings.Contains(got, tc.says) {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}

// hang waits until the client has gone; a server notices that only after it has read the body.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// saying starts a server that writes the words to every client and hangs up.
func saying(t *testing.T, words string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, words)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// After an interrupt, the report has the findings so far.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 3 {
			cancel(errors.New("ctrl-c"))
			hang(r)
		}
		w.WriteHeader(201)
	}))
	t.Cleanup(srv.Close)
	plan, err := check.Make(bad(srv.URL), patient)
	if err != nil {
		t.Fatal(err)
	}
	report, err := plan.Run(ctx)
	if err != nil || !strings.HasPrefix(report.Trouble, "interrupted; ") || len(report.Checks) != 3 || report.Requests != 3 {
		t.Errorf("%v, %+v", err, report)
	}
}

func TestBadTemplates(t *testing.T) {
	t.Parallel()
	good := check.Template{URL: "http://host/orders", Body: []byte("{}")}
	for says, edit := range map[string]func(*check.Template, *check.Options){
		"invalid URL":                           func(t *check.Template, _ *check.Options) { t.URL = "http://host/%zz" + token },
		"the URL contains credentials":          func(t *check.Template, _ *check.Options) { t.URL = "http://jane:" + token + "@host" },
		"no body: give --body":                  func(t *check.Template, _ *check.Options) { t.Body = nil },
		"--other-body is the same":              func(t *check.Template, _ *check.Options) { t.OtherBody = t.Body },
		"--other-path must begin with /":        func(t *check.Template, _ *check.Options) { t.OtherPath = "refunds" },
		"don't give the header Idempotency-Key": func(t *check.Template, _ *check.Options) { t.Header = http.Header{"Idempotency-Key": {"k"}} },
		`unknown contract "adyen"`:              func(_ *check.Template, o *check.Options) { o.Contract = "adyen" },
		"--at-once is 21":                       func(_ *check.Template, o *check.Options) { o.Racers = 21 },
		"--prefix and --name may have":          func(_ *check.Template, o *check.Options) { o.Prefix = `a"b` },
	} {
		template, options := good, check.Options{}
		edit(&template, &options)
		_, err := check.Make(template, func(o *check.Options) { *o = options })
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), token) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	if _, err := check.Make(good); err != nil {
		t.Error(err)
	}
}
