package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/lambda/metrics"
)

// said is a line's values and the properties that it was given.
type said struct {
	Values     map[string][]float64
	Properties map[string]any
}

// only returns what the only line of a log says.
func only(t *testing.T, log *bytes.Buffer) said {
	t.Helper()
	lines := parsed(t, log.Bytes())
	if len(lines) != 1 {
		t.Fatalf("%d lines: %s", len(lines), log)
	}
	log.Reset()
	s := said{lines[0].Values, map[string]any{}}
	for name, v := range lines[0].Properties {
		if name != "level" && name != "timestamp" {
			s.Properties[name] = v
		}
	}
	return s
}

// The line of a request tells its events once, its phases by their time, and its cost.
func TestLineOfARequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		summary idem.Summary
		want    said
	}{
		"a new request": {
			idem.Summary{
				Record: "r1", ID: "id", Route: "POST /a", Status: 201, Duration: 1500 * time.Microsecond,
				Happened: []idem.Event{{Name: "Claimed"}, {Name: "Committed", Phase: "one", Duration: 2 * time.Millisecond, Jobs: 2}, {Name: "Committed", Phase: "two", Duration: 250 * time.Microsecond}, {Name: "Finished", Jobs: 1}},
				Cost: store.Cost{Calls: 3, Retries: 1, ReadUnits: 0.5, WriteUnits: 4, Faults: map[store.Fault]int{
					store.Throttled: 1, store.Conflict: 2, store.Unknown: 3, store.Denied: 4, store.Invalid: 5,
				}},
			},
			said{
				map[string][]float64{
					"Requests": {1}, "Duration": {1.5}, "Claimed": {1}, "PhaseDuration": {2, 0.25}, "JobsStaged": {3},
					"StoreCalls": {3}, "StoreRetries": {1}, "ReadUnits": {0.5}, "WriteUnits": {4},
					"StoreThrottled": {1}, "StoreConflict": {2}, "StoreUnknown": {3}, "StoreDenied": {4}, "StoreInvalid": {5},
				},
				map[string]any{
					"record": "r1", "operation": "id", "route": "POST /a", "events": "Claimed Committed Committed Finished", "status": 201.0, "phases": map[string]any{"one": 2.0, "two": 0.25},
				},
			},
		},
		"a completer's": {
			idem.Summary{Record: "r1", Resumed: true, Happened: []idem.Event{{Name: "TakenOver"}, {Name: "Finished"}}, Cost: store.Cost{Calls: 1}},
			said{map[string][]float64{"Duration": {0}, "Resumed": {1}, "StoreCalls": {1}}, map[string]any{"record": "r1", "events": "TakenOver Finished"}},
		},
		"a client's retry": {
			idem.Summary{Record: "r1", Happened: []idem.Event{{Name: "TakenOver"}}},
			said{map[string][]float64{"Requests": {1}, "Duration": {0}, "TakenOver": {1}}, map[string]any{"record": "r1", "events": "TakenOver"}},
		},
		"without a key": {
			idem.Summary{Route: "POST /a", Status: 400},
			said{map[string][]float64{"Duration": {0}}, map[string]any{"route": "POST /a", "status": 400.0}},
		},
	} {
		var log bytes.Buffer
		metrics.New(&log, app).Hooks().Ended(t.Context(), tt.summary)
		if diff := cmp.Diff(tt.want, only(t, &log)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is only observed is counted, by what it would have become.
func TestLineOfAnObservedRequest(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		idem.ErrReplay: "Replayed", idem.ErrMismatch: "Mismatch", idem.ErrInFlight: "InFlight", idem.ErrQuota: "Limited", idem.ErrUnavailable: "Failed",
		idem.ErrCorrupt: "Failed", idem.ErrKeyMissing: "Refused", fmt.Errorf("claim: %w", idem.ErrMismatch): "Mismatch",
	} {
		var log bytes.Buffer
		metrics.New(&log, app).Hooks().Observed(t.Context(), idem.Event{Route: "r", Err: err})
		if diff := cmp.Diff(said{map[string][]float64{"Observed": {1}}, map[string]any{"route": "r", "would": want}}, only(t, &log)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// A request that runs without protection is counted once: in ModeOff, which writes no line at the
// end of a request, and in ModeOpen.
func TestUnprotectedRequestsAreCountedOnce(t *testing.T) {
	t.Parallel()
	down := func(context.Context, idemtest.Call) idemtest.Fault { return idemtest.Fault{Err: store.ErrUnknown} }
	for mode, st := range map[idem.Mode]store.Store{idem.ModeOff: nil, idem.ModeOpen: idemtest.Faulty(new(idem.MemoryStore), down)} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			e := idem.New(st, idem.OneScope, func(o *idem.Options) { o.Mode, o.Hooks = mode, metrics.New(&log, app).Hooks() })
			res, err := e.Do(t.Context(), idem.Request{Key: "0123456789012345678901", Route: "r"}, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			})
			if said := only(t, &log); err != nil || res.Status != 201 || len(said.Values["Unprotected"]) != 1 || said.Properties["events"] != "Unprotected" || said.Properties["route"] != "r" {
				t.Errorf("%v: %d, %v, the line has %v", mode, res.Status, err, said)
			}
		})
	}
}

