package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/lambda/metrics"
	"github.com/samekey/samekey/proof/prove/fault"
)

// judged is CloudWatch with the alarms of a template, which judges them as it does.
type judged struct {
	alarms  map[string]alarmtest.Alarm
	data    alarmtest.Data
	was     types.StateValue // before now
	history []types.AlarmHistoryItem
	looks   int
}

// client is one of the SDK, whose calls pass by the meter.
func (j *judged) client() *cloudwatch.Client { return j.limited(looks + 4) }

// limited is a client for a number of calls.
func (j *judged) limited(calls int) *cloudwatch.Client {
	cfg := aws.Config{Region: "eu-west-1", APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("judged", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return middleware.InitializeOutput{Result: j.answer(in.Parameters)}, middleware.Metadata{}, nil
		}), middleware.After)
	}}}
	return cloudwatch.NewFromConfig(metered(cfg, &meter{most: Cost{Calls: calls}}))
}

func (j *judged) answer(in any) any {
	j.looks++
	switch in := in.(type) {
	case *cloudwatch.DescribeAlarmsInput:
		out := &cloudwatch.DescribeAlarmsOutput{}
		for id := range j.alarms {
			out.MetricAlarms = append(out.MetricAlarms, types.MetricAlarm{AlarmName: aws.String(*in.AlarmNamePrefix + "-Samekey-1A2B-" + id + "-3C4D")})
		}
		return out
	case *cloudwatch.DescribeAlarmHistoryInput: // the newest first
		if in.HistoryItemType != types.HistoryItemTypeStateUpdate || in.ScanBy != types.ScanByTimestampDescending {
			return &cloudwatch.DescribeAlarmHistoryOutput{}
		}
		_, rest, _ := strings.Cut(*in.AlarmName, "-Samekey-1A2B-")
		id, _, _ := strings.Cut(rest, "-")
		if alarm, judges := j.alarms[id]; judges {
			if now := types.StateValue(alarm.At(j.data, time.Now())); now != j.was {
				j.turn(j.was, now, time.Now())
				j.was = now
			}
		}
		return &cloudwatch.DescribeAlarmHistoryOutput{AlarmHistoryItems: j.history}
	}
	return nil
}

func (j *judged) turn(old, next types.StateValue, at time.Time) {
	j.history = slices.Insert(j.history, 0, types.AlarmHistoryItem{Timestamp: &at, HistoryData: aws.String(fmt.Sprintf(
		`{"version":"1.0","oldState":{"stateValue":%q,"stateReason":"r"},"newState":{"stateValue":%q,"stateReason":"r"}}`, old, next))})
}

// An alarm of another metric, dimension or threshold doesn't ring, and its claim fails. In the first row nothing
// is planted.
func TestWrongAlarm(t *testing.T) {
	t.Parallel()
	const run = "samekey-prove-a"
	for name, wrong := range map[string]struct{ old, replacement string }{
		"":                    {},
		"of another metric":   {"MetricName: WaitingParked", "MetricName: Parked"},
		"of another app":      {"Value: !If [HasApp, !Ref App, !Ref AWS::StackName]", "Value: orders"},
		"of a high threshold": {"Threshold: 0", "Threshold: 1"},
		"of one below":        {"GreaterThanThreshold", "LessThanThreshold"},
		"that isn't there":    {"WaitingParkedAlarm:", "ParkedAlarm:"},
	} {
		head, rest, ok1 := strings.Cut(Nested(true), "  WaitingParkedAlarm:")
		own, tail, ok2 := strings.Cut(rest, "\n\n")
		own = "  WaitingParkedAlarm:" + own
		if !ok1 || !ok2 || !strings.Contains(own, wrong.old) {
			t.Fatalf("the template has no such alarm, or no %s", wrong.old)
		}
		text := head + strings.Replace(own, wrong.old, wrong.replacement, 1) + "\n\n" + tail
		alarms, err := alarmtest.Parse(text, map[string]string{"App": run})
		if err != nil {
			t.Fatal(err)
		}
		j := &judged{alarms: alarms}
		j.data.Add(alarmtest.Metric{Namespace: metrics.Namespace, Name: "WaitingParked", Dimensions: map[string]string{"App": run}}, time.Now().Add(-2*time.Minute), 1)
		p := &Place{Alarms: j.client(), Stack: run, Rings: time.Millisecond, meter: &meter{}, parked: &stream.Entry{}}
		figure, err := ringing().Examine(t.Context(), p)
		want := Failed
		if name == "" {
			want = Passed
		}
		if r := ringing().judge(p, figure, err); r.Name != "alarms.parked" || r.Status != want || j.looks == 0 {
			t.Errorf("an alarm %s: %+v", name, r)
		}
	}
}

