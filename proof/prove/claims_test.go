package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/proof/prove/fault"
)

// Most claims are examined on this machine, by TestOnThisMachine, and fail there for planted bugs. Here are those that only an
// account shows.

// answering is a configuration whose calls somebody answers.
func answering(answer func(in any) (any, error)) aws.Config {
	return aws.Config{
		Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1,
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("answering", func(
				ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler,
			) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
				if err = ctx.Err(); err == nil {
					out.Result, err = answer(in.Parameters)
				}
				return out, meta, err
			}), middleware.After)
		}},
	}
}

// shop is Rocket Rides in memory, with a worker: functions of reserved concurrencies.
type shop struct {
	mu          sync.Mutex
	bug         string
	concurrency map[string]int32
	refuse      func(n int) error // the nth call
	calls       int
	items       map[string][]map[string]types.AttributeValue
	booked      map[string]string // rides without a mail, by key
}

func newShop(bug string) *shop {
	return &shop{bug: bug, concurrency: map[string]int32{"booker": 10, "worker": 5}, items: map[string][]map[string]types.AttributeValue{}, booked: map[string]string{}}
}

func (s *shop) place() *Place {
	m := &meter{most: Cost{Bookings: 100, Reads: 1 << 20, Calls: 1 << 10}}
	cfg := metered(answering(s.answer), m)
	return &Place{
		API: "https://api", HTTP: &http.Client{Transport: s}, Timeout: 5 * time.Second, meter: m, DB: dynamodb.NewFromConfig(cfg), Lambda: lambda.NewFromConfig(cfg),
		Booker: "booker", Worker: "worker", Rides: "rides", Audit: "audit", Provider: "provider",
	}
}

func (s *shop) put(table, id string, more map[string]string) {
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	for name, value := range more {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	s.items[table] = append(s.items[table], item)
}

func (s *shop) answer(in any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls++; s.refuse != nil {
		if err := s.refuse(s.calls); err != nil {
			return nil, err
		}
	}
	switch in := in.(type) {
	case *lambda.GetFunctionConcurrencyInput:
		return &lambda.GetFunctionConcurrencyOutput{ReservedConcurrentExecutions: aws.Int32(s.concurrency[*in.FunctionName])}, nil
	case *lambda.PutFunctionConcurrencyInput:
		s.concurrency[*in.FunctionName] = *in.ReservedConcurrentExecutions
		return &lambda.PutFunctionConcurrencyOutput{}, nil
	case *dynamodb.ScanInput:
		if s.concurrency["worker"] > 0 && s.bug != "a lost job" || s.bug == "a worker that runs" {
			for key, ride := range s.booked {
				delete(s.booked, key)
				s.put("provider", "mail#"+ride, map[string]string{"about": ride})
				if s.bug == "a job delivered twice" {
					s.put("provider", "mail#again"+ride, map[string]string{"about": ride})
				}
			}
		}
		return &dynamodb.ScanOutput{Items: s.items[*in.TableName]}, nil
	}
	return nil, fmt.Errorf("nobody knows %T", in)
}

// RoundTrip is the API.
func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	at, _, _ := strings.Cut(strings.TrimPrefix(string(raw), `{"origin_lat":`), ",")
	key := r.Header.Get("Idempotency-Key")
	refused := s.concurrency["booker"] == 0 && s.bug != "an API that runs"
	if !refused || s.bug == "a refused request that runs" {
		ride := fmt.Sprint("ride-", key, refused)
		s.put("rides", ride, map[string]string{"origin_lat": at, "charge_id": "ch"})
		s.put("provider", "charge#"+ride, map[string]string{"about": "Ride " + ride, "made": "ch"})
		audit := map[string]types.AttributeValue{"origin_lat": &types.AttributeValueMemberN{Value: at}}
		s.items["audit"] = append(s.items["audit"], map[string]types.AttributeValue{"data": &types.AttributeValueMemberM{Value: audit}})
		s.booked[key] = ride
		if !refused {
			return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(ride))}, nil
		}
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// What a throttle loses or doubles fails the claim, what isn't throttled shows nothing, and the functions have their
// concurrency back, wherever the run is ended or refused.
func TestThrottled(t *testing.T) {
	t.Parallel()
	play := func(name string, s *shop, ctx context.Context, want ...Status) {
		p := s.place()
		figure, err := examineThrottled(ctx, p)
		r := throttled().judge(p, figure, err)
		if len(want) > 0 && r.Status != want[0] || len(want) == 0 && r.Status == Failed || r.Status == Passed && !throttled().figure().MatchString(r.Figure) {
			t.Errorf("%s: got %+v, want %v", name, r, want)
		}
		if !maps.Equal(s.concurrency, map[string]int32{"booker": 10, "worker": 5}) {
			t.Errorf("%s leaves %v", name, s.concurrency)
		}
	}
	for bug, want := range map[string]Status{
		"": Passed, "a lost job": Failed, "a job delivered twice": Failed, "a refused request that runs": Failed, "an API that runs": NotShown, "a worker that runs": NotShown,
	} {
		synctest.Test(t, func(t *testing.T) { play(bug, newShop(bug), t.Context(), want) })
	}
	for n := 1; n <= 20; n++ { // more than a whole run makes
		for name, refusal := range map[string]error{"ended": nil, "lost": errors.New("connection reset by peer")} {
			synctest.Test(t, func(t *testing.T) {
				s := newShop("")
				ctx, end := context.WithCancel(t.Context())
				defer end()
				s.refuse = func(i int) error {
					if i == n && refusal == nil {
						end()
					}
					if i >= n && i < n+3 {
						return refusal
					}
					return nil
				}
				play(fmt.Sprint(name, " at call ", n), s, ctx)
			})
		}
	}
}

