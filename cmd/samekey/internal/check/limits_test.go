package check

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
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Defaults fill what is empty, and limits let through what they say.
func TestOptions(t *testing.T) {
	t.Parallel()
	got, err := Options{}.prepared()
	want := Options{Contract: "default", Prefix: "samekey-check-", Racers: 5, Timeout: 30 * time.Second, Total: 5 * time.Minute, Requests: 80, MaxBody: 4 << 20}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Options{}, "Name", "Transport")); diff != "" || err != nil || len(got.Name) != 8 || got.Name != strings.ToLower(got.Name) {
		t.Errorf("%v, name %q (-want +got):\n%s", err, got.Name, diff)
	}
	if tr, ok := got.Transport.(*http.Transport); !ok || !tr.DisableKeepAlives || !tr.DisableCompression || tr == http.DefaultTransport {
		t.Errorf("the transport is %+v", got.Transport)
	}
	own := Options{Contract: UCP, Prefix: "!~", Name: strings.Repeat("n", 98), Racers: 20, Timeout: 1, Total: 1, Requests: 1, MaxBody: 1, Transport: &script{}}
	if got, err := own.prepared(); err != nil || got != own {
		t.Errorf("%+v, %v", got, err)
	}
	own.Racers = 2
	if _, err := own.prepared(); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*Options){
		"alone": func(o *Options) { o.Racers = 1 }, "a crowd": func(o *Options) { o.Racers = 21 }, "timeout": func(o *Options) { o.Timeout = -1 },
		"total": func(o *Options) { o.Total = -1 }, "requests": func(o *Options) { o.Requests = -1 }, "body": func(o *Options) { o.MaxBody = -1 },
		"long": func(o *Options) { o.Name += "n" }, "space": func(o *Options) { o.Prefix = " " }, "DEL": func(o *Options) { o.Prefix = "\x7f" },
		"comma": func(o *Options) { o.Prefix = "," }, "backslash": func(o *Options) { o.Prefix = `\` },
	} {
		bad := own
		if edit(&bad); bad == own {
			t.Fatal(name)
		}
		if _, err := bad.prepared(); err == nil {
			t.Errorf("%s: %+v is taken", name, bad)
		}
	}
}

// A template is completed: its method, its type, and nothing of its own is changed.
func TestTemplate(t *testing.T) {
	t.Parallel()
	given := Template{URL: "https://host/orders?key=s3cret#part", Method: "put", OtherMethod: "Post", Body: []byte("{}"), OtherBody: []byte("[]"), OtherPath: "/x", Header: http.Header{"A": {"b"}}}
	got, u, err := given.prepared(Default)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != "PUT" || got.OtherMethod != "POST" || got.Header.Get("Content-Type") != "application/json" || len(given.Header) != 1 || u.String() != "https://host/orders?key=s3cret" || place(u) != "https://host/orders" {
		t.Errorf("%+v, %v", got, u)
	}
	for name, tt := range map[string]struct {
		template Template
		kind     string
	}{
		"no body":  {Template{URL: "http://host", NoBody: true}, ""},
		"own type": {Template{URL: "http://host", Body: []byte("a=b"), Header: http.Header{"Content-Type": {"text/plain"}}}, "text/plain"},
	} {
		if got, _, err := tt.template.prepared(Default); err != nil || got.Header == nil || got.Header.Get("Content-Type") != tt.kind || got.Method != "POST" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, bad := range map[string]Template{
		"no host": {URL: "http:/orders", NoBody: true}, "no scheme": {URL: "//host", NoBody: true}, "another": {URL: "ftp://host", NoBody: true},
		"other method": {URL: "http://host", NoBody: true, OtherMethod: "PO ST"}, "the same body": {URL: "http://host", Body: []byte("1"), OtherBody: []byte("1")},
	} {
		if _, _, err := bad.prepared(Default); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	secrets := (&Template{
		Header:      http.Header{"Authorization": {"Bearer jane"}, "Content-Type": {"a b"}, "Accept": {"c d"}},
		OtherCaller: http.Header{"X-Key": {"k1", "k2"}},
	}).secrets(u)
	slices.Sort(secrets)
	if diff := cmp.Diff([]string{"Bearer jane", "jane", "k1", "k2", "s3cret"}, secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// A plan counts what an API has to do: what can't be examined costs nothing.
func TestPlans(t *testing.T) {
	t.Parallel()
	few := Template{URL: "https://host/orders?key=s3cret", Body: []byte(`{"a":1}`)}
	all := few
	all.OtherBody, all.RefusedBody, all.OtherPath, all.OtherMethod, all.Origin = []byte("1"), []byte("0"), "/x", "PUT", "https://shop"
	all.OtherCaller, all.KeyOptional = http.Header{"A": {"b"}}, true
	for name, tt := range map[string]struct {
		template                Template
		opt                     func(*Options)
		requests, effects, most int
		lacks                   string
	}{
		"few":       {few, func(*Options) {}, 25, 2, 15, "mismatch -other-body, path -other-path, method -other-method, caller -other-caller-env, refusal -refused-body, cors -origin"},
		"all":       {all, func(o *Options) { o.Racers = 2 }, 29, 5, 18, ""},
		"a few":     {all, func(o *Options) { o.Requests = 10 }, 10, 5, 10, ""},
		"ACP":       {few, under(ACP), 73, 24, 54, "caller -other-caller-env"},
		"UCP":       {all, under(UCP), 66, 23, 47, ""},
		"a limit":   {few, func(o *Options) { o.Requests = 15 }, 15, 2, 15, "mismatch -other-body, path -other-path, method -other-method, caller -other-caller-env, refusal -refused-body, cors -origin"},
		"unlimited": {all, func(o *Options) { o.Racers, o.Requests = 20, 1000 }, 47, 5, 36, ""},
	} {
		p, err := Make(tt.template, tt.opt, func(o *Options) { o.Prefix, o.Name = "p-", "n" })
		if err != nil {
			t.Fatal(err)
		}
		var lacks []string
		for _, c := range p.checks {
			if c.lacks != "" {
				lacks = append(lacks, c.name+" "+strings.TrimPrefix(c.lacks, "give "))
			}
		}
		got := []any{p.URL, p.Method, p.Keys, p.Requests, p.Effects, p.Most, strings.Join(lacks, ", ")}
		if diff := cmp.Diff([]any{"https://host/orders", "POST", "p-n-", tt.requests, tt.effects, tt.most, tt.lacks}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for contract, n := range map[string]int{Default: 14, ACP: 15, UCP: 13} {
		all := Checks(contract)
		if len(all) != n || all[0] != (Check{"replay", all[0].Title, ""}) || !slices.ContainsFunc(all, func(c Check) bool { return c.Name == "caller" && c.Needs == "give -other-caller-env" }) {
			t.Errorf("%s: %d checks, %+v", contract, len(all), all)
		}
	}
}

func under(contract string) func(*Options) {
	return func(o *Options) { o.Contract = contract }
}

func scripted(t *testing.T, api http.RoundTripper, optFns ...func(*Options)) *examination {
	t.Helper()
	p, err := Make(Template{URL: "http://host:1/orders?key=s3cret", Body: []byte(`{"a":1}`), Header: http.Header{"Authorization": {"Bearer t0ken"}}}, append(optFns, func(o *Options) {
		o.Prefix, o.Name, o.Transport = "p-", "n", api
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return p.examination()
}

// Why there is no answer is told in words that people act on, without the URL's query.
func TestExplained(t *testing.T) {
	t.Parallel()
	e := scripted(t, nil)
	slow, cancel := context.WithCancelCause(t.Context())
	cancel(errSlow)
	late, cancel := context.WithCancelCause(t.Context())
	cancel(errTotal)
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		says string
	}{
		{slow, io.EOF, "no answer within 30s; the API may have carried the request out all the same"},
		{late, io.EOF, "the examination has taken 5m0s, its limit"},
		{stopped, io.EOF, "interrupted; the API may have carried the last request out all the same"},
		{nil, &net.DNSError{IsNotFound: true}, "no host is called host"},
		{nil, &net.DNSError{Err: "t0ken"}, "the name host can't be looked up: [hidden]"},
		{nil, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "the certificate of host:1 is not trusted: x509: certificate signed by unknown authority"},
		{nil, tls.RecordHeaderError{}, "host:1 doesn't speak TLS: is its URL http://?"},
		{nil, http.ErrSchemeMismatch, "host:1 doesn't speak TLS: is its URL http://?"},
		{nil, tls.AlertError(40), "host:1 refuses TLS: tls: handshake failure"},
		{nil, syscall.ECONNREFUSED, "nothing listens at host:1"},
		{nil, io.EOF, "host:1 closed the connection before its answer was complete"},
		{nil, io.ErrUnexpectedEOF, "host:1 closed the connection before its answer was complete"},
		{nil, syscall.ECONNRESET, "host:1 closed the connection before its answer was complete"},
		{nil, errors.New("odd t0ken"), "no HTTP answer of host:1: odd [hidden]"},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		for _, err := range []error{tt.err, &url.Error{Op: "Post", URL: "http://host:1/?key=s3cret", Err: tt.err}} {
			if got := e.explain(ctx, err); got == nil || got.Error() != tt.says {
				t.Errorf("%v: %v, want %s", err, got, tt.says)
			}
		}
	}
}

// An examination begins with an answer that the request was carried out.
func TestUnusable(t *testing.T) {
	t.Parallel()
	const redirects = "the API redirects %s (%d). No redirect is followed, since the request would be carried out there: give the URL itself"
	for _, tt := range []struct {
		a    *answer
		says string
	}{
		{re(200, ""), ""},
		{re(299, ""), ""},
		{re(199, ""), "the API answers 199 to the request that should succeed"},
		{re(300, ""), fmt.Sprintf(redirects, "elsewhere", 300)},
		{re(399, "", "Location", "/t0ken?a=b"), fmt.Sprintf(redirects, "to http://host:1/[hidden]", 399)},
		{re(302, "", "Location", "%zz"), fmt.Sprintf(redirects, "elsewhere", 302)},
		{re(400, "", "Location", "/"), "the API answers 400 to the request that should succeed"},
		{re(401, ""), "the API answers 401: does the request lack credentials?"},
		{re(403, ""), "the API answers 403: does the request lack credentials?"},
		{re(404, "", "Content-Type", "Text/HTML ; charset=utf-8"), "the answer (404) is HTML: is this the URL of an API?"},
	} {
		got := ""
		if err := scripted(t, nil).unusable(tt.a); err != nil {
			got = err.Error()
		}
		if got != tt.says {
			t.Errorf("%d: %q, want %q", tt.a.status, got, tt.says)
		}
	}
}

// Nothing that was sent is shown, nor what commands a terminal.
func TestShownTexts(t *testing.T) {
	t.Parallel()
	e := scripted(t, nil)
	e.secrets = []string{"s3/ret", "abc", "four"}
	for text, want := range map[string]string{
		"s3/ret s3%2Fret": "[hidden] [hidden]", "abc four": "abc [hidden]", "a\x1b[2J\xff": "a?[2J?",
		strings.Repeat("é", 160): strings.Repeat("é", 160), strings.Repeat("é", 161): strings.Repeat("é", 160) + "…",
	} {
		if got := e.shown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// An API that asks to come again is asked three times, after the time that it says, within bounds.
func TestComingAgain(t *testing.T) {
	t.Parallel()
	date := func(d time.Duration) string {
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	for _, tt := range []struct {
		wait  string
		takes time.Duration
		told  []string
	}{
		{"2", 4 * time.Second, []string{"busy"}},
		{" 3 ", 6 * time.Second, []string{"busy"}},
		{"10", 20 * time.Second, []string{"busy"}},
		{"11", 20 * time.Second, []string{"busy"}},
		{"9999999999999", 20 * time.Second, []string{"busy"}},
		{"0", 200 * time.Millisecond, []string{"busy"}},
		{"-1", 2 * time.Second, []string{`retry-after default: a 503 has Retry-After "-1"`, "busy"}},
		{"", 2 * time.Second, []string{`retry-after default: a 503 has Retry-After ""`, "busy"}},
		{date(5 * time.Second), 5100 * time.Millisecond, []string{"busy"}},
		{date(-time.Minute), 200 * time.Millisecond, []string{"retry-after default: a 503 has Retry-After \"" + date(-time.Minute) + `"`, "busy"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &script{answers: slices.Repeat([]*answer{re(503, "", "Retry-After", tt.wait)}, 3)}
			e := scripted(t, api)
			began := time.Now()
			_, err := e.send(t.Context(), call{})
			if took := time.Since(began); err == nil || err.Error() != "the API answers 503, 3 times" || took != tt.takes {
				t.Errorf("%q: %v after %v, want %v", tt.wait, err, took, tt.takes)
			}
			if diff := cmp.Diff(tt.told, e.told(nil)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.wait, diff)
			}
		})
	}
	e, a := scripted(t, nil), re(503, "", "Retry-After", date(-time.Minute))
	a.at = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // clocks differ by a minute
	if e.judgeRetryAfter(a); len(e.found) > 0 {
		t.Errorf("%+v", e.found)
	}
	synctest.Test(t, func(t *testing.T) {
		e := scripted(t, &script{answers: []*answer{re(429, "", "Retry-After", "5"), re(503, "", "Retry-After", "0"), re(500, "x")}})
		if a, err := e.send(t.Context(), call{}); err != nil || a.status != 500 {
			t.Errorf("%+v, %v", a, err)
		}
		e = scripted(t, &script{answers: []*answer{re(429, "", "Retry-After", "5")}})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Second, errors.New("enough"))
		defer cancel()
		if a, err := e.send(ctx, call{}); err == nil || err.Error() != "enough" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// A call is the template's request, but for what is its own.
func TestCalls(t *testing.T) {
	t.Parallel()
	api := &sees{}
	e := scripted(t, api)
	e.url.RawPath = "/orders"
	e.template.Header.Set("Host", "other.example")
	if _, err := e.send(t.Context(), call{path: "/a b", body: []byte("x"), method: "PUT", keys: []string{"k1", "k2"}, header: http.Header{"Authorization": {"omar"}, "A": {"b"}}}); err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Authorization": {"omar"}, "A": {"b"}, "Content-Type": {"application/json"}, "Host": {"other.example"}, "Idempotency-Key": {"k1", "k2"}, "User-Agent": {"samekey-check"},
	}
	if diff := cmp.Diff(want, api.last.Header); diff != "" || api.last.URL.String() != "http://host:1/a%20b?key=s3cret" || api.last.Method != "PUT" || api.last.Host != "other.example" || api.body != "x" || api.last.GetBody != nil {
		t.Errorf("%s, %s to %s, %s (-want +got):\n%s", api.last.URL, api.last.Method, api.last.Host, api.body, diff)
	}
	e.template.Header.Set("User-Agent", "mine")
	e.template.Header.Del("Host")
	if _, err := e.send(t.Context(), call{}); err != nil || api.last.Header.Get("User-Agent") != "mine" || api.last.Host != "host:1" || api.body != `{"a":1}` {
		t.Errorf("%v, %+v, %s", err, api.last, api.body)
	}
	if _, err := e.send(t.Context(), call{bare: true, method: "O K"}); err == nil || err.Error() != `the request can't be sent: net/http: invalid method "O K"` {
		t.Error(err)
	}
}

