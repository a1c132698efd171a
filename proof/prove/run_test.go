package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

// few are claims with each outcome.
func few() []Claim {
	says := func(figure string, err error) func(context.Context, *Place) (string, error) {
		return func(context.Context, *Place) (string, error) { return figure, err }
	}
	return []Claim{
		{Name: "holds", Text: "it holds", Examine: says("3 times", nil)},
		{Name: "broken", Text: "it doesn't hold", Examine: says("", errors.New("1 lost"))},
		{Name: "dark", Text: "nothing is seen", Examine: says("2 tries", notSeen(errors.New("no answer")))},
	}
}

func execute(t *testing.T, ctx context.Context, a *Account, run string, claims []Claim) (*Report, error) { //nolint:revive // as in the tests
	t.Helper()
	p, err := Make(a, claims, Options{Run: run, build: unbuiltApp(t)})
	if err != nil {
		t.Fatal(err)
	}
	return p.Execute(ctx)
}

func statuses(r *Report) map[string]Status {
	all := map[string]Status{}
	for _, c := range r.Claims {
		all[c.Name] = c.Status
	}
	return all
}

func TestRun(t *testing.T) {
	t.Parallel()
	c := newCloud()
	r, err := execute(t, t.Context(), c.account(t), "samekey-prove-a", few())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Status{"holds": Passed, "broken": Failed, "dark": NotShown}, statuses(r)); diff != "" {
		t.Error(diff)
	}
	if left := c.left(); left != nil {
		t.Errorf("left: %v", left)
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, MarkdownFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Region eu-west-1", "1 claims passed, 1 failed, 1 not shown", "| `broken`: it doesn't hold | failed | 1 lost |", "| `dark`: nothing is seen | not shown | no answer (2 tries) |"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the report has no %q:\n%s", part, text)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(raw, &again); err != nil || len(again.Claims) != 3 {
		t.Errorf("%d claims, %v", len(again.Claims), err)
	}
}

// A run that is ended at any of its calls leaves nothing, and so does one whose calls fail
// there, for a moment or for a while.
func TestEndedAtAnyCall(t *testing.T) {
	t.Parallel()
	whole := newCloud()
	if _, err := execute(t, t.Context(), whole.account(t), "samekey-prove-a", few()); err != nil {
		t.Fatal(err)
	}
	cut := errors.New("connection reset by peer")
	for n := 2; n <= len(whole.calls); n++ { // the first one is that of OpenAccount
		for name, at := range map[string]func(end context.CancelFunc) func(int, string) error{
			"ended": func(end context.CancelFunc) func(int, string) error {
				return func(i int, _ string) error {
					if i == n {
						end()
					}
					return nil
				}
			},
			"lost": func(context.CancelFunc) func(int, string) error {
				return func(i int, _ string) error {
					if i == n {
						return cut
					}
					return nil
				}
			},
			"down": func(context.CancelFunc) func(int, string) error {
				return func(i int, _ string) error {
					if i >= n && i < n+7 {
						return cut
					}
					return nil
				}
			},
		} {
			c := newCloud()
			a := c.account(t)
			ctx, end := context.WithCancel(t.Context())
			c.before = at(end)
			r, err := execute(t, ctx, a, "samekey-prove-a", few())
			end()
			if left := c.left(); left != nil {
				t.Errorf("%s at call %d, %s, left: %v (%v)", name, n, whole.calls[n-1], left, err)
			}
			if r.Left != "" {
				t.Errorf("%s at call %d: said to be left: %s", name, n, r.Left)
			}
			if name != "ended" && err == nil && r.Trouble == "" && n < 8 {
				t.Errorf("%s at call %d, %s: nobody was told", name, n, whole.calls[n-1])
			}
		}
	}
	if len(whole.calls) < 15 {
		t.Errorf("%d calls: something is wrong with this test", len(whole.calls))
	}
}

// A denied action ends the run with one sentence that names it. Nothing is left, unless the denied
// action is one of the removal, and then the sentence says what.
func TestDeniedAction(t *testing.T) {
	t.Parallel()
	removes := map[string]bool{"DeleteStack": true, "DeleteBucket": true, "ListStackResources": true, "DeleteObjects": true, "ListObjectsV2": true}
	for _, op := range []string{
		"CreateBucket", "PutBucketTagging", "PutObject", "CreateStack", "DescribeStacks", "GetBucketTagging",
		"DeleteStack", "DeleteBucket", "ListStackResources", "DeleteObjects", "ListObjectsV2",
	} {
		c := newCloud()
		a := c.account(t)
		c.before = func(_ int, called string) error {
			if called == op {
				return refusal("AccessDenied", "User is not authorized to perform: "+op)
			}
			return nil
		}
		r, err := execute(t, t.Context(), a, "samekey-prove-a", few())
		if err == nil || !strings.Contains(err.Error(), op) {
			t.Errorf("%s denied: %v", op, err)
		}
		left := c.left()
		if removes[op] || op == "DescribeStacks" { // without it nobody knows whether the stack is there
			if r.Left == "" && left != nil {
				t.Errorf("%s denied: %v is left, and nobody is told", op, left)
			}
			continue
		}
		if left != nil {
			t.Errorf("%s denied: left %v", op, left)
		}
	}
}

