package check

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// A report for people has a row for each check, each broken rule with its places, and the sums.
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

replay-unmarked: A replay is marked by Idempotent-Replayed: true, a first answer isn't.
  seen: "" first
  breaks: default, docs/use/http.md#headers; Stripe, Advanced error handling

replay-differs: The same request again gets the first answer's body: it doesn't run again.
  seen: first 201
  breaks: IETF draft, section 2.6

Note: The body has no integer.

Not examined to the end: interrupted

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
	if diff := cmp.Diff(map[string]string{ACP: OK}, outcome(ACP, "replay", "", nil).Under); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.Print(full{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	r = &Report{URL: "https://host", Method: "PUT", Keys: "p-", Contract: UCP}
	if diff := cmp.Diff("PUT https://host, requests: 0, keys begin with p-\n", print()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Contract = ACP
	r.Checks = []Outcome{outcome(ACP, "cancel", "", []Finding{{Rule: "cancel-reran", Breaks: map[string]string{ACP: "6.3"}}})}
	want = `PUT https://host, requests: 0, keys begin with p-

check   ACP
cancel  FAULT

cancel-reran: The same cancellation again gets the first answer.
  seen: 
  breaks: ACP, agentic checkout, section 6.3

Rules broken: ACP 1
`
	if diff := cmp.Diff(want, print()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var errFull = errors.New("the disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// What breaks a rule is told once, under the contracts that have it, or those of them that are named.
func TestBreaks(t *testing.T) {
	t.Parallel()
	e := scripted(t, nil)
	e.breaks("error-body", "first\x1b", Stripe)
	e.breaks("error-body", "second", IETF, ACP)
	e.breaks("key-unechoed", "never by Stripe", Stripe)
	e.breaks("no-such-rule", "x")
	e.breaks("replay-status", "all")
	want := []Finding{
		{"error-body", "first?", map[string]string{Stripe: stripeTypes, IETF: "2.7"}},
		{"replay-status", "all", map[string]string{Default: "what-is-kept", Stripe: stripeRequests, IETF: "2.6"}},
	}
	if diff := cmp.Diff(want, e.found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := e.of("replay"); len(got) != 1 || got[0].Rule != "replay-status" {
		t.Errorf("%+v", got)
	}
	e.note("a")
	e.note("b")
	e.note("a")
	if !slices.Equal(e.notes, []string{"a", "b"}) {
		t.Errorf("notes %q", e.notes)
	}
}

// api is a handler without a connection.
type api func(*http.Request) *answer

func (f api) RoundTrip(r *http.Request) (*http.Response, error) {
	return (&script{answers: []*answer{f(r)}}).RoundTrip(r)
}

// A run makes the checks in their order until it has to end, and counts the faults of its contract.
func TestRuns(t *testing.T) {
	t.Parallel()
	fine := func(*http.Request) *answer { return re(201, "first answer") }
	for name, tt := range map[string]struct {
		api     func(stop context.CancelFunc) api
		opt     func(*Options)
		checks  []string // those that were made, "name" or "name: why"
		sent    int
		trouble string
		err     string
		faults  int
	}{
		"begins quoted": {
			api: func(context.CancelFunc) api {
				return func(r *http.Request) *answer {
					if !strings.HasPrefix(r.Header.Get("Idempotency-Key"), `"`) {
						return re(400, "no")
					}
					return re(201, "first answer")
				}
			},
			checks: []string{"replay", "lifetime", "quoted", "kept", "concurrent", "missing", "malformed", "errors"}, sent: 13, faults: 9,
		},
		"takes everything": {
			api: func(context.CancelFunc) api { return fine }, sent: 12, faults: 8,
			checks: []string{"replay", "lifetime", "quoted", "kept", "concurrent", "missing", "malformed", "errors: no error about a key was seen"},
		},
		"refuses both forms": {
			api: func(context.CancelFunc) api { return func(*http.Request) *answer { return re(400, "no") } }, sent: 2,
			err: "the API answers 400 to the request that should succeed",
		},
		"refuses in two ways": {
			api: func(context.CancelFunc) api {
				return func(r *http.Request) *answer {
					if strings.HasPrefix(r.Header.Get("Idempotency-Key"), `"`) {
						return re(404, "no")
					}
					return re(400, "no")
				}
			}, sent: 2, err: "the API answers 400 to the request that should succeed",
		},
		"redirects": {
			api: func(context.CancelFunc) api {
				return func(*http.Request) *answer { return re(302, "", "Location", "/x") }
			}, sent: 1,
			err: "the API redirects to http://host/x (302). No redirect is followed, since the request would be carried out there: give the URL itself",
		},
		"isn't there": {api: func(context.CancelFunc) api { return func(*http.Request) *answer { return nil } }, sent: 1, err: "host closed the connection before its answer was complete"},
		"is gone at once": {api: func(context.CancelFunc) api {
			n := 0
			return func(*http.Request) *answer {
				if n++; n == 1 {
					return re(400, "no")
				}
				return nil
			}
		}, sent: 2, err: "host closed the connection before its answer was complete"},
		"ACP takes no quotes": {
			api: func(context.CancelFunc) api { return func(*http.Request) *answer { return re(400, "no") } }, opt: under(ACP), sent: 1,
			err: "the API answers 400 to the request that should succeed",
		},
		"ends at the limit": {
			api: func(context.CancelFunc) api { return fine }, opt: func(o *Options) { o.Requests = 3 }, sent: 3, faults: 3,
			trouble: "check kept: the limit of 3 requests is reached",
			checks: []string{
				"replay", "lifetime", "quoted", "kept: the limit of 3 requests is reached", "concurrent: the limit of 3 requests is reached",
				"missing: the limit of 3 requests is reached", "malformed: the limit of 3 requests is reached", "errors: no error about a key was seen",
			},
		},
		"is stopped": {
			api: func(stop context.CancelFunc) api {
				n := 0
				return func(*http.Request) *answer {
					if n++; n == 3 {
						stop()
					}
					return re(201, "first answer")
				}
			}, sent: 3, faults: 3, trouble: "interrupted; the API may have carried the last request out all the same", checks: []string{"replay", "lifetime", "quoted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				optFns := []func(*Options){func(o *Options) { o.Transport, o.Racers, o.Prefix, o.Name = tt.api(stop), 2, "p-", "n" }}
				if tt.opt != nil {
					optFns = append(optFns, tt.opt)
				}
				plan, err := Make(Template{URL: "http://host/orders?q=1", Body: []byte(`{"a":1}`)}, optFns...)
				if err != nil {
					t.Fatal(err)
				}
				r, err := plan.Run(ctx)
				var checks []string
				for _, o := range r.Checks {
					if strings.HasPrefix(o.Why, "give -") {
						continue
					}
					if o.Why != "" {
						o.Check += ": " + o.Why
					}
					checks = append(checks, o.Check)
				}
				says := ""
				if err != nil {
					says = err.Error()
					tt.trouble = says
				}
				if diff := cmp.Diff(tt.checks, checks); diff != "" || says != tt.err {
					t.Errorf("%v, want %q; checks (-want +got):\n%s", err, tt.err, diff)
				}
				if r.Trouble != tt.trouble || r.Requests != tt.sent || r.Faults != tt.faults || r.Faults != len(r.Broken(Default)) || r.URL != "http://host/orders" || r.Checks == nil {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}