// sees keeps the last request.
type sees struct {
	last *http.Request
	body string
}

func (s *sees) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.last, s.body = r, string(body)
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, err
}

// An answer is as large as it may be, and no longer awaited than it may take.
func TestLimitsOfAnAnswer(t *testing.T) {
	t.Parallel()
	five := func(o *Options) { o.MaxBody, o.Requests = 5, 2 }
	e := scripted(t, &script{answers: []*answer{re(200, "12345"), re(201, "123456")}}, five)
	began := time.Now()
	if a, err := e.once(t.Context(), call{}); err != nil || string(a.body) != "12345" || a.at.Before(began) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := e.once(t.Context(), call{}); err == nil || err.Error() != "the answer (status 201) has a body of more than 5 bytes, the limit" {
		t.Error(err)
	}
	for range 2 {
		if _, err := e.once(t.Context(), call{}); err == nil || err.Error() != "the limit of 2 requests is reached" || e.sent.Load() != 2 {
			t.Error(err, e.sent.Load())
		}
	}
	closed := 0
	e = scripted(t, torn{&closed})
	if _, err := e.once(t.Context(), call{}); err == nil || err.Error() != "the answer (status 200) breaks off: host:1 closed the connection before its answer was complete" || closed != 1 {
		t.Error(err, closed)
	}
	a, b := re(200, "x"), re(200, "x", "Idempotent-Replayed", "true")
	empty := re(200, "")
	for name, got := range map[string]bool{
		"199 is ok": re(199, "").ok(), "300 is ok": re(300, "").ok(), "399 refuses": re(399, "").refused(), "500 refuses": re(500, "").refused(), "500 is busy": re(500, "").busy(),
		"empty replays": empty.replays(empty), "another is": a.is(re(200, "y")), "another status is": a.is(re(201, "x")), "failed ran": re(500, "y").ran(a), "the same ran": a.ran(b),
		"failed replays": re(500, "x", "Idempotent-Replayed", "true").replays(a), "unmarked replays": re(200, "y").replays(a),
	} {
		if got {
			t.Error(name)
		}
	}
	for name, got := range map[string]bool{
		"200": re(200, "").ok(), "299": re(299, "").ok(), "400": re(400, "").refused(), "499": re(499, "").refused(), "429": re(429, "").busy(), "503": re(503, "").busy(),
		"is": a.is(b), "ran": re(201, "y").ran(a), "marked replays": re(200, "y", "Idempotent-Replayed", "true").replays(a), "the same replays": a.replays(b), "one byte": re(200, "x").replays(a),
	} {
		if !got {
			t.Error(name)
		}
	}
}

// torn breaks off each answer.
type torn struct{ closed *int }

func (b torn) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: b, Request: r}, nil
}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (b torn) Close() error {
	*b.closed++
	return nil
}
