package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/samekey/samekey/idem/client"
)

// R91, R92, R94, R96: the retried answers.
func TestRetriedStatuses(t *testing.T) {
	t.Parallel()
	retried := map[int]bool{409: true, 429: true}
	for code := 500; code < 600; code++ {
		retried[code] = true
	}
	for code := 200; code < 600; code++ {
		synctest.Test(t, func(t *testing.T) {
			for header, want := range map[string]bool{
				"":      retried[code],
				"?":     retried[code], // an invalid value decides nothing
				"true":  code >= 400,
				"TRUE":  code >= 400,
				"false": false,
			} {
				c := &counts{}
				s := &script{steps: []step{answer(code, "Stripe-Should-Retry", header), answer(200)}}
				status(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
				if refused := header == "false" && retried[code]; (c.of("gave up refused") == 1) != refused || (c.of("gave up") == 1) != refused {
					t.Errorf("%d, should-retry %q: %v, want given up: %t", code, header, c.n, refused)
				}
				if got := len(s.attempts()) == 2; got != want {
					t.Errorf("%d, should-retry %q: retried: %t, want %t", code, header, got, want)
				}
			}
		})
	}
}

func TestPolicyIsSettable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := func(s *script) *client.Transport {
			return client.New(s, func(o *client.Options) {
				o.Retried = func(status int) bool { return status == 404 }
			})
		}
		for _, tt := range []struct {
			first step
			want  int
		}{
			{answer(404), 2},
			{answer(503), 1},
			{answer(503, "Stripe-Should-Retry", "true"), 2},
			{answer(404, "stripe-should-retry", "false"), 1},
		} {
			s := &script{steps: []step{tt.first, answer(200)}}
			status(t, tr(s), request(t, "POST", "x"))
			if len(s.attempts()) != tt.want {
				t.Errorf("%d attempts, want %d", len(s.attempts()), tt.want)
			}
		}
	})
}

func TestRetriedErrors(t *testing.T) {
	t.Parallel()
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for name, tt := range map[string]struct {
		err   error
		url   string
		retry bool
		known bool // certain that nothing was carried out
	}{
		"reset":                 {err: op("read", os.NewSyscallError("read", syscall.ECONNRESET)), retry: true},
		"broken pipe":           {err: op("write", syscall.EPIPE), retry: true},
		"EOF":                   {err: io.EOF, retry: true},
		"refused":               {err: op("dial", syscall.ECONNREFUSED), retry: true, known: true},
		"no such host":          {err: op("dial", &net.DNSError{Err: "no such host", IsNotFound: true}), retry: true, known: true},
		"proxy unreachable":     {err: op("proxyconnect", syscall.EHOSTUNREACH), retry: true, known: true},
		"untyped":               {err: errors.New("http2: client connection lost"), retry: true},
		"timeout of the base":   {err: os.ErrDeadlineExceeded, retry: true},
		"inner deadline":        {err: context.DeadlineExceeded, retry: true},
		"inner cancel":          {err: fmt.Errorf("token: %w", context.Canceled)},
		"unknown authority":     {err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, known: true},
		"bare authority":        {err: x509.UnknownAuthorityError{}, known: true},
		"other host's":          {err: &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.test"}}, known: true},
		"expired certificate":   {err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, known: true},
		"not TLS":               {err: tls.RecordHeaderError{Msg: "not TLS"}},
		"another certificate":   {err: &tls.CertificateVerificationError{Err: errors.New("pinned")}, known: true},
		"no ECH":                {err: &tls.ECHRejectionError{}, known: true},
		"bare host's":           {err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.test"}, known: true},
		"no roots":              {err: x509.SystemRootsError{}, known: true},
		"bare DNS":              {err: &net.DNSError{Err: "no such host", IsNotFound: true}, retry: true, known: true},
		"alert from the server": {err: op("remote error", errors.New("tls: handshake failure"))},
		"alert to the server":   {err: op("local error", errors.New("tls: bad certificate"))},
		"alert of QUIC":         {err: tls.AlertError(40)},
		"unsupported protocol":  {err: errors.New("unsupported protocol scheme"), url: "ftp://api.test/"},
		"EOF, other protocol":   {err: io.EOF, url: "http+unix://sock/", retry: true},
		"torn, other protocol":  {err: io.ErrUnexpectedEOF, url: "http+unix://sock/", retry: true},
		"late, other protocol":  {err: os.ErrDeadlineExceeded, url: "http+unix://sock/", retry: true},
		"bare, other protocol":  {err: syscall.ECONNRESET, url: "http+unix://sock/", retry: true},
		"reset, other protocol": {err: op("read", syscall.ECONNRESET), url: "http+unix://sock/", retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{failing(tt.err)}}
				req := request(t, "POST", "x")
				if tt.url != "" {
					req.URL, _ = url.Parse(tt.url)
				}
				e := failure(t, client.New(s), req)
				if got := len(s.attempts()) > 1; got != tt.retry || !errors.Is(e, tt.err) || e.Unknown == tt.known {
					t.Errorf("%d attempts, %+v; want retried: %t, unknown: %t", len(s.attempts()), e, tt.retry, !tt.known)
				}
				if (e.GaveUp == "retries") != tt.retry {
					t.Errorf("gave up for %q", e.GaveUp)
				}
			})
		})
	}
}