// A call that a role denies fails the claim, but not the one that the store goes on without; where nothing was done, nothing
// is shown.
func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	s := newShop("")
	for _, step := range []struct {
		table, id string
		want      Status
	}{
		{"audit", "a", NotShown},
		{"rides", "ride", Passed},
		{"provider", fault.Denied + "api dynamodb " + expected, Passed},
		{"provider", fault.Denied + "receipts dynamodb DynamoDB_20120810.PutItem", Failed},
	} {
		s.put(step.table, step.id, nil)
		p := s.place()
		figure, err := examineDenied(t.Context(), p)
		if r := (Claim{}).judge(p, figure, err); r.Status != step.want {
			t.Errorf("with %s: got %+v, want %s", step.id, r, step.want)
		}
	}
}

// An alarm has rung if its history says so after the trouble; one that is to end has rung before. Another run's alarm, and one
// that never rings, fail the claim.
func TestRing(t *testing.T) {
	t.Parallel()
	since := time.Now()
	state := func(after time.Duration, old, state string) cwtypes.AlarmHistoryItem {
		return cwtypes.AlarmHistoryItem{
			Timestamp: aws.Time(since.Add(after)), HistoryData: aws.String(fmt.Sprintf(`{"oldState":{"stateValue":%q},"newState":{"stateValue":%q}}`, old, state)),
		}
	}
	rings, ends, early := state(time.Minute, "OK", "ALARM"), state(2*time.Minute, "ALARM", "OK"), state(-time.Minute, "OK", "ALARM")
	for name, test := range map[string]struct {
		alarm   string
		history []cwtypes.AlarmHistoryItem // the newest first
		ends    bool
		want    Result
	}{
		"it rings":                 {"-MismatchAlarm-", []cwtypes.AlarmHistoryItem{rings}, false, Result{Status: Passed, Figure: "60 s later"}},
		"it rang, and ended":       {"-MismatchAlarm-", []cwtypes.AlarmHistoryItem{ends, rings}, false, Result{Status: Passed, Figure: "60 s later"}},
		"it ends":                  {"-MismatchAlarm-", []cwtypes.AlarmHistoryItem{ends, early}, true, Result{Status: Passed, Figure: "120 s later"}},
		"it doesn't end":           {"-MismatchAlarm-", []cwtypes.AlarmHistoryItem{early}, true, Result{Status: Failed, Why: "not within 1s"}},
		"it never rang":            {"-MismatchAlarm-", nil, true, Result{Status: NotShown, Why: "it didn't ring before"}},
		"it doesn't ring":          {"-MismatchAlarm-", nil, false, Result{Status: Failed, Why: "not within 1s"}},
		"it has lacked data since": {"-MismatchAlarm-", []cwtypes.AlarmHistoryItem{state(time.Minute, "INSUFFICIENT_DATA", "OK")}, false, Result{Status: Failed, Why: "not within 1s"}},
		"there is another":         {"-ParkedAlarm-", []cwtypes.AlarmHistoryItem{rings}, false, Result{Status: Failed, Why: "there is no such alarm"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := cloudwatch.NewFromConfig(answering(func(in any) (any, error) {
				if in, is := in.(*cloudwatch.DescribeAlarmsInput); is {
					return &cloudwatch.DescribeAlarmsOutput{MetricAlarms: []cwtypes.MetricAlarm{{AlarmName: aws.String(*in.AlarmNamePrefix + "-Samekey" + test.alarm + "1A2B")}}}, nil
				}
				return &cloudwatch.DescribeAlarmHistoryOutput{AlarmHistoryItems: test.history}, nil
			}))
			p := &Place{Alarms: client, Stack: Prefix + "a", Rings: time.Second}
			figure, err := p.ring(t.Context(), trouble{alarm: "Mismatch", ends: test.ends}, since)
			if got := (Claim{}).judge(p, figure, err); got != test.want {
				t.Errorf("%s: got %+v, want %+v", name, got, test.want)
			}
		})
	}
}

