package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

func startSchedule(t *testing.T, s eventsource.Schedule) *eventsource.Timer {
	t.Helper()
	timer, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = timer.Close() })
	return timer
}

func TestScheduleRunsAtARate(t *testing.T) {
	for expression, interval := range map[string]time.Duration{
		"rate(1 minute)":  time.Minute,
		"rate(5 minutes)": 5 * time.Minute,
		"rate(2 hours)":   2 * time.Hour,
		"rate(1 day)":     24 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, begin := &function{}, time.Now()
			startSchedule(t, eventsource.Schedule{Function: f, Expression: expression})
			after(3*interval + time.Second)
			var got []time.Duration
			for _, at := range f.times() {
				got = append(got, at.Sub(begin))
			}
			if diff := cmp.Diff([]time.Duration{interval, 2 * interval, 3 * interval}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", expression, diff)
			}
		})
	}
}

// A bubble begins on Saturday, 1 January 2000, at midnight UTC.
func TestScheduleRunsByCron(t *testing.T) {
	for _, tt := range []struct {
		expression, zone string
		want             []string
	}{
		{"cron(0 10 * * ? *)", "", []string{"2000-01-01T10:00:00Z", "2000-01-02T10:00:00Z"}},
		{"cron(15 12 * * ? *)", "Europe/Berlin", []string{"2000-01-01T11:15:00Z", "2000-01-02T11:15:00Z"}},
		{"cron(0/15 * * * ? *)", "", []string{"2000-01-01T00:15:00Z", "2000-01-01T00:30:00Z", "2000-01-01T00:45:00Z", "2000-01-01T01:00:00Z"}},
		// Sunday is 1, Monday 2.
		{"cron(0 9 ? * 1 *)", "", []string{"2000-01-02T09:00:00Z", "2000-01-09T09:00:00Z"}},
		{"cron(0 9 ? * 2-3 *)", "", []string{"2000-01-03T09:00:00Z", "2000-01-04T09:00:00Z", "2000-01-10T09:00:00Z"}},
		{"cron(0 9 ? * MON,7 *)", "", []string{"2000-01-01T09:00:00Z", "2000-01-03T09:00:00Z", "2000-01-08T09:00:00Z"}},
		{"cron(0 9 ? * 3#1 *)", "", []string{"2000-01-04T09:00:00Z", "2000-02-01T09:00:00Z"}},
		{"cron(0 9 ? * 6L *)", "", []string{"2000-01-28T09:00:00Z", "2000-02-25T09:00:00Z"}},
		{"cron(0 9 L FEB ? *)", "", []string{"2000-02-29T09:00:00Z", "2001-02-28T09:00:00Z"}},
		{"cron(0 9 1 1 ? 2000-2001)", "", []string{"2000-01-01T09:00:00Z", "2001-01-01T09:00:00Z"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &function{}
			startSchedule(t, eventsource.Schedule{Function: f, Expression: tt.expression, Timezone: tt.zone})
			last, err := time.Parse(time.RFC3339, tt.want[len(tt.want)-1])
			if err != nil {
				t.Fatal(err)
			}
			after(time.Until(last) + time.Minute)
			var got []string
			for _, at := range f.times() {
				got = append(got, at.UTC().Format(time.RFC3339))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.expression, diff)
			}
		})
	}
}

// The last year over, nothing runs, and Tick still works.
func TestScheduleHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Expression: "cron(0 0 1 1 ? 1999)"})
		after(24 * time.Hour)
		if n := len(f.got()); n != 0 {
			t.Errorf("%d runs", n)
		}
		if err := timer.Tick(t.Context()); err != nil || len(f.got()) != 1 {
			t.Errorf("Tick: %v, %d runs", err, len(f.got()))
		}
	})
}

func TestScheduleEveryWinsOverTheExpression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{}
		startSchedule(t, eventsource.Schedule{Function: f, Expression: "rate(1 day)", Every: 300 * time.Millisecond})
		after(time.Second)
		if n := len(f.got()); n != 3 {
			t.Errorf("%d runs in a second, want 3", n)
		}
	})
}

func TestSchedulePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Every: time.Minute})
		after(90 * time.Second)
		timer.Pause()
		after(10 * time.Minute)
		if n := len(f.got()); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if err := timer.Tick(t.Context()); err != nil || len(f.got()) != 2 {
			t.Errorf("Tick while paused: %v, %d runs", err, len(f.got()))
		}
		timer.Resume()
		after(time.Minute)
		if n := len(f.got()); n != 3 {
			t.Errorf("%d runs, want 3: none is made up for", n)
		}
	})
}

// A run that is due while another goes on begins all the same: EventBridge hands
// its events over and waits for nobody. So does Tick.
func TestScheduleRunsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{answer: func(context.Context, int, []string) ([]byte, error) {
			<-time.After(150 * time.Second)
			return nil, nil
		}}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Every: time.Minute})
		begin := time.Now()
		after(130 * time.Second) // in the second run, and the first goes on
		if err := timer.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited != 280*time.Second {
			t.Errorf("Tick returned after %s: it waits for its own run only", waited)
		}
		var got []time.Duration
		for _, at := range f.times() {
			got = append(got, at.Sub(begin))
		}
		if diff := cmp.Diff([]time.Duration{60 * time.Second, 120 * time.Second, 130 * time.Second, 180 * time.Second, 240 * time.Second}, got); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		timer.Pause()
		if err := timer.Idle(t.Context()); err != nil || time.Since(begin) != 390*time.Second {
			t.Errorf("idle after %s, %v: the run of minute 4 ends at 390 s", time.Since(begin), err)
		}
	})
}

// What the clock begins goes another way than a Tick, which tells the error of one
// run: it may be tried again.
func TestScheduleHasItsOwnInvoker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, retried := &function{}, &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Async: retried, Every: time.Minute})
		after(90 * time.Second)
		if err := timer.Tick(t.Context()); err != nil || len(f.got()) != 1 || len(retried.got()) != 1 {
			t.Errorf("%v; %d ticks, %d by the clock", err, len(f.got()), len(retried.got()))
		}
	})
}

// A bubble begins on Saturday, 1 January 2000, at midnight UTC.
func TestScheduleRunsOnce(t *testing.T) {
	for _, tt := range []struct {
		expression, zone string
		want             []time.Duration
	}{
		{"at(2000-01-01T10:00:30)", "", []time.Duration{10*time.Hour + 30*time.Second}},
		{"at(2000-01-01T10:00:00)", "Europe/Berlin", []time.Duration{9 * time.Hour}},
		{"at(1999-12-31T23:59:59)", "", nil}, // it is over
	} {
		synctest.Test(t, func(t *testing.T) {
			f, begin := &function{}, time.Now()
			timer := startSchedule(t, eventsource.Schedule{Function: f, Expression: tt.expression, Timezone: tt.zone})
			after(100 * time.Hour)
			var got []time.Duration
			for _, at := range f.times() {
				got = append(got, at.Sub(begin))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", tt.expression, tt.zone, diff)
			}
			if err := timer.Tick(t.Context()); err != nil || len(f.got()) != len(tt.want)+1 {
				t.Errorf("Tick: %v, %d runs", err, len(f.got()))
			}
		})
	}
}

func TestTickReturnsTheFunctionsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{answer: func(context.Context, int, []string) ([]byte, error) { return nil, crash() }}
		w := &watcher{}
		timer := startSchedule(t, eventsource.Schedule{
			Function: f, Expression: "rate(1 day)", Disabled: true,
			Hooks: w.hooks(),
		})
		if err := timer.Tick(t.Context()); err == nil || !strings.Contains(err.Error(), "errorString") {
			t.Errorf("Tick: %v", err)
		} else if _, ok := errors.AsType[*lambdarun.FunctionError](err); !ok {
			t.Errorf("Tick: %v is no FunctionError", err)
		}
		if invoked := w.invocations(); len(invoked) != 1 || invoked[0].Err == nil {
			t.Errorf("invocations %+v", invoked)
		}
		after(48 * time.Hour)
		if n := len(f.got()); n != 1 {
			t.Errorf("%d runs of a disabled schedule, want the tick", n)
		}
	})
}

