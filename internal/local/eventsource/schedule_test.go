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

// A bubble begins on Saturday, 1 January 2000, at midnight UTC.
func TestScheduleRunsInTime(t *testing.T) {
	for _, tt := range []struct{ expression, zone, want string }{
		{"rate(1 minute)", "", "2000-01-01T00:01 2000-01-01T00:02"},
		{"rate(2 hours)", "", "2000-01-01T02:00 2000-01-01T04:00"},
		{"rate(1 day)", "", "2000-01-02T00:00"},
		{"cron(0 10 * * ? *)", "", "2000-01-01T10:00 2000-01-02T10:00"},
		{"cron(15 12 * * ? *)", "Europe/Berlin", "2000-01-01T11:15 2000-01-02T11:15"},
		{"cron(0/15 * * * ? *)", "", "2000-01-01T00:15 2000-01-01T00:30 2000-01-01T00:45 2000-01-01T01:00"},
		// Sunday is 1, Monday 2.
		{"cron(0 9 ? * 1 *)", "", "2000-01-02T09:00 2000-01-09T09:00"},
		{"cron(0 9 ? * 2-3 *)", "", "2000-01-03T09:00 2000-01-04T09:00 2000-01-10T09:00"},
		{"cron(0 9 ? * MON,7 *)", "", "2000-01-01T09:00 2000-01-03T09:00 2000-01-08T09:00"},
		{"cron(0 9 ? * 3#1 *)", "", "2000-01-04T09:00 2000-02-01T09:00"},
		{"cron(0 9 ? * 6L *)", "", "2000-01-28T09:00 2000-02-25T09:00"},
		{"cron(0 9 L FEB ? *)", "", "2000-02-29T09:00 2001-02-28T09:00"},
		{"cron(0 9 1 1 ? 2000-2001)", "", "2000-01-01T09:00 2001-01-01T09:00"},
		{"cron(0 0 1 1 ? 1999)", "", ""},
		{"at(2000-01-01T10:00:00)", "Europe/Berlin", "2000-01-01T09:00"},
		{"at(1999-12-31T23:59:59)", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &function{}
			timer := startSchedule(t, eventsource.Schedule{Function: f, Expression: tt.expression, Timezone: tt.zone})
			const minute = "2006-01-02T15:04"
			end := time.Now().Add(24 * time.Hour)
			if times := strings.Fields(tt.want); len(times) > 0 {
				last, err := time.Parse(minute, times[len(times)-1])
				if err != nil {
					t.Fatal(err)
				}
				end = last
			}
			after(time.Until(end) + time.Second)
			var got []string
			for _, at := range f.times() {
				got = append(got, at.UTC().Format(minute))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s %s: got %v, want %s", tt.expression, tt.zone, got, tt.want)
			}
			if err := timer.Tick(t.Context()); err != nil || len(f.got()) != len(got)+1 {
				t.Errorf("%s: Tick: %v, %d runs, want %d", tt.expression, err, len(f.got()), len(got)+1)
			}
		})
	}
}

func TestSchedulePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Expression: "rate(1 day)", Every: time.Minute})
		after(90 * time.Second)
		timer.Pause()
		after(10 * time.Minute)
		if err := timer.Tick(t.Context()); err != nil || len(f.got()) != 2 {
			t.Errorf("Tick while paused: %v, %d runs, want 2", err, len(f.got()))
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
		if waited := time.Since(begin); waited != 280*time.Second || len(f.got()) != 5 {
			t.Errorf("Tick returned after %s and %d runs, want its own run alone, 280s and 5", waited, len(f.got()))
		}
	})
}

// What the clock begins goes another way than a Tick, which tells the error of one
// run: it may be tried again.
func TestScheduleHasItsOwnInvoker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, retried := &function{answer: failing()}, &function{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Async: retried, Every: time.Minute})
		after(90 * time.Second)
		if err := timer.Tick(t.Context()); err != nil || len(f.got()) != 1 || len(retried.got()) != 1 {
			t.Errorf("%v; %d ticks, %d by the clock, want one each", err, len(f.got()), len(retried.got()))
		}
	})
}

func TestTickReturnsTheFunctionsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := &function{answer: refusing(1, crash(), nil)}, &watcher{}
		timer := startSchedule(t, eventsource.Schedule{Function: f, Expression: "rate(1 day)", Disabled: true, Hooks: w.hooks()})
		err := timer.Tick(t.Context())
		if _, ok := errors.AsType[*lambdarun.FunctionError](err); !ok {
			t.Errorf("Tick: got %v, want the function's error", err)
		}
		if invoked := w.invocations(); len(invoked) != 1 || invoked[0].Err == nil {
			t.Errorf("got the invocations %+v, want one that failed", invoked)
		}
		after(48 * time.Hour)
		if n := len(f.got()); n != 1 {
			t.Errorf("%d runs of a disabled schedule, want the tick", n)
		}
	})
}

func TestScheduleEvents(t *testing.T) {
	for _, tt := range []struct {
		s    eventsource.Schedule
		want string
	}{
		{eventsource.Schedule{Name: "sweep"}, `"source":"aws.scheduler"`},
		{eventsource.Schedule{Name: "sweep", Rule: true}, `"source":"aws.events"`},
		{eventsource.Schedule{Input: []byte(`{"sweep":true}`)}, `{"sweep":true}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &function{}
			tt.s.Function, tt.s.Expression = f, "rate(90 minutes)"
			startSchedule(t, tt.s)
			after(2 * time.Hour)
			if got := string(f.payload(0)); !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			var event events.EventBridgeEvent
			if err := json.Unmarshal(f.payload(0), &event); err != nil {
				t.Fatal(err)
			}
			at := time.Date(2000, 1, 1, 1, 30, 0, 0, time.UTC)
			if tt.s.Input == nil && (!event.Time.Equal(at) || event.DetailType != "Scheduled Event" || !strings.Contains(event.Resources[0], "sweep")) {
				t.Errorf("got %+v, want a scheduled event of sweep at %v", event, at)
			}
		})
	}
}

func TestScheduleStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                              "neither rate(…) nor cron(…) nor at(…)",
		"every(5 minutes)":              "neither rate(…) nor cron(…) nor at(…)",
		"at(2026-11-21T10:00)":          "at(…) has a time as 2026-11-21T10:00:00",
		"rate(0 minutes)":               "a rate is",
		"rate(5 seconds)":               "a rate is",
		"cron(0 10 * * ?)":              "5 fields, want 6",
		"cron(0 10 * * * *)":            "must be ?",
		"cron(0 10 ? * ? *)":            "must be ?",
		"cron(0 10 ? * 8 *)":            "1 to 7",
		"cron(0 25 * * ? *)":            "a field is wrong",
		"cron(0/30 20-2 ? * MON-FRI *)": "a form that samekey local",
	} {
		s := eventsource.Schedule{Function: &function{}, Expression: expression}
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for want, s := range map[string]eventsource.Schedule{
		"no Function":            {Every: time.Minute},
		"interval -1s":           {Function: &function{}, Every: -time.Second},
		"unknown time zone Moon": {Function: &function{}, Expression: "cron(0 10 * * ? *)", Timezone: "Moon"},
		"a singular unit":        {Function: &function{}, Expression: "rate(1 days)", Rule: true},
		"a plural unit":          {Function: &function{}, Expression: "rate(5 minute)", Rule: true},
		"a rule has no at(…)":    {Function: &function{}, Expression: "at(2026-11-21T10:00:00)", Rule: true},
	} {
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