// Each trouble has its alarm ring, and no other; an alarm of another metric doesn't ring, and its claim fails.
func TestTroubles(t *testing.T) {
	t.Parallel()
	const run = "samekey-prove-a"
	app, worker := map[string]string{"App": run}, map[string]string{"FunctionName": "w"}
	made := map[string]struct {
		metric alarmtest.Metric
		value  float64
	}{
		"WorkerErrors":  {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "Errors", Dimensions: worker}, 1},
		"GivenUp":       {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "OnFailureDestinationDeliveredEventCount", Dimensions: map[string]string{"EventSourceMappingUUID": "m"}}, 1},
		"Undelivered":   {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Undelivered", Dimensions: app}, 1},
		"Abandoned":     {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Abandoned", Dimensions: app}, 1},
		"Mismatch":      {alarmtest.Metric{Namespace: metrics.Namespace, Name: "Mismatch", Dimensions: app}, mismatches},
		"WaitingParked": {alarmtest.Metric{Namespace: metrics.Namespace, Name: "WaitingParked", Dimensions: app}, 0},
	}
	alarms, err := alarmtest.Parse(Nested(true), map[string]string{"App": run, "Worker": "w", "WorkerStream": "m", "MismatchThreshold": "10"})
	if err != nil {
		t.Fatal(err)
	}
	for _, trouble := range troubles() {
		for _, happens := range []bool{true, false} {
			j := &judged{alarms: alarms, was: types.StateValueOk}
			counted := made[trouble.alarm].value
			if trouble.ends {
				j.was = types.StateValueAlarm
				j.turn(types.StateValueOk, j.was, time.Now().Add(-time.Hour))
				if !happens { // one is parked still
					counted = 1
				}
			}
			if happens || trouble.ends {
				j.data.Add(made[trouble.alarm].metric, time.Now().Add(-2*time.Minute), counted)
			}
			p := &Place{Alarms: j.client(), Stack: run, Rings: time.Millisecond, meter: &meter{}}
			trouble.made = func(context.Context, *Place) (time.Time, error) { return time.Now().Add(-time.Minute), nil }
			c := alarming(trouble)
			figure, err := c.Examine(t.Context(), p)
			want := Result{Name: c.Name, Claim: c.Text, Page: c.Page, Status: Passed, Figure: "60 s later"}
			if !happens {
				want.Status, want.Figure, want.Why = Failed, "", "not within 1ms"
			}
			if r := c.judge(p, figure, err); r != want || !happens && j.looks != 1+looks {
				t.Errorf("%s, %t: %+v", trouble.name, happens, r)
			}
		}
	}
	never := &judged{alarms: alarms, was: types.StateValueOk}
	if _, err := (&Place{Alarms: never.client(), Stack: run, Rings: time.Millisecond}).ring(t.Context(), trouble{alarm: "WaitingParked", ends: true}, time.Now()); !dark(err) {
		t.Errorf("an alarm that never rang: %v", err)
	}
	over, end := context.WithCancelCause(t.Context())
	end(errors.New("it was told to"))
	for name, x := range map[string]struct {
		calls   int
		history string
		ctx     context.Context
	}{
		"alarms that nobody shows":    {0, "", t.Context()},
		"a history that nobody shows": {1, "", t.Context()},
		"a history that isn't read":   {looks + 2, "no JSON", t.Context()},
		"a run that was told to end":  {looks + 2, "", over},
	} {
		j := &judged{alarms: alarms, was: types.StateValueOk}
		if x.history != "" {
			j.history = []types.AlarmHistoryItem{{HistoryData: &x.history}}
		}
		if _, err := (&Place{Alarms: j.limited(x.calls), Stack: run, Rings: time.Millisecond}).ring(x.ctx, trouble{alarm: "WaitingParked"}, time.Now()); !dark(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := &Place{found: map[stream.Reason]time.Time{stream.ReasonOpen: time.Now()}}
	for _, unmade := range []func(context.Context, *Place) (time.Time, error){swept(stream.ReasonUndelivered), isParked} {
		if _, err := unmade(t.Context(), p); err == nil {
			t.Error("a trouble that wasn't made")
		}
	}
	if _, err := swept(stream.ReasonOpen)(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// An alarm that has rung and ended before the run looks has rung. One that never rang doesn't end, nor does one that ended
// before the remedy.
func TestAlarmsHistory(t *testing.T) {
	t.Parallel()
	const ok, alarm, none = types.StateValueOk, types.StateValueAlarm, time.Duration(-1)
	since := time.Now()
	type turn struct {
		old, next types.StateValue
		after     time.Duration
	}
	for name, test := range map[string]struct {
		turns       []turn
		rang, ended time.Duration
	}{
		"rang and ended": {[]turn{{ok, alarm, 70 * time.Second}, {alarm, ok, 400 * time.Second}}, 70 * time.Second, 400 * time.Second},
		"rings already":  {[]turn{{ok, alarm, -time.Minute}}, -time.Minute, none},
		"rang twice":     {[]turn{{ok, alarm, -time.Minute}, {alarm, ok, -time.Second}, {ok, alarm, time.Minute}, {ok, alarm, time.Hour}}, time.Minute, none},
		"ended twice":    {[]turn{{ok, alarm, 1}, {alarm, ok, time.Second}, {ok, alarm, time.Minute}, {alarm, ok, time.Hour}}, 1, time.Second},
		"lost its data":  {[]turn{{ok, alarm, 1}, {alarm, types.StateValueInsufficientData, time.Second}}, 1, none},
		"never rang":     {[]turn{{types.StateValueInsufficientData, ok, time.Second}}, none, none},
		"ended before":   {[]turn{{ok, alarm, -time.Hour}, {alarm, ok, -time.Minute}}, -time.Hour, none},
		"no history":     {nil, none, none},
	} {
		j := &judged{}
		for _, x := range test.turns {
			j.turn(x.old, x.next, since.Add(x.after))
		}
		rang, ended, err := (&Place{Alarms: j.client()}).history(t.Context(), aws.String("a"), since)
		for what, x := range map[string]struct {
			got  time.Time
			want time.Duration
		}{"rang": {rang, test.rang}, "ended": {ended, test.ended}} {
			if err != nil || x.got.IsZero() != (x.want == none) || x.want != none && x.got.Sub(since) != x.want {
				t.Errorf("%s: %s %s, %v", name, what, x.got.Sub(since), err)
			}
		}
	}
}

// Each trouble is made, or found where it was made before, and since when. One that nobody has made shows nothing.
func TestTroublesThatAreMade(t *testing.T) {
	t.Parallel()
	lost := refusal("AccessDenied", "no")
	for _, test := range []struct{ bug, want string }{
		{"", "worker-errors 1s, given-up 1s, undelivered 3s, abandoned 4s, mismatch 0s, parked-ends 5s"},
		{"a key for everything", "worker-errors no worker has met poisoned, given-up no worker has met poisoned, undelivered no sweep has found one, abandoned no sweep has found one, " +
			"mismatch the answer to another request under the key is 201, parked-ends no parked job was redriven, or another one is parked"},
		{"another is parked", "parked-ends no parked job was redriven, or another one is parked"},
		{"a small plan", "mismatch it would cost more than was planned: 6 requests to the API, of 5 that were planned"},
		{"no answer", "mismatch no answer after 12 requests, the last one is 500: down"},
		{"nobody knows", "worker-errors AccessDenied: no, given-up AccessDenied: no, parked-ends AccessDenied: no"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			m.bug = test.bug
			p := m.place()
			p.meter.begin(Cost{Bookings: mismatches + tries + 1, Reads: 1 << 20})
			now := time.Now()
			if test.bug != "a key for everything" {
				m.happen(fault.Fault{Kind: fault.Poisoned, Call: 3, Cell: "worker"})
				m.happen(fault.Fault{Kind: fault.Refuse, Call: 9, Cell: "worker"})
				p.found = map[stream.Reason]time.Time{stream.ReasonUndelivered: now.Add(-2 * time.Second), stream.ReasonOpen: now.Add(-3 * time.Second)}
				p.redrivenAt = now.Add(-4 * time.Second)
			}
			<-time.After(time.Second)
			switch test.bug {
			case "another is parked":
				m.items["parked"] = append(m.items["parked"], parkedItem("another"))
			case "a small plan":
				p.meter.begin(Cost{Bookings: 5})
			case "nobody knows":
				m.refuse = func(int) error { return lost }
			}
			var got []string
			for _, x := range troubles() {
				at, err := x.made(t.Context(), p)
				said := time.Since(at).String()
				if err != nil {
					said = err.Error()
				}
				if strings.Contains(test.want, x.name) {
					got = append(got, x.name+" "+said)
				}
			}
			if n := p.meter.total().Bookings; test.bug == "" && n != 1+mismatches {
				t.Errorf("%d bookings", n)
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("%q: %s", test.bug, got)
			}
		})
	}
}
