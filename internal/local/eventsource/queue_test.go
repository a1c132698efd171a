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
		startQueue(t, api, f, nil)
		synctest.Wait()
		sizes := []int{}
		for _, batch := range f.got() {
			sizes = append(sizes, len(batch))
		}
		slices.Sort(sizes)
		if !cmp.Equal(sizes, []int{2, 10}) {
			t.Errorf("batches of %v, want 2 and 10", sizes)
		}
		wantLeft(t, api, map[string]int{})
		after(10 * time.Second)
		api.send("later")
		synctest.Wait() // a long poll sees it at once
		if got := f.got(); len(got) != 3 || !cmp.Equal(got[2], []string{"later"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestQueueKeepsToTheBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		api.send("1", "2", "3")
		startQueue(t, api, f, func(q *eventsource.Queue) { q.BatchSize = 1; q.MaximumConcurrency = 1 })
		synctest.Wait()
		wantBatches(t, f, []string{"1"}, []string{"2"}, []string{"3"})
	})
}

func TestQueueGathersForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		startQueue(t, api, f, func(q *eventsource.Queue) { q.BatchSize = 25; q.MaximumBatchingWindow = 5500 * time.Millisecond })
		begin := time.Now()
		api.send(repeated("a", 12)...)
		after(3 * time.Second)
		api.send(repeated("b", 3)...)
		after(2 * time.Second)
		wantBatches(t, f)
		after(time.Second)
		wantBatches(t, f, append(repeated("a", 12), repeated("b", 3)...))
		if got := f.times()[0].Sub(begin); got < 5500*time.Millisecond || got > 5700*time.Millisecond {
			t.Errorf("delivered after %s", got)
		}
		// A batch that is full doesn't wait, and never is larger.
		api.send(repeated("c", 30)...)
		after(100 * time.Millisecond)
		if got := f.got(); len(got) != 2 || len(got[1]) != 25 {
			t.Errorf("got %d batches, the last of %d", len(got), len(got[len(got)-1]))
		}
		after(6 * time.Second)
		wantLeft(t, api, map[string]int{})
	})
}

// Whole seconds are what the API knows; the rest must not be a busy loop.
func TestQueueAsksInReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		startQueue(t, api, f, func(q *eventsource.Queue) { q.MaximumBatchingWindow = 1900 * time.Millisecond })
		after(time.Minute)
		if n := api.count("ReceiveMessage"); n > 61 {
			t.Errorf("%d receives in a minute of an empty queue", n)
		}
		api.send("1")
		begin := api.count("ReceiveMessage")
		after(1900 * time.Millisecond)
		if n := api.count("ReceiveMessage") - begin; n > 12 {
			t.Errorf("%d receives in the window", n)
		}
		wantBatches(t, f, []string{"1"})
	})
}

func TestQueueLeavesWhatFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(context.Context, int, []string) ([]byte, error)
		report bool
		want   map[string]int
	}{
		"all, by an error":                    {failing("2"), true, map[string]int{"1": 1, "2": 1, "3": 1}},
		"all, by an error without reports":    {failing("2"), false, map[string]int{"1": 1, "2": 1, "3": 1}},
		"the reported ones":                   {reportingIDs("id-2"), true, map[string]int{"2": 1}},
		"all, by an unknown id":               {reportingIDs("id-2", "id-9"), true, map[string]int{"1": 1, "2": 1, "3": 1}},
		"all, by an empty id":                 {reportingIDs(""), true, map[string]int{"1": 1, "2": 1, "3": 1}},
		"none of those that aren't asked for": {reportingIDs("id-2"), false, map[string]int{}},
		"none":                                {reportingIDs(), true, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, f := newFakeQueue(), &function{answer: tt.answer}
				api.send("1", "2", "3")
				w := &watcher{}
				startQueue(t, api, f, func(q *eventsource.Queue) {
					q.ReportBatchItemFailures = tt.report
					q.Hooks = w.hooks()
				})
				after(29 * time.Second)
				wantLeft(t, api, tt.want)
				if invoked := w.invocations(); len(invoked) != 1 || invoked[0].Records != 3 || invoked[0].Failed != len(tt.want) {
					t.Errorf("invocations %+v", invoked)
				}
				if len(tt.want) > 0 {
					after(2 * time.Second) // visible again
					if got := f.got(); len(got) != 2 || len(got[1]) != len(tt.want) {
						t.Errorf("after the visibility timeout: %v", got)
					}
				}
			})
		})
	}
}

func reportingIDs(ids ...string) func(context.Context, int, []string) ([]byte, error) {
	items := []map[string]string{}
	for _, id := range ids {
		items = append(items, map[string]string{"itemIdentifier": id})
	}
	return func(context.Context, int, []string) ([]byte, error) {
		return json.Marshal(map[string]any{"batchItemFailures": items})
	}
}

func TestQueueDeletesWhatNoFilterWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{answer: failing(`{"kind":"a"}`)}
		api.send(`{"kind":"a"}`, `{"kind":"b"}`, `plain`)
		w := &watcher{}
		startQueue(t, api, f, func(q *eventsource.Queue) {
			q.Filters = []string{`{"body":{"kind":["a"]}}`}
			q.Hooks = w.hooks()
		})
		synctest.Wait()
		wantBatches(t, f, []string{`{"kind":"a"}`})
		wantLeft(t, api, map[string]int{`{"kind":"a"}`: 1})
		wantFiltered(t, w, 2)
	})
}

// Alternatives may be about the body as well, also in part and nested: what an
// alternative wants is delivered, and not deleted.
func TestQueueFiltersWithAlternatives(t *testing.T) {
	all := []string{`{"kind":"a"}`, `{"kind":"b"}`, `{"kind":"c"}`, `5`, `plain`}
	for filter, want := range map[string][]string{
		`{"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["b"]}}]}`:                                        all[:2],
		`{"$or":[{"body":{"kind":["a"]}},{"body":["plain"]}]}`:                                             {all[0], all[4]},
		`{"$or":[{"body":{"kind":["a"]}},{"eventSource":["aws:sns"]}]}`:                                    all[:1],
		`{"$or":[{"body":{"kind":["a"]}},{"eventSource":["aws:sqs"]}]}`:                                    all,
		`{"$or":[{"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["c"]}}]},{"body":["5"]}]}`:               {all[0], all[2]},
		`{"eventSource":["aws:sqs"],"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["b"]}}]}`:              all[:2],
		`{"eventSource":["aws:sns"],"$or":[{"body":{"kind":["a"]}},{"body":{"kind":["b"]}}]}`:              nil,
		`{"body":{"$or":[{"kind":["a"]},{"kind":["b"]}]}}`:                                                 all[:2],
		`{"$or":[{"body":{"kind":[{"exists":false}]}},{"body":["x"]}]}`:                                    {all[3]},
		`{"body":{"kind":[{"exists":true}]},"$or":[{"body":{"kind":["a"]}},{"messageId":["no such id"]}]}`: all[:1],
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeQueue(), &function{}
			api.send(all...)
			startQueue(t, api, f, func(q *eventsource.Queue) { q.Filters = []string{filter} })
			synctest.Wait()
			if diff := cmp.Diff(want, slices.Concat(f.got()...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", filter, diff)
			}
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
		api.send("1", "2", "3", "4", "5")
		startQueue(t, api, f, func(q *eventsource.Queue) { q.BatchSize = 1; q.MaximumConcurrency = 2 })
		after(10 * time.Second)
		if n := len(f.got()); n != 2 {
			t.Errorf("%d invocations at once, want 2", n)
		}
		// What can't be delivered stays in the queue, its visibility timeout unused.
		wantLeft(t, api, map[string]int{"1": 1, "2": 1, "3": 0, "4": 0, "5": 0})
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
		startQueue(t, api, f, func(q *eventsource.Queue) { q.MaximumConcurrency = 1 })
		after(time.Second)
		n := 0
		for i, batch := range f.got() {
			n += len(batch)
			if size := len(f.payload(i)); size > lambdarun.MaxRequestBytes {
				t.Errorf("payload %d has %d bytes", i, size)
			}
		}
		if n != 10 || len(f.got()) != 2 {
			t.Errorf("%d messages in %d batches, want 10 in 2", n, len(f.got()))
		}
	})
}

// A throttled batch comes again after the visibility timeout.
func TestQueueSlowsDownWhenThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeQueue()
		f := &function{answer: func(context.Context, int, []string) ([]byte, error) { return nil, lambdarun.ErrThrottled }}
		api.send("1", "2", "3")
		startQueue(t, api, f, func(q *eventsource.Queue) { q.BatchSize = 1; q.MaximumConcurrency = 1 })
		synctest.Wait()
		wantBatches(t, f, []string{"1"})
		after(time.Second)
		wantBatches(t, f, []string{"1"}, []string{"2"})
		wantLeft(t, api, map[string]int{"1": 1, "2": 1, "3": 0})
	})
}

func TestPauseOfAQueueGivesBackWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		m := startQueue(t, api, f, func(q *eventsource.Queue) { q.MaximumBatchingWindow = 10 * time.Second })
		api.send("1", "2")
		after(2 * time.Second)
		m.Pause()
		after(2 * time.Second) // a long poll later, not a window
		wantBatches(t, f)
		wantLeft(t, api, map[string]int{"1": 1, "2": 1})
		if n := api.count("ChangeMessageVisibilityBatch"); n != 1 {
			t.Errorf("gave back %d times", n)
		}
		receives := api.count("ReceiveMessage")
		after(time.Minute)
		if n := api.count("ReceiveMessage"); n != receives {
			t.Error("a paused queue is read")
		}
		m.Resume()
		after(11 * time.Second)
		wantBatches(t, f, []string{"1", "2"})
		wantLeft(t, api, map[string]int{})
	})
}

func TestQueueSurvivesAnEndpointThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		api.fail = func(string) error { return errors.New("connection refused") }
		w := &watcher{}
		startQueue(t, api, f, func(q *eventsource.Queue) { q.Hooks = w.hooks() })
		api.send("1")
		after(10 * time.Minute)
		if n := api.count("ReceiveMessage"); n < 100 || n > 140 {
			t.Errorf("%d tries in ten minutes, want about 120", n)
		}
		if told := w.errors(); len(told) == 0 || !strings.Contains(told[0].Error(), "connection refused") {
			t.Errorf("told %v", told)
		}
		api.mu.Lock()
		api.fail = nil
		api.mu.Unlock()
		after(10 * time.Second)
		wantBatches(t, f, []string{"1"})
	})
}

// A message that couldn't be deleted is told of, and comes again.
func TestQueueTellsWhatItCouldNotDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeQueue(), &function{}
		api.failOne = func(handle string) bool { return handle == "handle-2" }
		api.send("1", "2")
		w := &watcher{}
		startQueue(t, api, f, func(q *eventsource.Queue) { q.Hooks = w.hooks() })
		synctest.Wait()
		wantLeft(t, api, map[string]int{"2": 1})
		if told := w.errors(); len(told) != 1 || !strings.Contains(told[0].Error(), "1 failed: ReceiptHandleIsInvalid") {
			t.Errorf("told %v", told)
		}
		after(31 * time.Second)
		wantBatches(t, f, []string{"1", "2"}, []string{"2"})
	})
}

func TestQueueEndsWithItsContext(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(context.Context, int, []string) ([]byte, error)
		change func(*eventsource.Queue)
		send   bool
		paused bool
	}{
		"in a long poll": {},
		"in an invocation": {send: true, answer: func(ctx context.Context, _ int, _ []string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"in the window": {send: true, change: func(q *eventsource.Queue) { q.MaximumBatchingWindow = time.Minute }},
		"throttled": {send: true, answer: func(context.Context, int, []string) ([]byte, error) {
			return nil, lambdarun.ErrThrottled
		}},
		"paused": {paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				api, f := newFakeQueue(), &function{answer: tt.answer}
				q := eventsource.Queue{Function: f, API: api, URL: queueURL, ARN: queueARN}
				q.Hooks.Error = func(err error) { t.Errorf("told %v", err) }
				if tt.change != nil {
					tt.change(&q)
				}
				m, err := q.Start(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if tt.paused {
					m.Pause()
				}
				if tt.send {
					api.send("1")
				}
				after(500 * time.Millisecond)
				begin := time.Now()
				cancel()
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

func TestQueueStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := eventsource.Queue{Function: &function{}, API: newFakeQueue(), URL: queueURL, ARN: queueARN}
	for _, tt := range []struct {
		want   string
		change func(*eventsource.Queue)
	}{
		{"no Function", func(q *eventsource.Queue) { q.Function = nil }},
		{"no API", func(q *eventsource.Queue) { q.API = nil }},
		{"no URL", func(q *eventsource.Queue) { q.URL = "" }},
		{"no ARN", func(q *eventsource.Queue) { q.ARN = "" }},
		{"BatchSize -1", func(q *eventsource.Queue) { q.BatchSize = -1 }},
		{"BatchSize 10001", func(q *eventsource.Queue) { q.BatchSize, q.MaximumBatchingWindow = 10_001, time.Second }},
		{"BatchSize 11: above 10", func(q *eventsource.Queue) { q.BatchSize = 11 }},
		{"BatchSize 11: a FIFO queue", func(q *eventsource.Queue) { q.BatchSize, q.ARN = 11, queueARN+".fifo" }},
		{"MaximumBatchingWindow: a FIFO queue", func(q *eventsource.Queue) { q.MaximumBatchingWindow, q.ARN = time.Second, queueARN+".fifo" }},
		{"MaximumBatchingWindow 5m1s", func(q *eventsource.Queue) { q.MaximumBatchingWindow = 301 * time.Second }},
		{"MaximumConcurrency 1001", func(q *eventsource.Queue) { q.MaximumConcurrency = 1001 }},
		{"MaximumConcurrency -1", func(q *eventsource.Queue) { q.MaximumConcurrency = -1 }},
		{"PollEvery -1ns", func(q *eventsource.Queue) { q.PollEvery = -1 }},
		{"unknown operator", func(q *eventsource.Queue) { q.Filters = []string{`{"a":[{"like":"x"}]}`} }},
	} {
		q := good
		tt.change(&q)
		m, err := q.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if err == nil {
			_ = m.Close()
		}
	}
}
