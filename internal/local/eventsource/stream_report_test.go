package eventsource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
)

// reporting answers with the sequence numbers of these records, which the fake
// stream numbers from 1 on, in the order of their keys.
func reporting(bad ...string) func(context.Context, int, []string) ([]byte, error) {
	return func(_ context.Context, _ int, names []string) ([]byte, error) {
		var answer struct {
			BatchItemFailures []map[string]string `json:"batchItemFailures"`
		}
		for _, name := range names {
			if slices.Contains(bad, name) {
				answer.BatchItemFailures = append(answer.BatchItemFailures, map[string]string{"itemIdentifier": name})
			}
		}
		slices.Reverse(answer.BatchItemFailures) // the order doesn't matter
		return json.Marshal(answer)
	}
}

// The figures are those that AWS shows with six records, the last of which
// fails: a batch from the checkpoint on is a new one with all of its retries.
func TestStreamGoesOnFromTheReportedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: reporting("6")}, &failures{}
		api.put("a", "1", "2", "3", "4", "5", "6")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BatchSize = 3
			s.ReportBatchItemFailures = true
			s.MaximumRetryAttempts = new(3)
			s.OnFailure = out.take
		})
		after(time.Minute)
		wantBatches(t, f, []string{"1", "2", "3"}, []string{"4", "5", "6"}, []string{"6"}, []string{"6"}, []string{"6"}, []string{"6"})
		got := out.got()
		if len(got) != 1 {
			t.Fatalf("%d given up, want 1", len(got))
		}
		if g := got[0]; g.RequestContext.ApproximateInvokeCount != 4 || g.Batch.BatchSize != 1 || g.Batch.StartSequenceNumber != "6" || g.ResponseContext.FunctionError != nil {
			t.Errorf("got %s", g.Message())
		}
	})
}

// What failed before the checkpoint moved doesn't count against the rest.
func TestStreamCountsRetriesForEachBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, out := newFakeStream("a"), &failures{}
		f := &function{answer: func(ctx context.Context, n int, names []string) ([]byte, error) {
			if n == 1 {
				return nil, crash()
			}
			return reporting("2")(ctx, n, names)
		}}
		api.put("a", "1", "2")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.ReportBatchItemFailures = true
			s.MaximumRetryAttempts = new(1)
			s.OnFailure = out.take
		})
		after(time.Minute)
		wantBatches(t, f, []string{"1", "2"}, []string{"1", "2"}, []string{"2"}, []string{"2"})
		if got := out.got(); len(got) != 1 || got[0].RequestContext.ApproximateInvokeCount != 2 || got[0].ResponseContext.FunctionError != nil {
			t.Errorf("given up: %+v", got)
		}
	})
}

func TestStreamTakesTheLowestOfTheReportedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, out := newFakeStream("a"), &failures{}
		f := &function{answer: reporting("2", "4")}
		api.put("a", "1", "2", "3", "4", "5")
		w := &watcher{}
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.ReportBatchItemFailures = true
			s.MaximumRetryAttempts = new(1)
			s.OnFailure = out.take
			s.Hooks = w.hooks()
		})
		after(time.Minute)
		// Without bisecting, what follows the bad record goes with it.
		wantBatches(t, f, []string{"1", "2", "3", "4", "5"}, []string{"2", "3", "4", "5"}, []string{"2", "3", "4", "5"})
		if diff := cmp.Diff([][]string{{"2", "3", "4", "5"}}, out.names()); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]eventsource.Invocation{{Records: 5, Failed: 4}, {Records: 4, Failed: 4}, {Records: 4, Failed: 4}}, w.invocations()); diff != "" {
			t.Errorf("invocations (-want +got):\n%s", diff)
		}
	})
}

func TestStreamReadsTheAnswerAsLambdaDoes(t *testing.T) {
	for answer, fails := range map[string]bool{
		``:                                      false,
		" \n":                                   false,
		`null`:                                  false,
		`{}`:                                    false,
		`[]`:                                    false,
		`{"batchItemFailures":null}`:            false,
		`{"batchItemFailures":[]}`:              false,
		`{"other":[{"itemIdentifier":"9"}]}`:    false,
		`{"batchitemfailures":[{"x":1}]}`:       false,
		`"done"`:                                true,
		`3`:                                     true,
		`[1]`:                                   true,
		`{"batchItemFailures`:                   true,
		`{} {}`:                                 true,
		`{"batchItemFailures":"1"}`:             true,
		`{"batchItemFailures":[{}]}`:            true,
		`{"batchItemFailures":["1"]}`:           true,
		`{"batchItemFailures":[{"id":"1"}]}`:    true,
		reportedAs(`""`):                        true,
		reportedAs(`null`):                      true,
		reportedAs(`123`):                       true,
		reportedAs(`"9"`):                       true,
		reportedAs(`"2"},{"itemIdentifier":""`): true,
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeStream("a")
			f := &function{answer: func(context.Context, int, []string) ([]byte, error) { return []byte(answer), nil }}
			api.put("a", "1", "2")
			startStream(t, api, f, func(s *eventsource.Stream) {
				s.ReportBatchItemFailures = true
				s.MaximumRetryAttempts = new(1)
			})
			after(time.Minute)
			want := [][]string{{"1", "2"}}
			if fails {
				want = append(want, want[0])
			}
			if diff := cmp.Diff(want, f.got()); diff != "" {
				t.Errorf("answer %s (-want +got):\n%s", answer, diff)
			}
		})
	}
}

func reportedAs(id string) string {
	return fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%s}]}`, id)
}

func TestStreamIgnoresReportsItDoesNotAskFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{answer: reporting("1")}
		api.put("a", "1", "2")
		startStream(t, api, f, nil)
		after(time.Minute)
		wantBatches(t, f, []string{"1", "2"})
	})
}

func TestStreamBisects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: failing("3")}, &failures{}
		api.put("a", "1", "2", "3", "4", "5")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BisectBatchOnFunctionError = true
			s.MaximumRetryAttempts = new(1) // splitting doesn't count
			s.OnFailure = out.take
		})
		after(time.Minute)
		wantBatches(t, f, []string{"1", "2", "3", "4", "5"}, []string{"1", "2"}, []string{"3", "4", "5"},
			[]string{"3"}, []string{"3"}, []string{"4", "5"})
		if diff := cmp.Diff([][]string{{"3"}}, out.names()); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
	})
}

func TestStreamBisectsAtTheReportedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: reporting("3")}, &failures{}
		api.put("a", "1", "2", "3", "4", "5", "6")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BisectBatchOnFunctionError = true
			s.ReportBatchItemFailures = true
			s.MaximumRetryAttempts = new(1)
			s.OnFailure = out.take
		})
		after(time.Minute)
		// Once the bad record is the first, halves find it.
		wantBatches(t, f, []string{"1", "2", "3", "4", "5", "6"}, []string{"3", "4", "5", "6"},
			[]string{"3", "4"}, []string{"3"}, []string{"3"}, []string{"4"}, []string{"5", "6"})
		if diff := cmp.Diff([][]string{{"3"}}, out.names()); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
	})
}
