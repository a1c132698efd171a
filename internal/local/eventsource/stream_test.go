package eventsource_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// startStream starts the mapping of a scripted stream with a function; change
// may change the description.
func startStream(t *testing.T, api *fakeStream, f *function, change func(*eventsource.Stream)) *eventsource.Mapping {
	t.Helper()
	s := eventsource.Stream{Function: f, API: api, ARN: streamARN}
	if change != nil {
		change(&s)
	}
	m, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// after lets the mapping work until d of its time has passed.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestStreamDeliversInOrderAndBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		api.put("a", "1", "2", "3", "4", "5")
		startStream(t, api, f, func(s *eventsource.Stream) { s.BatchSize = 2 })
		synctest.Wait()
		wantBatches(t, f, []string{"1", "2"}, []string{"3", "4"}, []string{"5"})
		api.put("a", "6")
		after(100 * time.Millisecond)
		wantBatches(t, f, []string{"1", "2"}, []string{"3", "4"}, []string{"5"}, []string{"6"})
	})
}

// More than one read fetches at once, and none of it twice.
func TestStreamReadsOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		var want []string
		for i := range 2500 {
			want = append(want, strconv.Itoa(i))
		}
		api.put("a", want...)
		startStream(t, api, f, func(s *eventsource.Stream) { s.BatchSize = 10_000; s.MaximumBatchingWindow = time.Second })
		after(time.Second)
		wantBatches(t, f, want)
	})
}

func TestStreamWaitsForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		begin := time.Now()
		startStream(t, api, f, func(s *eventsource.Stream) { s.BatchSize = 3; s.MaximumBatchingWindow = 10 * time.Second })
		after(5 * time.Second)
		api.put("a", "1")
		after(4 * time.Second)
		api.put("a", "2")
		after(5 * time.Second)
		wantBatches(t, f)
		after(2 * time.Second)
		wantBatches(t, f, []string{"1", "2"})
		// A batch that is full doesn't wait.
		api.put("a", "3")
		after(5 * time.Second)
		api.put("a", "4", "5", "6")
		after(100 * time.Millisecond)
		wantBatches(t, f, []string{"1", "2"}, []string{"3", "4", "5"})
		// What is left has its own window.
		after(9 * time.Second)
		wantBatches(t, f, []string{"1", "2"}, []string{"3", "4", "5"})
		after(time.Second)
		wantBatches(t, f, []string{"1", "2"}, []string{"3", "4", "5"}, []string{"6"})
		if got := f.times()[0].Sub(begin); got < 15*time.Second || got > 15100*time.Millisecond {
			t.Errorf("first batch after %s, want 10 s after its first record at 5 s", got)
		}
	})
}

// A window shorter than the pause between reads.
func TestStreamWakesForTheEndOfTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, begin := newFakeStream("a"), &function{}, time.Now()
		api.put("a", "1")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.PollEvery = time.Minute
			s.MaximumBatchingWindow = time.Second
		})
		after(time.Minute)
		wantBatches(t, f, []string{"1"})
		if got := f.times()[0].Sub(begin); got != time.Second {
			t.Errorf("delivered after %s", got)
		}
	})
}

func TestStreamKeepsToThePayloadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		for range 4 {
			api.write("a", func(r *types.Record) {
				r.Dynamodb.NewImage = map[string]types.AttributeValue{"big": &types.AttributeValueMemberS{Value: strings.Repeat("x", 2<<20)}}
			})
		}
		startStream(t, api, f, nil)
		synctest.Wait()
		for i := range f.got() {
			if n := len(f.payload(i)); n > lambdarun.MaxRequestBytes {
				t.Errorf("payload %d has %d bytes", i, n)
			}
		}
		if got := f.got(); len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 2 {
			t.Errorf("got %d batches of %v records, want 2 of 2", len(got), got)
		}
	})
}

