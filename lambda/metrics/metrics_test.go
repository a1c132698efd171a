package metrics_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/meter"
	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/emf"
	"github.com/samekey/samekey/lambda/metrics"
)

const app = "shop"

// parsed reads a log, each line of which must be in the form that CloudWatch reads.
func parsed(t *testing.T, log []byte) []emf.Line {
	t.Helper()
	lines, err := emf.Parse(log)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestEachMetricHasANameAUnitAndAMeaning(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, m := range metrictable.All() {
		if m.Name == "" || seen[m.Name] || m.Unit == "" || m.Source == "" || m.Meaning == "" {
			t.Errorf("%+v lacks something, or is there twice", m)
		}
		seen[m.Name] = true
		// What a sweep or a count finds is stated anew; runs and what happens add up.
		if states := (m.Source == "sweep" || m.Source == "count") && m.Name != "SweepRuns" && m.Name != "SweepFailed"; m.Gauge != states {
			t.Errorf("%s is a gauge: %t", m.Name, m.Gauge)
		}
	}
	if len(seen) > 100 {
		t.Errorf("%d metrics are too many for a line", len(seen))
	}
}

// What waits for people is counted under a metric of its reason, with an alarm.
func TestEachReasonToWaitIsCounted(t *testing.T) {
	t.Parallel()
	of := make(map[string]metrictable.Metric)
	for _, m := range metrictable.All() {
		of[m.Name] = m
	}
	for _, r := range state.Reasons {
		m, people := of[r.Metric], slices.Contains(stream.WaitingReasons(), r.Reason)
		if people && (m.Source != "count" || m.Alarm.Name != m.Name) || !people && r.Metric != "" && m.Source != "sweep" {
			t.Errorf("%s is counted under %q: %+v", r.Reason, r.Metric, m)
		}
	}
}

// A function that logs only its warnings still has its metrics.
func TestLinesPassAFilterOfWarnings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := metrics.New(&out, app)
	m.StreamHooks().Delivered(t.Context(), jobs.Delivery{})
	var line struct {
		Level     string
		Timestamp time.Time
		AWS       struct{ Timestamp int64 } `json:"_aws"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Level != "WARN" || line.Timestamp.UnixMilli() != line.AWS.Timestamp {
		t.Errorf("the line is %s", out.Bytes())
	}
}

// Properties can't take the place of the metric, nor of a dimension.
func TestPropertiesDontReplaceTheMetric(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).Count("Booked", 3, map[string]any{
		"Booked": "x", "App": "x", "_aws": "x", "Route": "x", "ride": "r \" é", "none": nil, "wrong": math.NaN(),
	})
	line := parsed(t, log.Bytes())[0]
	if line.Sum("Booked") != 3 || line.Units["Booked"] != "Count" || line.Dimensions[0]["App"] != app || line.Properties["ride"] != "r \" é" || bytes.Contains(log.Bytes(), []byte("Route")) {
		t.Errorf("got %s", &log)
	}
}

func TestSweptCountsWhatWasFound(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).StreamHooks().Swept(t.Context(), &stream.Report{
		Overdue: true, OpenAge: 600, PassAge: 60, Coverage: 0.25,
		ByReason: map[state.Reason]stream.Tally{
			state.ReasonOpen: {Count: 1}, state.ReasonNoRequest: {Count: 2}, state.ReasonExpiring: {Count: 4},
			state.ReasonStuck: {Count: 8}, state.ReasonParked: {Count: 16}, state.ReasonUnreadable: {Count: 32},
			state.ReasonUndelivered: {Count: 64}, state.ReasonKept: {Count: 128}, state.ReasonBlocked: {Count: 256}, state.ReasonUnknown: {Count: 512},
		},
	}, errors.New("some failed"))
	lines := parsed(t, log.Bytes())
	want := map[string][]float64{
		"Abandoned": {3}, "Undelivered": {64}, "SweepOverdue": {1}, "OpenAge": {600},
		"SweepRuns": {1}, "SweepFailed": {1}, "SweepCoverage": {25}, "SweepAge": {60},
	}
	if len(lines) != 1 {
		t.Fatalf("%d lines, want one", len(lines))
	}
	if diff := cmp.Diff(want, lines[0].Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	log.Reset()
	metrics.New(&log, app).StreamHooks().Swept(t.Context(), &stream.Report{}, nil)
	if line := parsed(t, log.Bytes())[0]; line.Sum("SweepRuns") != 1 || line.Sum("SweepFailed")+line.Sum("SweepOverdue") != 0 {
		t.Errorf("a run without a fault: %s", &log)
	}
}

// A gauge states everything each time, also that nothing waits: otherwise its alarm
// would end with the data.
func TestCountedStatesAllGauges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		counted stream.Counted
		want    []float64
	}{
		"nothing waits": {stream.Counted{}, []float64{0, 0, 0, 0, 0, 0, 0}},
		"some wait": {stream.Counted{Count: 31, Oldest: 600, ByReason: map[state.Reason]stream.Tally{
			state.ReasonUnknown: {Count: 1}, state.ReasonStuck: {Count: 2}, state.ReasonBlocked: {Count: 4}, state.ReasonParked: {Count: 8}, state.ReasonUnreadable: {Count: 16},
		}}, []float64{31, 1, 2, 4, 8, 16, 600}},
	} {
		var log bytes.Buffer
		metrics.New(&log, app).StreamHooks().Counted(t.Context(), &tt.counted)
		lines, want := parsed(t, log.Bytes()), make(map[string][]float64)
		for i, gauge := range []string{
			"Waiting", "WaitingUnknown", "WaitingStuck", "WaitingBlocked", "WaitingParked", "WaitingUnreadable", "WaitingAge",
		} {
			want[gauge] = []float64{tt.want[i]}
		}
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines, want one", name, len(lines))
		}
		if diff := cmp.Diff(want, lines[0].Values); diff != "" || lines[0].Units["WaitingAge"] != "Seconds" {
			t.Errorf("%s: values (-want +got):\n%s", name, diff)
		}
	}
}

// A request with more phases than a line may have values has several lines, which lose
// none.
func TestALineHasAtMostAHundredValues(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := idem.Summary{Record: "r", Route: "route", Happened: []idem.Event{{Name: "Claimed"}}}
	for i := range 250 {
		s.Happened = append(s.Happened, idem.Event{Name: "Committed", Phase: fmt.Sprint("p", i)})
	}
	metrics.New(&log, app).Hooks().Ended(t.Context(), s)
	lines, n := parsed(t, log.Bytes()), 0
	for i := range lines {
		n += len(lines[i].Values["PhaseDuration"])
	}
	if n != 250 || len(lines) != 3 || emf.Sum(lines, "Claimed") != 1 || emf.Sum(lines, "Requests") != 1 {
		t.Errorf("%d values in %d lines", n, len(lines))
	}
}

// Only so many routes have metrics of their own.
func TestRoutesAreBounded(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int][]string{0: {"", "", "", "", ""}, 2: {"POST /a", "none", "POST /a", "other", "other"}, 3: {"POST /a", "none", "POST /a", "caf? ?", "other"}} {
		var log bytes.Buffer
		m := metrics.New(&log, app, func(o *metrics.Options) { o.Routes = limit })
		for _, route := range []string{"POST /a", "", "POST /a", "café \n", strings.Repeat("x", 2000)} {
			m.Hooks().Ended(t.Context(), idem.Summary{Record: "r", Route: route})
		}
		var got []string
		for _, line := range parsed(t, log.Bytes()) {
			got = append(got, line.Dimensions[len(line.Dimensions)-1]["Route"])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d routes (-want +got):\n%s", limit, diff)
		}
	}
}

type invokes func(context.Context) error

func (fn invokes) Invoke(ctx context.Context, _ []byte) ([]byte, error) { return nil, fn(ctx) }

// All events of an invocation have one line, also if it panics, and concurrent ones. What
// happens after its end, and outside of an invocation, has lines of its own; so has the
// invocation of another Metrics.
func TestAnInvocationHasOneLine(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"returns", "panics", "fails"} {
		var log, others bytes.Buffer
		m, other := metrics.New(&log, app), metrics.New(&others, app)
		var later context.Context
		func() {
			defer func() { _ = recover() }()
			_, err := m.Wrap(invokes(func(ctx context.Context) error {
				later = ctx
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						m.StreamHooks().Parked(ctx, stream.Entry{Record: "record-1", ID: "id"})
						m.StoreHooks().Called(ctx, store.Call{Op: "UpdateItem", WriteUnits: 2, Fault: store.Throttled, Retries: 1})
						other.StreamHooks().Parked(ctx, stream.Entry{})
					})
				}
				wg.Wait()
				m.StoreHooks().Called(meter.With(ctx, new(meter.Meter)), store.Call{}) // a request's
				switch how {
				case "panics":
					panic("broken")
				case "fails":
					return errors.New("failed")
				}
				return nil
			})).Invoke(t.Context(), nil)
			if (err != nil) != (how == "fails") {
				t.Errorf("%s: %v", how, err)
			}
		}()
		lines := parsed(t, log.Bytes())
		want := map[string][]float64{
			"Parked": {20}, "StoreCalls": {20}, "WriteUnits": {40}, "StoreThrottled": {20}, "StoreRetries": {20},
		}
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines, want one", how, len(lines))
		}
		if diff := cmp.Diff(want, lines[0].Values); diff != "" {
			t.Errorf("%s: values (-want +got):\n%s", how, diff)
		}
		if records, _ := lines[0].Properties["records"].([]any); len(records) != 1 || records[0] != "record-1" {
			t.Errorf("%s: the line names %v", how, lines[0].Properties)
		}
		if n := len(parsed(t, others.Bytes())); n != 20 {
			t.Errorf("%s: another's metrics have %d lines, want 20", how, n)
		}
		m.StreamHooks().Parked(later, stream.Entry{})
		if n := len(parsed(t, log.Bytes())); n != 2 {
			t.Errorf("%s: %d lines after a late event, want 2", how, n)
		}
	}
	unwritten := writes(func([]byte) { t.Error("an invocation without events is written") })
	if _, err := metrics.New(unwritten, app).Wrap(invokes(func(context.Context) error { return nil })).Invoke(t.Context(), nil); err != nil {
		t.Errorf("an invocation without events: %v", err)
	}
}

type writes func([]byte)

func (fn writes) Write(b []byte) (int, error) {
	fn(b)
	return len(b), nil
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"no writer": func() { metrics.New(nil, app) },
		"no app":    func() { metrics.New(new(bytes.Buffer), "") },
		"routes":    func() { metrics.New(new(bytes.Buffer), app, func(o *metrics.Options) { o.Routes = -1 }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}

// A value has no more digits than it needs, and no exponent.
func TestValuesAreNumbers(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	metrics.New(&log, app).Count("Huge", math.MaxInt32, nil)
	if !bytes.Contains(log.Bytes(), []byte(`"Huge":2147483647`)) {
		t.Errorf("got %s", &log)
	}
}
