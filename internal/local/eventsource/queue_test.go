package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

func wantLeft(t *testing.T, q *fakeQueue, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, q.left()); diff != "" {
		t.Errorf("left in the queue, with receives (-want +got):\n%s", diff)
	}
}

func TestQueueDeliversAndDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		for i := range 12 {
			api.send(strconv.Itoa(i))
		}
		startQueue(t, api, f, eventsource.Queue{})
		synctest.Wait()
		if got := f.got(); len(got) != 2 || len(got[0])+len(got[1]) != 12 || max(len(got[0]), len(got[1])) != 10 {
			t.Errorf("got the batches %v, want 2 and 10", got)
		}
		wantLeft(t, api, map[string]int{})
		after(10 * time.Second)
		api.send("later")
		synctest.Wait() // a long poll sees it at once
		if got := f.got(); len(got) != 3 || len(got[2]) != 1 {
			t.Errorf("got %v, want later at last", got)
		}
	})
}

func TestQueueGathersForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		startQueue(t, api, f, eventsource.Queue{BatchSize: 25, MaximumBatchingWindow: 5500 * time.Millisecond})
		begin := time.Now()
		api.send(slices.Repeat([]string{"a"}, 12)...)
		after(3 * time.Second)
		api.send(slices.Repeat([]string{"b"}, 3)...)
		after(3 * time.Second)
		if got := f.got(); len(got) != 1 || len(got[0]) != 15 {
			t.Fatalf("got %v, want one batch of 15", got)
		}
		if got := f.times()[0].Sub(begin); got < 5500*time.Millisecond || got > 5700*time.Millisecond {
			t.Errorf("delivered after %s, want 5.5s", got)
		}
		api.send(slices.Repeat([]string{"c"}, 30)...) // a full batch doesn't wait
		after(100 * time.Millisecond)
		if got := f.got(); len(got) != 2 || len(got[1]) != 25 {
			t.Errorf("got %d batches, the last of %d, want 2, of 25", len(got), len(got[len(got)-1]))
		}
		after(6 * time.Second)
		wantLeft(t, api, map[string]int{})
		if n := api.count("ReceiveMessage"); n > 70 {
			t.Errorf("%d receives in 12 s: whole seconds are what the API knows, and the rest is no busy loop", n)
		}
	})
}

func TestQueueLeavesWhatFailed(t *testing.T) {
	all := map[string]int{"1": 1, "2": 1, "3": 1}
	for name, tt := range map[string]struct {
		answer answer
		report bool
		want   map[string]int
	}{
		"all, by an error":                    {failing("2"), false, all},
		"the reported ones":                   {reportingIDs("id-2"), true, map[string]int{"2": 1}},
		"all, by an unknown id":               {reportingIDs("id-2", "id-9"), true, all},
		"all, by an empty id":                 {reportingIDs(""), true, all},
		"none of those that aren't asked for": {reportingIDs("id-2"), false, map[string]int{}},
		"none":                                {reportingIDs(), true, map[string]int{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f, w := newFakeQueue(), &function{answer: tt.answer}, &watcher{}
			api.send("1", "2", "3")
			startQueue(t, api, f, eventsource.Queue{ReportBatchItemFailures: tt.report, Hooks: w.hooks()})
			after(29 * time.Second)
			if diff := cmp.Diff(tt.want, api.left()); diff != "" {
				t.Errorf("%s: left (-want +got):\n%s", name, diff)
			}
			if invoked := w.invocations(); len(invoked) != 1 || invoked[0].Records != 3 || invoked[0].Failed != len(tt.want) {
				t.Errorf("%s: got %+v, want 3 records of which %d failed", name, invoked, len(tt.want))
			}
			after(2 * time.Second) // visible again
			if got := f.got(); len(tt.want) > 0 && (len(got) != 2 || len(got[1]) != len(tt.want)) {
				t.Errorf("%s: got %v after the visibility timeout, want %d", name, got, len(tt.want))
			}
		})
	}
}

func reportingIDs(ids ...string) answer {
	items := []map[string]string{}
	for _, id := range ids {
		items = append(items, map[string]string{"itemIdentifier": id})
	}
	return func(context.Context, int, []string) ([]byte, error) {
		return json.Marshal(map[string]any{"batchItemFailures": items})
	}
}

// What no filter wants is deleted. Alternatives may be about the body as well, also in part and nested.
func TestQueueFilters(t *testing.T) {
	all := []string{`{"kind":"a"}`, `{"kind":"b"}`, `{"kind":"c"}`, `5`, `plain`}
	for filter, want := range map[string][]string{
		`{"body":{"kind":["a"]}}`:                                                             all[:1],
		`{"$or":[{"body":{"kind":["a"]}},{"body":["plain"]}]}`:                                {all[0], all[4]},
		`{"$or":[{"body":{"kind":["a"]}},{"eventSource":["aws:sqs"]}]}`:                       all,
		`{"$or":[{"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["c"]}}]},{"body":["5"]}]}`:  {all[0], all[2]},
		`{"eventSource":["aws:sns"],"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["b"]}}]}`: nil,
		`{"body":{"$or":[{"kind":["a"]},{"kind":["b"]}]}}`:                                    all[:2],
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f, w := newFakeQueue(), &function{answer: failing(all...)}, &watcher{}
			api.send(all...)
			startQueue(t, api, f, eventsource.Queue{Filters: []string{filter}, Hooks: w.hooks()})
			synctest.Wait()
			if diff := cmp.Diff(want, slices.Concat(f.got()...)); diff != "" || len(api.left()) != len(want) {
				t.Errorf("%s: %d are left, want %d (-want +got):\n%s", filter, len(api.left()), len(want), diff)
			}
			wantFiltered(t, w, len(all)-len(want))
		})
	}
}

func TestQueueKeepsToItsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		api := newFakeQueue()
		f := &function{answer: func(context.Context, int, []string) ([]byte, error) {
			<-release
			return nil, nil
		}}
		api.send("1", "2", "3")
		startQueue(t, api, f, eventsource.Queue{BatchSize: 1, MaximumConcurrency: 2})
		after(10 * time.Second)
		// What can't be delivered stays in the queue, its visibility timeout unused.
		wantLeft(t, api, map[string]int{"1": 1, "2": 1, "3": 0})
		close(release)
		after(time.Second)
		wantLeft(t, api, map[string]int{})
	})
}

// Messages over what an event holds aren't lost.
func TestQueueKeepsToThePayloadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		for i := range 10 {
			api.send(strconv.Itoa(i) + strings.Repeat("\n", 500_000)) // two bytes each in JSON
		}
		startQueue(t, api, f, eventsource.Queue{MaximumConcurrency: 1})
		after(time.Second)
		if got := f.got(); len(got) != 2 || len(got[0])+len(got[1]) != 10 || len(f.payload(0)) > lambdarun.MaxRequestBytes {
			t.Errorf("got %d batches, want ten messages in 2", len(got))
		}
	})
}

// A throttled batch comes again after the visibility timeout.
func TestQueueSlowsDownWhenThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{answer: refusing(9, lambdarun.ErrThrottled, nil)}
		api.send("1", "2", "3")
		startQueue(t, api, f, eventsource.Queue{BatchSize: 1, MaximumConcurrency: 1})
		after(time.Second)
		wantGot(t, f, "1|2")
		wantLeft(t, api, map[string]int{"1": 1, "2": 1, "3": 0})
	})
}

func TestPauseOfAQueueGivesBackWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		m := startQueue(t, api, f, eventsource.Queue{MaximumBatchingWindow: 10 * time.Second})
		api.send("1", "2")
		after(2 * time.Second)
		m.Pause()
		after(2 * time.Second) // a long poll later, not a window
		wantLeft(t, api, map[string]int{"1": 1, "2": 1})
		receives := api.count("ReceiveMessage")
		after(time.Minute)
		if n := api.count("ReceiveMessage"); n != receives || api.count("ChangeMessageVisibilityBatch") != 1 {
			t.Errorf("%d receives of a paused queue, given back %d times, want none and once", n-receives, api.count("ChangeMessageVisibilityBatch"))
		}
		m.Resume()
		after(11 * time.Second)
		wantGot(t, f, "1 2")
		wantLeft(t, api, map[string]int{})
	})
}

func TestQueueSurvivesAnEndpointThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, w, down := newFakeQueue(), &function{}, &watcher{}, true
		api.fail = func(string) error {
			if down {
				return errors.New("connection refused")
			}
			return nil
		}
		startQueue(t, api, f, eventsource.Queue{Hooks: w.hooks()})
		api.send("1")
		after(10 * time.Minute)
		if n, told := api.count("ReceiveMessage"), w.errors(); n < 100 || n > 140 || len(told) == 0 {
			t.Errorf("%d tries in ten minutes, want about 120; told %v, want the refusal", n, told)
		}
		down = false
		after(10 * time.Second)
		wantGot(t, f, "1")
	})
}

// A message that couldn't be deleted is told of, and comes again.
func TestQueueTellsWhatItCouldNotDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, w := newFakeQueue(), &function{}, &watcher{}
		api.failOne = func(handle string) bool { return handle == "handle-2" }
		api.send("1", "2")
		startQueue(t, api, f, eventsource.Queue{Hooks: w.hooks()})
		synctest.Wait()
		wantLeft(t, api, map[string]int{"2": 1})
		if told := w.errors(); len(told) != 1 || !strings.Contains(told[0].Error(), "1 failed: ReceiptHandleIsInvalid") {
			t.Errorf("told %v, want one invalid handle", told)
		}
		after(31 * time.Second)
		wantGot(t, f, "1 2|2")
	})
}

func TestQueueStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := eventsource.Queue{Function: &function{}, API: newFakeQueue(), URL: queueURL, ARN: queueARN}
	for want, change := range map[string]func(*eventsource.Queue){
		"no Function":                         func(q *eventsource.Queue) { q.Function = nil },
		"no API":                              func(q *eventsource.Queue) { q.API = nil },
		"no URL":                              func(q *eventsource.Queue) { q.URL = "" },
		"no ARN":                              func(q *eventsource.Queue) { q.ARN = "" },
		"BatchSize 10001":                     func(q *eventsource.Queue) { q.BatchSize, q.MaximumBatchingWindow = 10_001, time.Second },
		"BatchSize 11: above 10":              func(q *eventsource.Queue) { q.BatchSize = 11 },
		"BatchSize 11: a FIFO queue":          func(q *eventsource.Queue) { q.BatchSize, q.ARN = 11, queueARN+".fifo" },
		"MaximumBatchingWindow: a FIFO queue": func(q *eventsource.Queue) { q.MaximumBatchingWindow, q.ARN = time.Second, queueARN+".fifo" },
		"MaximumConcurrency 1001":             func(q *eventsource.Queue) { q.MaximumConcurrency = 1001 },
		"unknown operator":                    func(q *eventsource.Queue) { q.Filters = []string{`{"a":[{"like":"x"}]}`} },
	} {
		q := good
		change(&q)
		if _, err := q.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