func TestWhatCantBeSent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*http.Request){
		"no URL":           func(r *http.Request) { r.URL = nil },
		"no host":          func(r *http.Request) { r.URL.Host = "" },
		"method":           func(r *http.Request) { r.Method = "PO ST" },
		"header name":      func(r *http.Request) { r.Header["a b"] = []string{"c"} },
		"no header name":   func(r *http.Request) { r.Header[""] = []string{"c"} },
		"a colon in it":    func(r *http.Request) { r.Header["a:b"] = []string{"c"} },
		"a DEL in it":      func(r *http.Request) { r.Header["a\x7f"] = []string{"c"} },
		"a letter in it":   func(r *http.Request) { r.Header["\u00e4"] = []string{"c"} },
		"header injection": func(r *http.Request) { r.Header["A"] = []string{"b\r\nc: d"} },
		"a DEL in a value": func(r *http.Request) { r.Header["A"] = []string{"b\x7f"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{steps: []step{answer(200)}}
			req := request(t, "POST", "")
			body := &trackedBody{ReadCloser: io.NopCloser(errReader{io.EOF})}
			req.Body = body
			spoil(req)
			e := failure(t, client.New(s), req)
			if !errors.Is(e, client.ErrRequest) || len(s.attempts()) != 0 || e.Unknown {
				t.Errorf("%+v after %d attempts", e, len(s.attempts()))
			}
			if !body.isClosed() {
				t.Error("the body was not closed")
			}
		})
	}
}

// Nothing is refused that HTTP allows (RFC 9110, 5.5 and 5.6.2).
func TestWhatCanBeSent(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*http.Request){
		"every character of names and values": func(r *http.Request) { r.Header["!#$%&'*+-.^_`|~09azAZ"] = []string{" a\tb ~\u00e4", ""} },
		"no method, which is GET":             func(r *http.Request) { r.Method = "" },
		"another protocol, without a host":    func(r *http.Request) { r.URL = &url.URL{Scheme: "unix", Path: "/run/api.sock"} },
		"a redirect's without its request":    func(r *http.Request) { r.Response = &http.Response{} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503), answer(200)}}
			req := request(t, "POST", "x")
			set(req)
			if got := status(t, client.New(s), req); got != 200 || len(s.attempts()) != 2 {
				t.Errorf("%s: %d after %d attempts", name, got, len(s.attempts()))
			}
		})
	}
}

// An answer is an answer, whatever the protocol.
func TestAnswersOfOtherProtocolsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answer(503), answer(200)}}
		req := request(t, "POST", "x")
		req.URL = &url.URL{Scheme: "http+unix", Host: "sock"}
		if got := status(t, client.New(s), req); got != 200 {
			t.Errorf("status %d", got)
		}
	})
}

func TestBadTransport(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{func(*http.Request) (*http.Response, error) { return nil, nil }}}
	if e := failure(t, client.New(s), request(t, "POST", "x")); e.Attempts != 1 {
		t.Errorf("%v", e)
	}
	// The base transport may have sent another request, such as one with credentials.
	s = &script{steps: []step{func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer token")
		return answer(200)(r)
	}}}
	resp, _, err := roundTrip(t, client.New(s), request(t, "POST", "x"))
	if err != nil || resp.Request.Header.Get("Authorization") == "" || resp.Request.Header.Get(keyHeader) == "" {
		t.Errorf("%+v, %v", resp, err)
	}
	// A response without the fields that http.Client would fill in, and others.
	s = &script{steps: []step{func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 204}, nil }}}
	resp, body, err := roundTrip(t, client.New(s), request(t, "POST", "x"))
	if err != nil || body != "" || resp.Request == nil {
		t.Errorf("%v, %q, %v", resp, body, err)
	}
	s = &script{steps: []step{func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 503}, nil }}}
	if got := status(t, client.New(s, func(o *client.Options) { o.MaxRetries = -1 }), request(t, "POST", "x")); got != 503 {
		t.Errorf("status %d", got)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value  any // for a date, seconds from now
		date   any
		least  int  // seconds
		gaveUp bool // if true, the answer is returned at once
	}{
		"seconds":                        {value: "7", least: 7},
		"spaces":                         {value: " 7 ", least: 7},
		"the longest":                    {value: "60", least: 60},
		"too long":                       {value: "61", gaveUp: true},
		"overflow of a duration":         {value: "9223372037", gaveUp: true},
		"overflow":                       {value: strconv.Itoa(1<<62) + "00", gaveUp: true},
		"date":                           {value: 30, least: 30},
		"date too far":                   {value: 90, gaveUp: true},
		"date by the server's own clock": {value: -3570, date: -3600, least: 30},
		"date in the past":               {value: -30},
		"negative":                       {value: "-1"},
		"nonsense":                       {value: "soon"},
		"fraction":                       {value: "1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text := func(v any) string {
					if seconds, ok := v.(int); ok {
						return timeAfter(seconds)
					}
					s, _ := v.(string)
					return s
				}
				s := &script{steps: []step{answer(429, "Retry-After", text(tt.value), "Date", text(tt.date)), answer(200)}}
				c := &counts{}
				got := status(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "POST", "x"))
				if tt.gaveUp {
					if got != 429 || c.of("gave up retry-after") != 1 {
						t.Errorf("status %d, %v; want the 429 at once", got, c.n)
					}
					return
				}
				wait := s.attempts()[1].At.Sub(s.attempts()[0].At).Seconds()
				if got != 200 || wait < max(float64(tt.least), 0.5) || wait > float64(tt.least)+0.5 {
					t.Errorf("status %d after %.3f s, want about %d", got, wait, tt.least)
				}
			})
		})
	}
}