func TestStreamDropsWhatNoFilterWantsBeforeBatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		api.put("a", "x1", "a1", "x2", "a2", "b1", "x3")
		w := &watcher{}
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BatchSize = 3
			s.Filters = []string{
				`{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"a"}]}}}}`,
				`{"dynamodb":{"NewImage":{"pk":{"S":["b1"]}}},"eventName":["INSERT"]}`,
			}
			s.Hooks = w.hooks()
		})
		synctest.Wait()
		wantBatches(t, f, []string{"a1", "a2", "b1"})
		wantFiltered(t, w, 3)
	})
}

func TestStreamRetriesTheWholeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeStream("a")
		f := &function{answer: func(_ context.Context, n int, _ []string) ([]byte, error) {
			if n <= 8 {
				return nil, crash()
			}
			return nil, nil
		}}
		api.put("a", "1", "2")
		w := &watcher{}
		startStream(t, api, f, func(s *eventsource.Stream) { s.Hooks = w.hooks() })
		synctest.Wait()
		api.put("a", "3") // comes after what is retried
		after(time.Minute)
		got := f.got()
		if len(got) != 10 || !cmp.Equal(got[8], []string{"1", "2"}) || !cmp.Equal(got[9], []string{"3"}) {
			t.Fatalf("got %v, want nine times 1 and 2, then 3", got)
		}
		// Doubled from a tenth of a second on, to a second.
		var waits []time.Duration
		for i, at := range f.times()[1:9] {
			waits = append(waits, at.Sub(f.times()[i])/time.Millisecond)
		}
		if diff := cmp.Diff([]time.Duration{100, 200, 400, 800, 1000, 1000, 1000, 1000}, waits); diff != "" {
			t.Errorf("waits in ms (-want +got):\n%s", diff)
		}
		invoked := w.invocations()
		if i := invoked[0]; i.Records != 2 || i.Failed != 2 || !strings.Contains(i.Err.Error(), "errorString") {
			t.Errorf("first invocation: %+v", i)
		}
		if diff := cmp.Diff(eventsource.Invocation{Records: 2}, invoked[8]); diff != "" {
			t.Errorf("ninth invocation (-want +got):\n%s", diff)
		}
	})
}

func TestStreamGivesUpAfterItsRetries(t *testing.T) {
	for _, retries := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			api, f, out := newFakeStream("a"), &function{answer: failing("1", "4")}, &failures{}
			api.put("a", "1", "2", "3", "4")
			startStream(t, api, f, func(s *eventsource.Stream) {
				s.BatchSize = 2
				s.MaximumRetryAttempts = new(retries)
				s.OnFailure = out.take
			})
			after(time.Minute)
			var want [][]string
			for _, batch := range [][]string{{"1", "2"}, {"3", "4"}} {
				for range retries + 1 {
					want = append(want, batch)
				}
			}
			wantBatches(t, f, want...)
			if diff := cmp.Diff([][]string{{"1", "2"}, {"3", "4"}}, out.names()); diff != "" {
				t.Errorf("%d retries: destination (-want +got):\n%s", retries, diff)
			}
			for _, failure := range out.got() {
				if got := failure.RequestContext; got.ApproximateInvokeCount != retries+1 || got.Condition != eventsource.RetryAttemptsExhausted {
					t.Errorf("%d retries: request context %+v", retries, got)
				}
			}
		})
	}
}

// What the function never saw is no failed attempt: neither retries nor
// bisecting apply.
func TestStreamThrottlingUsesUpNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, out := newFakeStream("a"), &failures{}
		f := &function{answer: func(_ context.Context, n int, _ []string) ([]byte, error) {
			if n <= 20 {
				return nil, lambdarun.ErrThrottled
			}
			return nil, nil
		}}
		api.put("a", "1", "2")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.MaximumRetryAttempts = new(0)
			s.BisectBatchOnFunctionError = true
			s.OnFailure = out.take
		})
		after(time.Minute)
		got := f.got()
		if len(got) != 21 || len(out.got()) != 0 {
			t.Fatalf("%d invocations, %d given up; want 21 and none", len(got), len(out.got()))
		}
		for _, batch := range got {
			if !cmp.Equal(batch, []string{"1", "2"}) {
				t.Errorf("got %v", batch)
			}
		}
	})
}

