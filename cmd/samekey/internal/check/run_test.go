package check

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A printed report has a row for each check, each broken rule with its sections, and the sums.
func TestPrint(t *testing.T) {
	t.Parallel()
	r := &Report{URL: "https://host/orders", Method: "POST", Keys: "p-n-", Contract: Default, Requests: 3, Notes: []string{"The body has no integer."}, Trouble: "interrupted"}
	found := []Finding{
		{Rule: "replay-unmarked", Seen: `"" first`, Breaks: map[string]string{Default: "headers", Stripe: stripeErrors}},
		{Rule: "replay-differs", Seen: "first 201", Breaks: map[string]string{IETF: "2.6"}},
	}
	r.Checks = []Outcome{
		outcome(Default, "replay", "", found), outcome(Default, "lifetime", "", nil), outcome(Default, "path", "1 < 2", nil), outcome(Default, "none", "", nil),
	}
	want := `POST https://host/orders, requests: 3, keys begin with p-n-

check     default  Stripe  IETF draft
replay    FAULT    FAULT   FAULT
lifetime  ok       -       -
path      ?        ?       -  (1 < 2)
none      -        -       -

replay-unmarked: A replay has the header Idempotent-Replayed: true; a first answer doesn't have it.
  seen: "" first
  breaks: default, docs/use/http.md#headers; Stripe, Advanced error handling

replay-differs: A repeated request gets the first answer's body and doesn't run again.
  seen: first 201
  breaks: IETF draft, section 2.6

Note: The body has no integer.

Not completed: interrupted

Rules broken: default 1, Stripe 1, IETF draft 1
`
	print := func() string {
		var b strings.Builder
		if err := r.Print(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if diff := cmp.Diff(want, print()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for contract, want := range map[string][]string{Default: {"replay-unmarked"}, IETF: {"replay-differs"}, ACP: nil, "": {"replay-differs", "replay-unmarked"}} {
		if got := r.Broken(contract); !slices.Equal(got, want) {
			t.Errorf("%q: broken are %q", contract, got)
		}
	}
	if err := r.Print(full{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A run makes its checks in order until a limit ends it, and counts the faults of its contract.
func TestRuns(t *testing.T) {
	t.Parallel()
	fine := func(*http.Request) *answer { return re(201, "first answer") }
	quoted := func(r *http.Request) *answer {
		if !strings.HasPrefix(r.Header.Get("Idempotency-Key"), `"`) {
			return re(400, "no")
		}
		return re(201, "first answer")
	}
	const all, limit = "replay lifetime quoted kept concurrent missing malformed", "the limit of 3 requests is reached: raise --requests"
	for name, tt := range map[string]struct {
		api          api
		requests     int // maximum number of requests
		checks       string
		sent, faults int
		trouble      string
	}{
		"begins quoted":      {quoted, 80, all + " errors", 13, 9, ""},
		"takes everything":   {fine, 80, all, 12, 8, ""},
		"refuses both forms": {func(*http.Request) *answer { return re(400, "no") }, 80, "", 2, 0, "the API answers 400 to your request, but an examination needs a success: correct --body, --header or the URL"},
		"ends at the limit":  {fine, 3, "replay lifetime quoted", 3, 3, "check kept: " + limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			plan, err := Make(Template{URL: "http://host/orders?q=1", Body: []byte(`{"a":1}`)}, func(o *Options) {
				o.Transport, o.Racers, o.Requests = tt.api, 2, tt.requests
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := plan.Run(t.Context())
			if failed := tt.checks == ""; failed != (err != nil) {
				t.Errorf("%s: got %v, want an error: %t", name, err, failed)
			}
			var made []string
			for _, o := range r.Checks {
				if o.Why == "" {
					made = append(made, o.Check)
				}
			}
			if got := strings.Join(made, " "); got != tt.checks {
				t.Errorf("%s: got the checks %s, want %s", name, got, tt.checks)
			}
			if r.Trouble != tt.trouble || r.Requests != tt.sent || r.Faults != tt.faults || len(r.Broken(Default)) != tt.faults {
				t.Errorf("%s: got %q, %d requests, %d faults, want %q, %d, %d", name, r.Trouble, r.Requests, r.Faults, tt.trouble, tt.sent, tt.faults)
			}
		})
	}
}

// A check whose request the API doesn't accept shows nothing, and says which flag to give.
func TestUnseen(t *testing.T) {
	t.Parallel()
	plan, err := Make(Template{
		URL: "http://host/orders", Body: []byte(`{"a":1}`), RefusedBody: []byte(`{}`), OtherPath: "/refunds", OtherCaller: http.Header{"Authorization": {"omar"}},
	}, func(o *Options) {
		o.Transport = api(func(r *http.Request) *answer {
			body, _ := io.ReadAll(r.Body)
			switch {
			case r.Header.Get("Authorization") == "omar":
				return re(401, "")
			case r.URL.Path == "/refunds" || string(body) == "{}":
				return re(404, "")
			}
			return re(201, "first answer")
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := plan.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"path": "/refunds answers 404: give an --other-path that accepts this request", "caller": "the API answers 401 to the other caller: give credentials that the API accepts for this request",
		"refusal": "the API refuses --refused-body with 404, but no contract frees the key after this status",
	}
	for _, o := range r.Checks {
		if w, ok := want[o.Check]; ok && o.Why != w {
			t.Errorf("%s: got %q, want %q", o.Check, o.Why, w)
		}
	}
}

// re returns an answer with these headers: names and values in turn.
func re(status int, body string, headers ...string) *answer {
	a := &answer{status: status, body: []byte(body), header: make(http.Header)}
	for i := 0; i < len(headers); i += 2 {
		a.header.Add(headers[i], headers[i+1])
	}
	return a
}

// api answers requests without a network; a nil answer breaks the connection.
type api func(*http.Request) *answer

func (f api) RoundTrip(r *http.Request) (*http.Response, error) {
	a := f(r)
	if a == nil {
		return nil, io.EOF
	}
	return &http.Response{StatusCode: a.status, Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

func under(contract string) func(*Options) {
	return func(o *Options) { o.Contract = contract }
}

func scripted(t *testing.T, via http.RoundTripper) *examination {
	t.Helper()
	p, err := Make(Template{URL: "http://host:1/orders?key=s3cret", Body: []byte(`{"a":1}`), Header: http.Header{"Authorization": {"Bearer t0ken"}}}, func(o *Options) {
		o.Prefix, o.Name, o.Transport = "p-", "n", via
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.examination()
}

// A shown text contains no secret, and no command for a terminal.
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

// A call sends the template's request, with the call's own fields in place of the template's.
func TestCalls(t *testing.T) {
	t.Parallel()
	var last *http.Request
	var sent string
	e := scripted(t, api(func(r *http.Request) *answer {
		body, _ := io.ReadAll(r.Body)
		last, sent = r, string(body)
		return re(200, "")
	}))
	e.url.RawPath = "/orders"
	e.template.Header.Set("Host", "other.example")
	if _, err := e.send(t.Context(), call{path: "/a b", body: []byte("x"), method: "PUT", keys: []string{"k1", "k2"}, header: http.Header{"Authorization": {"omar"}, "A": {"b"}}}); err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Authorization": {"omar"}, "A": {"b"}, "Content-Type": {"application/json"}, "Host": {"other.example"}, "Idempotency-Key": {"k1", "k2"}, "User-Agent": {"samekey-check"},
	}
	if diff := cmp.Diff(want, last.Header); diff != "" || last.URL.String() != "http://host:1/a%20b?key=s3cret" || last.Method != "PUT" || last.Host != "other.example" || sent != "x" || last.GetBody != nil {
		t.Errorf("%s, %s to %s, %s (-want +got):\n%s", last.URL, last.Method, last.Host, sent, diff)
	}
	e.template.Header.Set("User-Agent", "mine")
	e.template.Header.Del("Host")
	if _, err := e.send(t.Context(), call{}); err != nil || last.Header.Get("User-Agent") != "mine" || last.Host != "host:1" || sent != `{"a":1}` {
		t.Errorf("%v, %+v, %s", err, last, sent)
	}
	if _, err := e.send(t.Context(), call{bare: true, method: "O K"}); err == nil || err.Error() != `can't send the request: net/http: invalid method "O K"` {
		t.Error(err)
	}
}

// A plan counts no requests for checks that the template has no field
// for, and keeps to the limit.
func TestPlans(t *testing.T) {
	t.Parallel()
	few := Template{URL: "https://host/orders?key=s3cret", Body: []byte(`{"a":1}`)}
	all := few
	all.OtherBody, all.RefusedBody, all.OtherPath, all.OtherMethod, all.Origin = []byte("1"), []byte("0"), "/x", "PUT", "https://shop"
	all.OtherCaller, all.KeyOptional = http.Header{"A": {"b"}}, true
	for name, tt := range map[string]struct {
		template Template
		opt      func(*Options)
		want     [3]int // requests, effects, effects at most
	}{
		"few":     {few, func(*Options) {}, [3]int{25, 2, 15}},
		"all":     {all, func(o *Options) { o.Racers = 2 }, [3]int{29, 5, 18}},
		"limited": {all, func(o *Options) { o.Requests = 10 }, [3]int{10, 5, 10}},
		"ACP":     {few, under(ACP), [3]int{73, 24, 54}},
		"UCP":     {all, under(UCP), [3]int{66, 23, 47}},
	} {
		p, err := Make(tt.template, tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]int{p.Requests, p.Effects, p.Most}; got != tt.want || p.URL != "https://host/orders" {
			t.Errorf("%s: got %v for %s, want %v", name, got, p.URL, tt.want)
		}
	}
}

// A request that gets 503 is sent three times, with the pauses of Retry-After within bounds.
func TestComingAgain(t *testing.T) {
	t.Parallel()
	date := time.Date(2000, 1, 1, 0, 0, 5, 0, time.UTC).Format(http.TimeFormat) // in five seconds
	for wait, want := range map[string]time.Duration{
		" 3 ":           6 * time.Second, //nolint:gocritic // as a server may send it
		"9999999999999": 20 * time.Second, "0": 200 * time.Millisecond, "-1": 2 * time.Second, "": 2 * time.Second,
		date: 5100 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			e := scripted(t, api(func(*http.Request) *answer { return re(503, "", "Retry-After", wait) }))
			began := time.Now()
			_, err := e.send(t.Context(), call{})
			if took := time.Since(began); err == nil || err.Error() != "the API answered 503 to each of 3 tries" || took != want {
				t.Errorf("%q: got %v after %v, want %v", wait, err, took, want)
			}
			if wrong := want == 2*time.Second; wrong != (len(e.found) == 1) {
				t.Errorf("%q: found %+v", wait, e.found)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		e := scripted(t, api(func(*http.Request) *answer { return re(429, "", "Retry-After", "5") }))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Second, errors.New("enough"))
		defer cancel()
		if a, err := e.send(ctx, call{}); err == nil || err.Error() != "enough" {
			t.Errorf("got %+v, %v at the end of the time, want enough", a, err)
		}
	})
}