// An answer that another try may get otherwise doesn't end the removal: one of a service that is too busy, or broken.
func TestBusyWhileRemoved(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{
		"throttled": refusal("Throttling", "Rate exceeded"), "slower": refusal("SlowDown", "Please reduce your request rate."), "busy": refusal("OperationAborted", "A conflicting operation is in progress"),
		"broken": &smithy.GenericAPIError{Code: "InternalFailure", Message: "internal", Fault: smithy.FaultServer},
	} {
		for _, op := range []string{"DeleteStack", "DeleteBucket", "ListStackResources", "DeleteObjects"} {
			c := newCloud()
			times := 0
			c.before = func(_ int, called string) error {
				if called == op && times < 3 {
					times++
					return refused
				}
				return nil
			}
			r, err := execute(t, t.Context(), c.account(t), "samekey-prove-a", few())
			if left := c.left(); left != nil || err != nil || r.Left != "" || times != 3 {
				t.Errorf("%s %s: left %v, said %q, %v", op, name, left, r.Left, err)
			}
		}
	}
}

// A batch that is given up while the stack is removed keeps a bucket from its deletion, which is tried again.
func TestGivenUpWhileRemoved(t *testing.T) {
	t.Parallel()
	for late, gone := range map[int]bool{1: true, deletions - 1: true, deletions: false} {
		c := newCloud()
		c.givenUp = late
		r, err := execute(t, t.Context(), c.account(t), "samekey-prove-a", few())
		if left := c.left(); (left == nil) != gone || (err == nil) != gone || (r.Left == "") != gone {
			t.Errorf("%d batches: left %v, said %q, %v", late, left, r.Left, err)
		}
	}
}

// What has the run's name and is another's stays.
func TestAnothersStays(t *testing.T) {
	t.Parallel()
	c := newCloud()
	a := c.account(t)
	c.form("samekey-prove-a", []cfntypes.Tag{{Key: aws.String("team"), Value: aws.String("payments")}}).StackStatus = cfntypes.StackStatusCreateComplete
	before := c.left()
	if _, err := execute(t, t.Context(), a, "samekey-prove-a", few()); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a stack of that name: %v", err)
	}
	if diff := cmp.Diff(before, c.left()); diff != "" {
		t.Error(diff)
	}
	c = newCloud()
	a = c.account(t)
	c.buckets["samekey-prove-a"] = &bucket{tags: map[string]string{"team": "payments"}, keys: map[string]bool{"a": true}}
	before = c.left()
	if _, err := execute(t, t.Context(), a, "samekey-prove-a", few()); err == nil || !strings.Contains(err.Error(), "is there") {
		t.Errorf("a bucket of that name: %v", err)
	}
	if diff := cmp.Diff(before, c.left()); diff != "" || len(c.buckets["samekey-prove-a"].keys) != 1 {
		t.Error(diff)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	c := newCloud()
	c.fails = "Specified ReservedConcurrentExecutions decreases account's UnreservedConcurrentExecution below its minimum value of [10]"
	r, err := execute(t, t.Context(), c.account(t), "samekey-prove-a", few())
	if err == nil || !strings.Contains(err.Error(), "AWS::Lambda::Function Provider: "+c.fails) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if left := c.left(); left != nil || r.Left != "" {
		t.Errorf("left: %v, %s", left, r.Left)
	}
}

// TestClock has AWS answer with another time than this machine's.
func TestClock(t *testing.T) {
	t.Parallel()
	for ahead, wrong := range map[time.Duration]string{
		0: "", maxSkew: "", -maxSkew: "", maxSkew + time.Second: "5m0s", -3*time.Hour - time.Minute: "3h1m0s",
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := aws.Config{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: clock(time.Now().Add(ahead))}
			a, err := OpenAccount(t.Context(), cfg)
			if wrong == "" && (err != nil || a.skew != ahead) || wrong != "" && (err == nil || !strings.Contains(err.Error(), "clock is wrong by "+wrong+":")) {
				t.Errorf("%s ahead: %+v, %v", ahead, a, err)
			}
		})
	}
}

// clock answers GetCallerIdentity at a time.
type clock time.Time