// A record that goes into no event is not tried for a day.
func TestStreamGivesUpWhatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, out := newFakeStream("a"), &failures{}
		f := &function{answer: func(_ context.Context, _ int, names []string) ([]byte, error) {
			if names[0] == "1" {
				return nil, lambdarun.ErrRequestTooLarge
			}
			return nil, nil
		}}
		api.put("a", "1", "2")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.MaximumRetryAttempts = new(1)
			s.BatchSize = 1
			s.OnFailure = out.take
		})
		after(time.Minute)
		wantBatches(t, f, []string{"1"}, []string{"1"}, []string{"2"})
		if diff := cmp.Diff([][]string{{"1"}}, out.names()); diff != "" {
			t.Errorf("destination (-want +got):\n%s", diff)
		}
	})
}

func TestStreamDiscardsOldRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: failing("2", "3", "4")}, &failures{}
		api.put("a", "1")
		<-time.After(2 * time.Minute)
		api.put("a", "2")
		<-time.After(50 * time.Second)
		api.put("a", "3")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.MaximumRecordAge = time.Minute
			s.OnFailure = out.take
		})
		synctest.Wait()
		// The first was too old from the beginning, the others in their time.
		if diff := cmp.Diff([][]string{{"1"}}, out.names()); diff != "" {
			t.Errorf("destination at first (-want +got):\n%s", diff)
		}
		after(11 * time.Second)
		if diff := cmp.Diff([][]string{{"1"}, {"2"}}, out.names()); diff != "" {
			t.Errorf("destination 61 s after 2 (-want +got):\n%s", diff)
		}
		after(time.Minute)
		if diff := cmp.Diff([][]string{{"1"}, {"2"}, {"3"}}, out.names()); diff != "" {
			t.Errorf("destination in the end (-want +got):\n%s", diff)
		}
		for i, failure := range out.got() {
			if failure.RequestContext.Condition != eventsource.RecordAgeExceeded {
				t.Errorf("condition %s", failure.RequestContext.Condition)
			}
			if tried := failure.ResponseContext != nil; tried != (i > 0) {
				t.Errorf("failure %d: response context %v", i, failure.ResponseContext)
			}
		}
		for _, batch := range f.got() {
			if batch[0] == "1" {
				t.Error("1 was delivered")
			}
		}
	})
}

func TestStreamRetriesForADayByDefault(t *testing.T) {
	for _, limit := range []*int{nil, new(-1)} {
		synctest.Test(t, func(t *testing.T) {
			api, f, out := newFakeStream("a"), &function{answer: failing("1")}, &failures{}
			api.write("a", func(r *types.Record) {
				r.Dynamodb.Keys = map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "1"}}
				*r.Dynamodb.ApproximateCreationDateTime = time.Now().Add(time.Minute - 24*time.Hour)
			})
			startStream(t, api, f, func(s *eventsource.Stream) {
				s.MaximumRetryAttempts = limit
				s.OnFailure = out.take
			})
			after(59 * time.Second)
			api.put("a", "2")
			if n := len(out.got()); n != 0 {
				t.Fatalf("%d given up within a day", n)
			}
			after(2 * time.Second)
			if got := f.got(); !cmp.Equal(got[len(got)-1], []string{"2"}) || len(out.got()) != 1 {
				t.Errorf("after a day: last %v, %d given up", got[len(got)-1], len(out.got()))
			}
		})
	}
}

func TestStreamGoesOnWhenTheDestinationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{answer: failing("1")}
		api.put("a", "1", "2")
		w := &watcher{}
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BatchSize = 1
			s.MaximumRetryAttempts = new(0)
			s.OnFailure = func(context.Context, eventsource.Failure) error { return errors.New("bucket is gone") }
			s.Hooks = w.hooks()
		})
		synctest.Wait()
		wantBatches(t, f, []string{"1"}, []string{"2"})
		if told := w.errors(); len(told) != 1 || !strings.Contains(told[0].Error(), "bucket is gone") {
			t.Errorf("told %v", told)
		}
	})
}