// A sweep fails if it leaves something undone for long after a pass, or sees too little of the table again and again. A
// table that takes long to fill, or a pass of which the schedule did a part, fails nothing.
func TestPasses(t *testing.T) {
	t.Parallel()
	const records, patience = 100, time.Minute
	type run struct {
		scanned  int
		complete bool
		after    time.Duration
	}
	for name, test := range map[string]struct {
		runs         []run
		undone       bool
		over, failed bool
	}{
		"a pass in two runs":       {[]run{{60, false, 0}, {50, true, 0}}, false, true, false},
		"a pass that isn't done":   {[]run{{160, false, 0}}, false, false, false},
		"a part by the schedule":   {[]run{{40, true, 0}, {101, true, 0}}, false, true, false},
		"three passes see little":  {[]run{{100, true, 0}, {100, true, 0}, {100, true, 0}}, false, false, true},
		"long before a pass":       {[]run{{60, false, time.Hour}}, true, false, false},
		"not long after a pass":    {[]run{{101, true, 0}, {101, true, patience}}, true, false, false},
		"undone long after a pass": {[]run{{101, true, 0}, {101, true, patience + 1}}, true, false, true},
	} {
		began := time.Now()
		now, operation := began, complete
		var p passes
		for _, r := range test.runs {
			now = began.Add(r.after)
			p.add(stream.Report{Scanned: r.scanned, Complete: r.complete}, now)
		}
		if test.undone {
			operation = effects{rides: 1}
		}
		over, err := p.over(complete, operation, records, now, patience)
		if over != test.over || (err != nil) != test.failed {
			t.Errorf("%s: got %t, %v, want %t, an error: %t", name, over, err, test.over, test.failed)
		}
	}
}

// SQS may take a minute until it counts a message; later, one that waits has to be counted.
func TestInFlight(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]Status{
		"": NotShown, "000000000000": NotShown, "0000000000000": Failed, "0000000000001101": Passed, "0100": Failed, "10": Passed,
	} {
		p := &Place{}
		for _, c := range pattern {
			p.looks = append(p.looks, c == '1')
		}
		figure, err := examineInFlight(t.Context(), p)
		if r := (Claim{}).judge(p, figure, err); r.Status != want {
			t.Errorf("%s: got %+v, want %s", pattern, r, want)
		}
	}
}