func TestScheduleEvents(t *testing.T) {
	for name, s := range map[string]eventsource.Schedule{
		"schedule":      {Name: "sweep"},
		"schedule_rule": {Name: "sweep", Rule: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &function{}
			s.Function, s.Expression = f, "rate(90 minutes)"
			startSchedule(t, s)
			after(2 * time.Hour)
			wantGolden(t, name+".json", steady(f.payload(0)))
			var event events.EventBridgeEvent
			if err := json.Unmarshal(f.payload(0), &event); err != nil {
				t.Fatal(err)
			}
			if want := time.Date(2000, 1, 1, 1, 30, 0, 0, time.UTC); !event.Time.Equal(want) || event.DetailType != "Scheduled Event" {
				t.Errorf("got %+v", event)
			}
		})
	}
}

func TestScheduleInputIsThePayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Every: time.Hour, Input: []byte(`{"sweep":true}`)})
		if err := timer.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := string(f.payload(0)); got != `{"sweep":true}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestScheduleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &function{answer: func(ctx context.Context, _ int, _ []string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		timer, err := eventsource.Schedule{Function: f, Every: time.Minute}.Start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		after(90 * time.Second)
		begin := time.Now()
		cancel()
		if err := timer.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 0 || len(f.got()) != 1 {
			t.Errorf("took %s, %d runs", took, len(f.got()))
		}
	})
}

func TestScheduleStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                              "neither rate(…) nor cron(…) nor at(…)",
		"every(5 minutes)":              "neither rate(…) nor cron(…) nor at(…)",
		"at(2026-11-21T10:00)":          "at(…) has a time as 2026-11-21T10:00:00",
		"at(2026-11-21T10:00:00Z)":      "at(…) has a time as 2026-11-21T10:00:00",
		"at(2026-02-30T10:00:00)":       "at(…) has a time as 2026-11-21T10:00:00",
		"rate(5)":                       "a rate is",
		"rate(0 minutes)":               "a rate is",
		"rate(-1 minutes)":              "a rate is",
		"rate(5 seconds)":               "a rate is",
		"rate(1.5 hours)":               "a rate is",
		"rate(5  minutes)":              "a rate is",
		"cron(0 10 * * ?)":              "5 fields, want 6",
		"cron(0 10 * * * *)":            "must be ?, and not both",
		"cron(0 10 ? * ? *)":            "must be ?, and not both",
		"cron(0 10 ? * 0 *)":            "1 to 7",
		"cron(0 10 ? * 8 *)":            "1 to 7",
		"cron(0 10 ? * 12 *)":           "1 to 7",
		"cron(0 25 * * ? *)":            "a field is wrong",
		"cron(0/30 20-2 ? * MON-FRI *)": "a form that isn't known here",
	} {
		s := eventsource.Schedule{Function: &function{}, Expression: expression}
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for expression, want := range map[string]string{
		"rate(1 minutes)":         "a rate of 1 has its unit in the singular",
		"rate(1 days)":            "a rate of 1 has its unit in the singular",
		"rate(5 minute)":          "in the plural",
		"at(2026-11-21T10:00:00)": "a rule has no at(…)",
	} {
		s := eventsource.Schedule{Function: &function{}, Expression: expression, Rule: true, Name: "nightly"}
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rule with %s: got %v, want %s", expression, err, want)
		}
		s.Rule = false // EventBridge Scheduler takes them
		timer, err := s.Start(t.Context())
		if err != nil {
			t.Errorf("schedule with %s: %v", expression, err)
			continue
		}
		_ = timer.Close()
	}
	for want, s := range map[string]eventsource.Schedule{
		"no Function":            {Every: time.Minute},
		"interval -1s":           {Function: &function{}, Every: -time.Second},
		"neither rate":           {Function: &function{}, Expression: "often", Every: time.Minute},
		"unknown time zone Moon": {Function: &function{}, Expression: "cron(0 10 * * ? *)", Timezone: "Moon"},
	} {
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
