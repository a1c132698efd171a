package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// outcome sends req and tells what came of it: the number of attempts, the status or
// "error", why the client gave up, and what the answer is marked with, or "unknown" for an
// error that says so.
func outcome(t *testing.T, s *script, req *http.Request, optFns ...func(*client.Options)) string {
	t.Helper()
	why := ""
	resp, _, err := roundTrip(t, client.New(s, append(optFns, func(o *client.Options) {
		o.Hooks.GaveUp = func(_ context.Context, ev client.Event) { why = ev.Reason }
	})...), req)
	s.allClosed(t)
	words := []string{fmt.Sprint(len(s.attempts())), "error", why, ""}
	if err == nil {
		words[1], words[3] = fmt.Sprint(resp.StatusCode), resp.Header.Get(client.ResultHeader)
		return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Attempts != len(s.attempts()) || e.GaveUp != why {
		t.Errorf("error %#v after %d attempts, given up for %q", err, len(s.attempts()), why)
	}
	if ok && e.Unknown {
		words[3] = "unknown"
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// sentThenRefused behaves like net/http after a broken connection, if its own
// second try finds no server.
func sentThenRefused(req *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(req.Context()).WroteHeaders()
	return nil, errRefused
}

func keys(methods ...string) func(*client.Options) {
	return func(o *client.Options) { o.Methods = methods }
}

func timeout(o *client.Options) { o.AttemptTimeout = 3 * time.Second }

// at returns the HTTP date that many seconds after the begin of a test in virtual time.
func at(seconds int) string {
	return time.Date(2000, 1, 1, 0, 0, seconds, 0, time.UTC).Format(http.TimeFormat)
}

func never(o *client.Options) { o.MaxRetries = -1 }

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const said, status, expires = "Stripe-Should-Retry", "Idempotency-Status", "Idempotency-Expires"
	lost, refused := failing(errReset), failing(errRefused)
	replayed := func(code int, more ...string) step { return answer(code, append(more, idem.ReplayedHeader, "true")...) }
	ignored := []string{status, "Ignored"}
	short := func(o *client.Options) { o.KeyLifetime = 5 * time.Second }
	for name, tt := range map[string]struct {
		method, own string // POST and no key of the caller's by default
		opt         func(*client.Options)
		steps       []step
		want        string
	}{
		"dropped twice, then answered": {steps: []step{lost, failing(io.ErrUnexpectedEOF), answer(201)}, want: "3 201"},
		"no answer":                    {steps: []step{lost}, want: "3 error retries unknown"},
		"refused":                      {steps: []step{refused}, want: "3 error retries"},
		"refused after it was sent":    {steps: []step{sentThenRefused, refused}, want: "3 error retries unknown"},
		"503, then refused":            {steps: []step{answer(503), refused}, want: "3 error retries unknown"},
		"409, then refused":            {steps: []step{answer(409), refused}, want: "3 error retries unknown"},
		"429, then refused":            {steps: []step{answer(429), refused}, want: "3 error retries"},
		"409 of no key":                {method: "PUT", steps: []step{answer(409), refused}, want: "3 error retries"},
		"refused, the caller's key":    {own: "mine", steps: []step{refused}, want: "3 error retries unknown"},
		"never retried":                {opt: never, steps: []step{answer(503)}, want: "1 503 retries outcome-unknown"},
		"400":                          {steps: []step{answer(400)}, want: "1 400"},

		"401 at once":              {steps: []step{answer(401)}, want: "1 401"},
		"429 at once":              {steps: []step{answer(429)}, want: "3 429 retries"},
		"401 after no answer":      {steps: []step{lost, answer(401)}, want: "2 401 outcome-unknown"},
		"429 after no answer":      {steps: []step{lost, answer(429)}, want: "3 429 retries outcome-unknown"},
		"429 after refused":        {steps: []step{refused, answer(429)}, want: "3 429 retries"},
		"429 after a 503":          {steps: []step{answer(503), answer(429)}, want: "3 429 retries outcome-unknown"},
		"429 after a 409":          {steps: []step{answer(409), answer(429)}, want: "3 429 retries outcome-unknown"},
		"429, the caller's key":    {own: "mine", steps: []step{answer(429)}, want: "3 429 retries outcome-unknown"},
		"409":                      {steps: []step{answer(409)}, want: "3 409 retries outcome-unknown"},
		"500, not to be retried":   {steps: []step{answer(500, said, "false")}, want: "1 500 refused outcome-unknown"},
		"402 after no answer":      {steps: []step{lost, answer(402)}, want: "2 402"},
		"307 after no answer":      {steps: []step{lost, answer(307)}, want: "2 307"},
		"202, still running":       {steps: []step{answer(202, "Retry-After", "1")}, want: "1 202 outcome-unknown"},
		"503 to a GET":             {method: "GET", steps: []step{answer(503)}, want: "3 503 retries"},
		"replayed 500":             {steps: []step{answer(500), replayed(500)}, want: "2 500"},
		"replayed, asked again":    {steps: []step{replayed(500, said, "true"), answer(200)}, want: "2 200"},
		"the server sets the mark": {steps: []step{answer(201, client.ResultHeader, client.OutcomeUnknown)}, want: "1 201"},

		"ignored":                  {steps: []step{answer(503, ignored...), answer(200)}, want: "1 503 ignored outcome-unknown"},
		"ignored, asked again":     {steps: []step{answer(503, append(ignored, said, "true")...)}, want: "1 503 ignored outcome-unknown"},
		"ignored, still running":   {steps: []step{answer(409, append(ignored, "Retry-After", "1")...)}, want: "1 409 ignored outcome-unknown"},
		"ignored, torn":            {steps: []step{torn(201, ignored...)}, want: "1 error ignored unknown"},
		"ignored, torn PATCH":      {method: "PATCH", steps: []step{torn(200, ignored...)}, want: "1 error ignored unknown"},
		"ignored, hanging":         {opt: timeout, steps: []step{hangingBody(201, ignored...)}, want: "1 error ignored unknown"},
		"ignored, DELETE":          {method: "DELETE", opt: keys("DELETE"), steps: []step{answer(503, ignored...), answer(200)}, want: "2 200"},
		"ignored, torn DELETE":     {method: "DELETE", opt: keys("DELETE"), steps: []step{torn(204, ignored...), answer(200)}, want: "2 200"},
		"another status, torn":     {steps: []step{torn(201, status, "open"), answer(200)}, want: "2 200"},
		"unstored":                 {steps: []step{answer(500, status, "Unstored")}, want: "1 500 lifetime outcome-unknown"},
		"unstored, without a key":  {method: "PUT", steps: []step{answer(503, status, "unstored"), answer(200)}, want: "2 200"},
		"DELETE finds nothing":     {method: "DELETE", steps: []step{answer(404)}, want: "1 404"},
		"nor does its retry":       {method: "DELETE", steps: []step{lost, answer(404)}, want: "2 204 deleted-before"},
		"nor after a 502":          {method: "DELETE", steps: []step{answer(502), answer(404)}, want: "2 204 deleted-before"},
		"nor after a torn answer":  {method: "DELETE", opt: keys("DELETE"), steps: []step{torn(200), answer(404)}, want: "2 204 deleted-before"},
		"nor after it and a 429":   {method: "DELETE", steps: []step{lost, answer(429), answer(404)}, want: "3 204 deleted-before"},
		"DELETE, refused":          {method: "DELETE", steps: []step{refused, answer(404)}, want: "2 404"},
		"DELETE, 429":              {method: "DELETE", steps: []step{answer(429), answer(404)}, want: "2 404"},
		"DELETE, 409":              {method: "DELETE", steps: []step{answer(409), answer(404)}, want: "2 404"},
		"DELETE, a replayed 404":   {method: "DELETE", opt: keys("DELETE"), steps: []step{lost, replayed(404)}, want: "2 404"},
		"DELETE, 410":              {method: "DELETE", steps: []step{lost, answer(410)}, want: "2 410"},
		"PUT finds nothing":        {method: "PUT", steps: []step{lost, answer(404)}, want: "2 404"},
		"POST finds nothing":       {steps: []step{lost, answer(404)}, want: "2 404"},
		"a wait behind the key":    {steps: []step{answer(503, "Retry-After", "4", expires, at(5)), answer(200)}, want: "1 503 lifetime outcome-unknown"},
		"a key that is gone":       {steps: []step{answer(503, "Retry-After", "4", expires, at(-5)), answer(200)}, want: "1 503 lifetime outcome-unknown"},
		"a key that lasts":         {steps: []step{answer(503, "Retry-After", "4", expires, at(60)), answer(200)}, want: "2 200"},
		"no date":                  {steps: []step{answer(503, expires, "tomorrow"), answer(200)}, want: "2 200"},
		"a clock that is fast":     {steps: []step{answer(503, "Retry-After", "4", expires, at(3605), "Date", at(3600)), answer(200)}, want: "1 503 lifetime outcome-unknown"},
		"a clock that is slow":     {steps: []step{answer(503, "Retry-After", "4", expires, at(-3540), "Date", at(-3600)), answer(200)}, want: "2 200"},
		"a lifetime by option":     {opt: short, steps: []step{answer(503, "Retry-After", "4"), answer(200)}, want: "1 503 lifetime outcome-unknown"},
		"the server's word counts": {opt: short, steps: []step{answer(503, "Retry-After", "4", expires, at(60)), answer(200)}, want: "2 200"},
		"no key has no lifetime":   {method: "PUT", steps: []step{answer(503, "Retry-After", "4", expires, at(5)), answer(200)}, want: "2 200"},
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
				opts := []func(*client.Options){}
				if tt.opt != nil {
					opts = append(opts, tt.opt)
				}
				if got := outcome(t, &script{steps: tt.steps}, req, opts...); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

// Which statuses are retried, by themselves and as the server says.
func TestRetriedStatuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for code := 200; code < 600; code++ {
			retried := code == 409 || code == 429 || code >= 500
			for said, want := range map[string]bool{"": retried, "?": retried, "TRUE": code >= 400, "false": false} {
				s := &script{steps: []step{answer(code, "Stripe-Should-Retry", said), answer(200)}}
				if status(t, client.New(s), request(t, "POST", "x")); (len(s.attempts()) == 2) != want {
					t.Errorf("%d, should-retry %q: %d attempts, want a retry: %t", code, said, len(s.attempts()), want)
				}
			}
		}
	})
}

func TestRetriedErrors(t *testing.T) {
	t.Parallel()
	const (
		retried, harmless = "3 error retries unknown", "3 error retries"
		final, never      = "1 error unknown", "1 error"
	)
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	host := x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.test"}
	for name, tt := range map[string]struct {
		err  error
		url  string
		want string
	}{
		"reset":                 {err: op("read", os.NewSyscallError("read", syscall.ECONNRESET)), want: retried},
		"broken pipe":           {err: op("write", syscall.EPIPE), want: retried},
		"EOF":                   {err: io.EOF, want: retried},
		"untyped":               {err: errors.New("http2: client connection lost"), want: retried},
		"timeout of the base":   {err: os.ErrDeadlineExceeded, want: retried},
		"inner deadline":        {err: context.DeadlineExceeded, want: retried},
		"no such host":          {err: op("dial", &net.DNSError{Err: "no such host", IsNotFound: true}), want: harmless},
		"bare DNS":              {err: &net.DNSError{Err: "no such host", IsNotFound: true}, want: harmless},
		"proxy unreachable":     {err: op("proxyconnect", syscall.EHOSTUNREACH), want: harmless},
		"inner cancel":          {err: fmt.Errorf("token: %w", context.Canceled), want: final},
		"not TLS":               {err: tls.RecordHeaderError{Msg: "not TLS"}, want: final},
		"alert from the server": {err: op("remote error", errors.New("tls: handshake failure")), want: final},
		"alert to the server":   {err: op("local error", errors.New("tls: bad certificate")), want: final},
		"alert of QUIC":         {err: tls.AlertError(40), want: final},
		"no transport's":        {want: final}, // neither a response nor an error
		"unknown authority":     {err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, want: never},
		"bare authority":        {err: x509.UnknownAuthorityError{}, want: never},
		"other host's":          {err: host, want: never},
		"expired certificate":   {err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, want: never},
		"no ECH":                {err: &tls.ECHRejectionError{}, want: never},
		"no roots":              {err: x509.SystemRootsError{}, want: never},
		"unsupported protocol":  {err: errors.New("unsupported protocol scheme"), url: "ftp://api.test/", want: final},
		"EOF, other protocol":   {err: io.EOF, url: "http+unix://sock/", want: retried},
		"torn, other protocol":  {err: io.ErrUnexpectedEOF, url: "http+unix://sock/", want: retried},
		"reset, other protocol": {err: syscall.ECONNRESET, url: "http+unix://sock/", want: retried},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				req := request(t, "POST", "x")
				if tt.url != "" {
					req.URL, _ = url.Parse(tt.url)
				}
				if got := outcome(t, &script{steps: []step{failing(tt.err)}}, req); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

// What settles an operation is entered in the journal. An answer about the key tells that
// the server knows the key, and not what became of the first request that had it.
func TestAnswersThatSettle(t *testing.T) {
	t.Parallel()
	const problem = `{"type":"about:blank","title":"no","code":"%s"}`
	type row struct {
		status int
		body   string
	}
	for settled, rows := range map[bool][]row{
		true: {
			{200, ""},
			{201, ""},
			{202, ""},
			{303, ""},
			{400, ""},
			{402, ""},
			{404, ""},
			{410, ""},
			{422, ""},
			{410, fmt.Sprintf(problem, "idempotency_answer_not_kept")},
			{400, fmt.Sprintf(problem, "idempotency_key_invalid")},
			{400, `{"error":{"type":"invalid_request_error","code":"idempotency_key_missing"}}`},
			{422, fmt.Sprintf(problem, "amount_too_small")},
			{422, `{"code":"invalid","detail":"idempotency_key_mismatch","data":{"code":"idempotency_error"}}`}, // what a user wrote
			{422, `idempotency_key_mismatch`},
			{422, `["idempotency_key_mismatch"]`},
			{201, fmt.Sprintf(problem, "idempotency_key_mismatch")},
		},
		false: {
			{307, ""},
			{308, ""},
			{401, ""},
			{403, ""},
			{407, ""},
			{408, ""},
			{409, ""},
			{425, ""},
			{429, ""},
			{500, ""},
			{503, ""},
			{422, fmt.Sprintf(problem, "idempotency_key_mismatch")},
			{400, `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests …"}}`}, // Stripe's
			{400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`}, // Square's
			{422, `{"type":"https://developer.example.com/idempotency","title":"no"}`},                 // by its type only
			{422, `{"error":"Conflict","code":"idempotent_creation_conflict"}`},                        // another shape
			{422, `{"type":1,"code":"idempotency_key_mismatch"}`},                                      // a field of another type
		},
	} {
		for _, tt := range rows {
			t.Run(fmt.Sprint(tt.status, tt.body), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					// The base transport may have sent the request before, unknown to this one.
					for _, before := range [][]step{{failing(errReset)}, nil} {
						j := open(t, journalFile(t))
						s := &script{steps: append(before, answerBody(tt.status, tt.body))}
						resp, body, err := roundTrip(t, client.New(s, with(j), func(o *client.Options) { o.MaxRetries = len(before) }), named(t, "POST", "order-42", "x"))
						if err != nil || resp.StatusCode != tt.status || body != tt.body {
							t.Fatalf("%v, %v: the answer was changed", resp, err)
						}
						open := !settled && tt.status >= 400 && (before != nil || tt.body != "" || tt.status == 409 || tt.status >= 500)
						if got := resp.Header.Get(client.ResultHeader) == client.OutcomeUnknown; got != open {
							t.Errorf("after %d attempts, marked as unknown: %t, want %t", len(before), got, open)
						}
						if e := j.Entries(); len(e) != 1 || e[0].Answered.IsZero() == settled || (e[0].Status == tt.status) != settled {
							t.Errorf("the journal's entries: %+v, want it answered: %t", e, settled)
						}
					}
				})
			})
		}
	}
}

func TestWhatCantBeSent(t *testing.T) {
	t.Parallel()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = []string{value} }
	}
	for name, spoil := range map[string]func(*http.Request){
		"no URL":           func(r *http.Request) { r.URL = nil },
		"no host":          func(r *http.Request) { r.URL.Host = "" },
		"method":           func(r *http.Request) { r.Method = "PO ST" },
		"header name":      header("a b", "c"),
		"no header name":   header("", "c"),
		"a colon in it":    header("a:b", "c"),
		"a DEL in it":      header("a\x7f", "c"),
		"a letter in it":   header("\u00e4", "c"),
		"header injection": header("A", "b\r\nc: d"),
		"a DEL in a value": header("A", "b\x7f"),
	} {
		for _, own := range []string{"", "mine"} {
			s := &script{steps: []step{answer(200)}}
			req := request(t, "POST", "")
			body := &trackedBody{ReadCloser: req.Body}
			req.Body = body
			if own != "" {
				req.Header.Set(keyHeader, own)
			}
			spoil(req)
			e := failure(t, client.New(s), req)
			if !errors.Is(e, client.ErrRequest) || len(s.attempts()) != 0 || e.Key != own || e.Unknown != (own != "") || !body.isClosed() {
				t.Errorf("%s, key %q: %+v after %d attempts, body closed: %t", name, own, e, len(s.attempts()), body.isClosed())
			}
		}
	}
}

// Nothing is refused that HTTP allows (RFC 9110, 5.5 and 5.6.2), and an answer is an answer.
func TestWhatCanBeSent(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*http.Request){
		"every character of names and values": func(r *http.Request) { r.Header["!#$%&'*+-.^_`|~09azAZ"] = []string{" a\tb ~\u00e4", ""} },
		"no method, which is GET":             func(r *http.Request) { r.Method = "" },
		"another protocol, without a host":    func(r *http.Request) { r.URL = &url.URL{Scheme: "unix", Path: "/run/api.sock"} },
		"a redirect's without its request":    func(r *http.Request) { r.Response = &http.Response{} },
	} {
		synctest.Test(t, func(t *testing.T) {
			req := request(t, "POST", "x")
			set(req)
			if got := outcome(t, &script{steps: []step{answer(503), answer(200)}}, req); got != "2 200" {
				t.Errorf("%s: %s, want 2 200", name, got)
			}
		})
	}
}

func TestOtherMethodsPassUntouched(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{failing(errReset)}}
	c := &counts{}
	tr := client.New(s, keys("POST"), func(o *client.Options) { o.Hooks = c.hooks() })
	for _, method := range []string{"PATCH", "CHARGE", "CONNECT"} {
		if _, err := tr.RoundTrip(request(t, method, "x")); err != errReset { //nolint:errorlint // the very same error
			t.Errorf("%s: %v, want the base transport's own error", method, err)
		}
	}
	if len(s.attempts()) != 3 || c.of("attempt") != 0 {
		t.Errorf("%d attempts, %d events, want 3 and none", len(s.attempts()), c.of("attempt"))
	}
}

// The last answer is returned as it came, with a request that has the key; the last error
// with the key in it, but not in its text.
func TestGivesBackWhatItLastGot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{answerBody(500, "one"), answerBody(503, "two"), answerBody(502, "three")}}
		resp, body, err := roundTrip(t, client.New(s), request(t, "POST", "x"))
		if err != nil || resp.StatusCode != 502 || body != "three" {
			t.Errorf("%v, %q, %v, want the last answer", resp, body, err)
		}
		if got := resp.Request; got.Header.Get(keyHeader) != s.attempts()[0].Key || got.Context().Err() != nil {
			t.Errorf("the answer's request has key %q, %v", got.Header.Get(keyHeader), got.Context().Err())
		}
		s = &script{steps: []step{failing(errReset)}}
		e := failure(t, client.New(s), request(t, "POST", "x"))
		want := client.Error{Key: s.attempts()[0].Key, Attempts: 3, Unknown: true, GaveUp: "retries", Err: errReset}
		if *e != want || e.Error() != "client: gave up after attempt 3 (retries): connection reset by peer" {
			t.Errorf("%+v, %v", e, e)
		}
		// The base transport may send another request, and leave out what http.Client would fill in.
		resp, _, err = roundTrip(t, client.New(&script{steps: []step{func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer token")
			return &http.Response{StatusCode: 204, Request: r}, nil
		}}}), request(t, "POST", "x"))
		if err != nil || resp.Request.Header.Get("Authorization") == "" || resp.Header == nil || resp.Body == nil {
			t.Errorf("%+v, %v", resp, err)
		}
		resp, _, err = roundTrip(t, client.New(&script{steps: []step{func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204}, nil
		}}}), request(t, "POST", "x"))
		if err != nil || resp.Request.Header.Get(keyHeader) == "" {
			t.Errorf("%+v, %v, want a request with its key", resp, err)
		}
	})
}