func (c clock) Do(r *http.Request) (*http.Response, error) {
	const body = `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Date": {time.Time(c).UTC().Format(http.TimeFormat)}, "Content-Type": {"text/xml"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// A run that may cost more than it is allowed to doesn't begin, and no examination goes beyond what was planned for it.
func TestMoney(t *testing.T) {
	t.Parallel()
	c := newCloud()
	a := c.account(t)
	if _, err := Make(a, Claims(), Options{Dollars: 0.01}); err == nil || !strings.Contains(err.Error(), "--max-dollars is 0.01") {
		t.Errorf("got %v", err)
	}
	p, err := Make(a, Claims(), Options{})
	if err != nil || p.Cost.Dollars() > DefaultDollars || p.Cost.Dollars() < DefaultDollars/2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	greedy := func(_ context.Context, p *Place) (string, error) { return "", p.meter.add(Cost{Bookings: 2}) }
	r, err := execute(t, t.Context(), a, "samekey-prove-a", []Claim{{Name: "greedy", Cost: Cost{Bookings: 1}, Examine: greedy}})
	if err != nil || r.Claims[0].Status != NotShown || !strings.Contains(r.Claims[0].Why, "2 requests to the API, of 1") {
		t.Errorf("got %+v, %v", r.Claims, err)
	}
}

// At its limit a run ends, says so, and removes what it has made.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		waits := Claim{Name: "waits", Examine: func(ctx context.Context, _ *Place) (string, error) {
			<-ctx.Done()
			return "", errors.New("it saw nothing")
		}}
		p, err := Make(c.account(t), append([]Claim{waits}, few()...), Options{Limit: time.Hour, Keep: true, build: unbuiltApp(t)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Execute(t.Context())
		const why = "the run reached its limit of 1h0m0s"
		if err == nil || r.Trouble != why || r.Count(NotShown) != 1+len(few()) || r.Claims[0].Why != why || c.left() != nil {
			t.Errorf("got %+v, %v, left %v", r, err, c.left())
		}
	})
}

// A stand-in passes no claim that it can't show, and fails one about which the list of
// differences is wrong.
func TestStandIn(t *testing.T) {
	t.Parallel()
	saw := errors.New("it differs")
	local, another, account := &Place{StandIn: "local", Local: true}, &Place{StandIn: "another"}, &Place{}
	for _, test := range []struct {
		claim Claim
		place *Place
		err   error
		want  Status
	}{
		{Claim{}, local, nil, Passed},
		{Claim{}, local, saw, Failed},
		{Claim{OnStandIn: "known", Differs: true}, local, saw, NotShown},
		{Claim{OnStandIn: "known", Differs: true}, local, nil, Failed},
		{Claim{OnStandIn: "known", Differs: true}, account, nil, Passed},
		{Claim{OnStandIn: "known", Differs: true}, account, saw, Failed},
		{Claim{}, account, notSeen(saw), NotShown},
		{Claim{}, account, context.Canceled, NotShown},
		{Claim{}, another, saw, NotShown},
		{Claim{}, another, nil, Passed},
		{Claim{}, account, saw, Failed},
	} {
		if got := test.claim.judge(test.place, "", test.err).Status; got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	if why := notSeen(saw); notSeen(nil) != nil || !errors.Is(why, saw) {
		t.Errorf("%v, %v", notSeen(nil), why)
	}
	c := newCloud()
	a := c.account(t)
	a.bare.BaseEndpoint = aws.String("http://127.0.0.1:1")
	a.cfg.BaseEndpoint = a.bare.BaseEndpoint
	passes := func(context.Context, *Place) (string, error) { return "", nil }
	r, err := execute(t, t.Context(), a, "samekey-prove-a", []Claim{{Name: "only AWS", OnStandIn: "no memory limit", Examine: passes}})
	if err != nil || r.Claims[0].Status != NotShown || r.StandIn == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	c := newCloud()
	a := c.account(t)
	p, err := Make(a, few(), Options{Run: "samekey-prove-a", Keep: true, build: unbuiltApp(t)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Execute(t.Context())
	if err != nil || r.Left == "" || len(c.left()) == 0 {
		t.Fatalf("%+v, %v, %v", r, c.left(), err)
	}
	found, err := a.Leftovers(t.Context())
	if err != nil || len(found) != 1 || found[0].Run != "samekey-prove-a" || found[0].Expires.Before(time.Now()) {
		t.Errorf("%+v, %v", found, err)
	}
	c.buckets["samekey-prove-anothers"] = &bucket{tags: map[string]string{"team": "payments"}, keys: map[string]bool{}}
	other := c.account(t) // another process
	if err := other.Clean(t.Context(), "samekey-prove-a"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"bucket samekey-prove-anothers"}, c.left()); diff != "" {
		t.Error(diff)
	}
}