// Each event of streams and tickets has its metric, with the names by which people find it.
func TestLinesOfStreams(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := metrics.New(&log, app)
	h, ctx := m.StreamHooks(), t.Context()
	entry := stream.Entry{Record: "r1", ID: "id", Route: "r", Phase: "p", Job: "j"}
	named := map[string]any{"record": "r1", "operation": "id", "route": "r", "phase": "p", "job": "j"}
	ticket := jobs.Ticket{PK: "pk", Operation: "id", Function: "f"}
	ofTicket := func(more ...any) map[string]any {
		all := map[string]any{"record": ticket.Record()}
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	for name, tt := range map[string]struct {
		tell func()
		want said
	}{
		"Delivered":   {func() { h.Delivered(ctx, jobs.Delivery{Operation: "id", JobID: "j"}) }, said{map[string][]float64{"Delivered": {1}}, map[string]any{"operation": "id", "job": "j"}}},
		"Failed":      {func() { h.Failed(ctx, jobs.Delivery{Operation: "id", JobID: "j"}, errors.New("down")) }, said{map[string][]float64{"DeliveryFailed": {1}}, map[string]any{"operation": "id", "job": "j"}}},
		"Delayed":     {func() { h.Delayed(ctx, ticket) }, said{map[string][]float64{"Delayed": {1}}, ofTicket("operation", "id")}},
		"Queued":      {func() { h.Queued(ctx, ticket) }, said{map[string][]float64{"Queued": {1}}, ofTicket()}},
		"Parked":      {func() { h.Parked(ctx, entry) }, said{map[string][]float64{"Parked": {1}}, named}},
		"MadeStuck":   {func() { h.MadeStuck(ctx, entry) }, said{map[string][]float64{"Stuck": {1}}, named}},
		"ExpiredOpen": {func() { h.ExpiredOpen(ctx, entry) }, said{map[string][]float64{"ExpiredOpen": {1}}, named}},
		"JobLost":     {func() { h.JobLost(ctx, entry) }, said{map[string][]float64{"ExpiredOpen": {1}}, named}},
		"Skipped":     {func() { h.Skipped(ctx, stream.Skipped{Reason: "odd", Record: "r1"}) }, said{map[string][]float64{"Unreadable": {1}}, map[string]any{"record": "r1", "reason": "odd"}}},
		"Tried": {
			func() { h.Tried(ctx, stream.Try{Ticket: ticket, Outcome: "done"}) },
			said{map[string][]float64{"CompleterTries": {1}}, ofTicket("function", "f", "outcome", "done")},
		},
		"Tried, and not mine": {
			func() { h.Tried(ctx, stream.Try{Ticket: ticket, Outcome: "not_mine"}) },
			said{map[string][]float64{"CompleterTries": {1}, "NotMine": {1}}, ofTicket("function", "f", "outcome", "not_mine")},
		},
		"Called": {
			func() { m.StoreHooks().Called(ctx, store.Call{Op: "GetItem", ReadUnits: 1}) },
			said{map[string][]float64{"StoreCalls": {1}, "ReadUnits": {1}}, map[string]any{"call": "GetItem"}},
		},
	} {
		tt.tell()
		if diff := cmp.Diff(tt.want, only(t, &log)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// What was held back is no failure, and a drain's ticket is no try.
	h.Failed(ctx, jobs.Delivery{}, fmt.Errorf("late: %w", jobs.ErrHeldBack))
	ticket.Jobs = true
	h.Tried(ctx, stream.Try{Ticket: ticket, Outcome: "done"})
	if log.Len() > 0 {
		t.Errorf("told of %s", &log)
	}
}

// A line names fifty records at most, each once.
func TestLineOfAnInvocationNamesRecords(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := metrics.New(&log, app)
	_, err := m.Wrap(invokes(func(ctx context.Context) error {
		for i := range 120 {
			m.StreamHooks().Parked(ctx, stream.Entry{Record: fmt.Sprint("r", i/2)})
		}
		m.StreamHooks().Parked(ctx, stream.Entry{})
		return nil
	})).Invoke(t.Context(), nil)
	got := only(t, &log)
	records, _ := got.Properties["records"].([]any)
	if err != nil || len(records) != 50 || records[0] != "r0" || records[49] != "r49" || got.Values["Parked"][0] != 121 {
		t.Errorf("%v, %d records of %v: %v", err, len(records), got.Values, records)
	}
	_, err = m.Wrap(invokes(func(ctx context.Context) error {
		m.StoreHooks().Called(ctx, store.Call{})
		return nil
	})).Invoke(t.Context(), nil)
	if diff := cmp.Diff(said{map[string][]float64{"StoreCalls": {1}}, map[string]any{}}, only(t, &log)); diff != "" || err != nil {
		t.Errorf("a line of no record: %v (-want +got):\n%s", err, diff)
	}
}

// A metric of the application's own has its properties as they are, whatever they hold, and
// the name of the application is a dimension that CloudWatch takes.
func TestLineOfTheApplication(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	texts := []string{"", "plain ~", "\x7f", `\`, `"`, `a "quoted" \ text`, "line\nfeed", "é\u2028", "tab\t"}
	properties := map[string]any{"none": nil}
	for i, text := range texts {
		properties[fmt.Sprint("p", i)] = text
		properties["n"+text], properties[text+"\xff"] = text, "a name that is no UTF-8"
	}
	properties[`"`] = `"`
	metrics.New(&log, "~"+strings.Repeat("é", 200)).Count(`Odd "name"`, -2, properties)
	line := parsed(t, log.Bytes())[0]
	if line.Sum(`Odd "name"`) != -2 || line.Dimensions[0]["App"] != "~"+strings.Repeat("?", 125) {
		t.Errorf("%s", &log)
	}
	for i, text := range texts {
		if value, named := line.Properties[fmt.Sprint("p", i)], line.Properties["n"+text]; value != text || named != text {
			t.Errorf("%q became %q, and by its name %q", text, value, named)
		}
	}
	if line.Properties[`"`] != `"` || !utf8.Valid(log.Bytes()) {
		t.Errorf("names became %s", &log)
	}
	log.Reset()
	metrics.New(&log, app).Count("N", 1, map[string]any{"bad": math.Inf(1), "level": "INFO", "timestamp": "never"})
	line = parsed(t, log.Bytes())[0]
	if line.Namespace != "Samekey" || line.Properties["level"] != "WARN" || line.Properties["bad"] != nil {
		t.Errorf("%s", &log)
	}
}