// A 204 in place of a 404 has nothing of the 404's body.
func TestDeletedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counts{}
		s := &script{steps: []step{failing(errReset), func(req *http.Request) (*http.Response, error) {
			resp, err := answerBody(404, "no such order", "Content-Type", "text/plain", "Etag", "1", "Last-Modified", "today", "Trailer", "Sum",
				"X-Request-Id", "r1")(req)
			resp.Trailer, resp.Uncompressed = http.Header{"Sum": nil}, true
			return resp, err
		}}}
		resp, body, err := roundTrip(t, client.New(s, func(o *client.Options) { o.Hooks = c.hooks() }), request(t, "DELETE", ""))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" || resp.Trailer != nil || resp.Uncompressed || resp.ContentLength != 0 || resp.Status != "204 No Content" || c.of("deleted") != 1 ||
			fmt.Sprint(resp.Header) != "map[Idempotency-Client:[deleted-before] X-Request-Id:[r1]]" {
			t.Errorf("%q %q, length %d, %v, %v", resp.Status, body, resp.ContentLength, resp.Header, c.n)
		}
		s.allClosed(t)
	})
}

// Each event tells what happened, and nothing is told that didn't happen.
func TestEvents(t *testing.T) {
	t.Parallel()
	slow := func(req *http.Request) (*http.Response, error) {
		time.Sleep(time.Second) //nolint:forbidigo // virtual
		return answer(503)(req)
	}
	status503 := errors.New("status 503")
	const half = 500 * time.Millisecond
	for name, tt := range map[string]struct {
		method, operation string
		steps             []step
		want              []client.Event
	}{
		"a named operation": {"POST", "order-42", []step{slow, failing(errReset), answer(201)}, []client.Event{
			{Keyed: true},
			{Keyed: true, Attempt: 1, Status: 503, Took: time.Second},
			{Keyed: true, Attempt: 1, Wait: half, Reason: "status", Err: status503},
			{Keyed: true, Attempt: 2, Err: errReset},
			{Keyed: true, Attempt: 2, Wait: half, Reason: "network", Err: errReset},
			{Keyed: true, Attempt: 3, Status: 201},
		}},
		"a request without a key": {"GET", "", []step{answer(404, "Stripe-Should-Retry", "true"), answer(503), answer(503)}, []client.Event{
			{Attempt: 1, Status: 404},
			{Attempt: 1, Wait: half, Reason: "asked", Err: errors.New("status 404")},
			{Attempt: 2, Status: 503},
			{Attempt: 2, Wait: half, Reason: "status", Err: status503},
			{Attempt: 3, Status: 503},
			{Attempt: 3, Status: 503, Reason: "retries"},
		}},
		"a replay": {"POST", "", []step{answer(201, idem.ReplayedHeader, "true")}, []client.Event{
			{Keyed: true}, {Keyed: true, Attempt: 1, Status: 201}, {Keyed: true, Attempt: 1, Status: 201},
		}},
		"an error that stays": {"GET", "", []step{failing(x509.UnknownAuthorityError{})}, []client.Event{{Attempt: 1, Err: x509.UnknownAuthorityError{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &counts{}
				req, opt := request(t, tt.method, "x"), func(*client.Options) {}
				if tt.operation != "" {
					req, opt = named(t, tt.method, tt.operation, "x"), with(open(t, journalFile(t)))
				}
				_, _, _ = roundTrip(t, client.New(&script{steps: tt.steps}, opt, func(o *client.Options) { o.Hooks, o.MaxDelay = c.hooks(), half }), req)
				for i := range tt.want {
					e := &tt.want[i]
					e.Method, e.Host, e.Operation = tt.method, "api.test", tt.operation
				}
				if diff := cmp.Diff(tt.want, c.events, cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestMistakesArePanics(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	_ = client.New(nil, func(o *client.Options) { // the limits themselves
		o.KeyLifetime, o.InitialDelay, o.MaxDelay = 2*time.Second+1, year, year
	})
	for name, set := range map[string]func(*client.Options){
		"header name":     func(o *client.Options) { o.KeyHeader = "Idempotency Key" },
		"safe method":     keys("GET"),
		"no method":       keys("PO ST"),
		"lower case":      keys("post"),
		"empty method":    keys(""),
		"initial delay":   func(o *client.Options) { o.InitialDelay = -1 },
		"max below it":    func(o *client.Options) { o.MaxDelay = time.Millisecond },
		"attempt timeout": func(o *client.Options) { o.AttemptTimeout = -1 },
		"lifetime":        func(o *client.Options) { o.KeyLifetime = 2 * time.Second },
		"years of delay":  func(o *client.Options) { o.MaxDelay = year + 1 },
		"nil journal":     func(o *client.Options) { o.Journal = (*client.FileJournal)(nil) },
	} {
		func() {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "client: New: ") {
					t.Errorf("%s: panicked with %q, want a message", name, p)
				}
			}()
			client.New(nil, set)
		}()
	}
}

// Up to how many bytes bodies are kept, and answers read, by default.
func TestDefaultSizes(t *testing.T) {
	t.Parallel()
	for size, sent := range map[int]int{4 << 20: 1, 4<<20 + 1: 0} {
		s := &script{steps: []step{answer(200)}}
		req := request(t, "POST", "")
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(filled(size))), nil, -1
		if _, _, _ = roundTrip(t, client.New(s), req); len(s.attempts()) != sent {
			t.Errorf("a body of %d bytes is sent %d times, want %d", size, len(s.attempts()), sent)
		}
	}
	for size, whole := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		s := &script{steps: []step{answerBody(200, string(filled(size)))}}
		resp, err := client.New(s).RoundTrip(request(t, "POST", "x"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.bodies[0].isClosed(); got != whole {
			t.Errorf("an answer of %d bytes is read to its end: %t, want %t", size, got, whole)
		}
		_ = resp.Body.Close()
	}
}

// Without a transport, and with a variable that holds none, http.DefaultTransport sends.
func TestNilTransportIsTheDefault(t *testing.T) {
	t.Parallel()
	for _, base := range []http.RoundTripper{nil, (*http.Transport)(nil)} {
		if e := failure(t, client.New(base, never), requestTo(t, "http://127.0.0.1:0/")); !errors.As(e, new(*net.OpError)) {
			t.Errorf("%v, want an error of the network", e)
		}
	}
	closed := 0
	(&http.Client{Transport: client.New(closer{&closed})}).CloseIdleConnections()
	client.New(&script{}).CloseIdleConnections() // the script has no such method
	if closed != 1 {
		t.Errorf("idle connections were closed %d times, want once", closed)
	}
}

type closer struct{ n *int }

func (c closer) RoundTrip(*http.Request) (*http.Response, error) { return nil, errReset }
func (c closer) CloseIdleConnections()                           { *c.n++ }
