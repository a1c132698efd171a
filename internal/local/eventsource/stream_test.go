package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// startStream starts the mapping of a scripted stream with a function.
func startStream(t *testing.T, api *fakeStream, f *function, s eventsource.Stream) *eventsource.Mapping {
	t.Helper()
	s.Function, s.API, s.ARN = f, api, streamARN
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

// reporting answers with the sequence numbers of these records, which the fake
// stream numbers from 1 on, in the order of their keys.
func reporting(bad ...string) answer {
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

// refusing answers the first n invocations with an error, and the others as then does.
func refusing(n int, err error, then answer) answer {
	return func(ctx context.Context, i int, names []string) ([]byte, error) {
		if i <= n {
			return nil, err
		}
		if then == nil {
			return nil, nil
		}
		return then(ctx, i, names)
	}
}

// What the function gets of a shard's records, and what is given up. The figures of six records,
// the last of which fails, are those that AWS shows.
func TestStreamBatches(t *testing.T) {
	report, bisect := eventsource.Stream{ReportBatchItemFailures: true}, eventsource.Stream{BisectBatchOnFunctionError: true}
	for name, tt := range map[string]struct {
		put         string
		answer      answer
		opt         eventsource.Stream
		batch       int
		retries     int
		want, given string
	}{
		"in order":                         {put: "1 2 3 4 5", batch: 2, want: "1 2|3 4|5"},
		"given up after its retries":       {put: "1 2 3 4", answer: failing("1", "4"), batch: 2, retries: 2, want: "1 2|1 2|1 2|3 4|3 4|3 4", given: "1 2|3 4"},
		"given up at once":                 {put: "1 2 3", answer: failing("1"), batch: 2, want: "1 2|3", given: "1 2"},
		"from the reported record":         {put: "1 2 3 4 5 6", answer: reporting("6"), opt: report, batch: 3, retries: 3, want: "1 2 3|4 5 6|6|6|6|6", given: "6"},
		"from the lowest of them":          {put: "1 2 3 4 5", answer: reporting("2", "4"), opt: report, retries: 1, want: "1 2 3 4 5|2 3 4 5|2 3 4 5", given: "2 3 4 5"},
		"retries are counted anew":         {put: "1 2", answer: refusing(1, crash(), reporting("2")), opt: report, retries: 1, want: "1 2|1 2|2|2", given: "2"},
		"reports that nobody asks for":     {put: "1 2", answer: reporting("1"), want: "1 2"},
		"halves":                           {put: "1 2 3 4 5", answer: failing("3"), opt: bisect, retries: 1, want: "1 2 3 4 5|1 2|3 4 5|3|3|4 5", given: "3"},
		"throttled":                        {put: "1 2", answer: refusing(4, lambdarun.ErrThrottled, nil), opt: bisect, want: "1 2|1 2|1 2|1 2|1 2"},
		"a record that goes into no event": {put: "1 2", answer: refusing(2, lambdarun.ErrRequestTooLarge, nil), batch: 1, retries: 1, want: "1|1|2", given: "1"},
		"halves from the reported record": {
			put: "1 2 3 4 5 6", answer: reporting("3"), opt: eventsource.Stream{ReportBatchItemFailures: true, BisectBatchOnFunctionError: true}, retries: 1,
			want: "1 2 3 4 5 6|3 4 5 6|3 4|3|3|4|5 6", given: "3",
		},
		"filtered": {
			put: "x1 a1 x2 a2 b1 x3", batch: 3, want: "a1 a2 b1", opt: eventsource.Stream{Filters: []string{
				`{"dynamodb":{"NewImage":{"pk":{"S":[{"prefix":"a"}]}}}}`, `{"dynamodb":{"NewImage":{"pk":{"S":["b1"]}}},"eventName":["INSERT"]}`,
			}},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f, out := newFakeStream("a"), &function{answer: tt.answer}, &failures{}
			api.put("a", strings.Fields(tt.put)...)
			tt.opt.BatchSize, tt.opt.MaximumRetryAttempts, tt.opt.OnFailure = tt.batch, &tt.retries, out.take
			startStream(t, api, f, tt.opt)
			after(time.Minute)
			if got := joined(f.got()); got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
			if got := joined(out.names()); got != tt.given {
				t.Errorf("%s: given up are %q, want %q", name, got, tt.given)
			}
		})
	}
}

func joined(batches [][]string) string {
	all := make([]string, len(batches))
	for i, b := range batches {
		all[i] = strings.Join(b, " ")
	}
	return strings.Join(all, "|")
}

func wantGot(t *testing.T, f *function, want string) {
	t.Helper()
	if got := joined(f.got()); got != want {
		t.Errorf("got the batches %s, want %s", got, want)
	}
}

func TestStreamWaitsForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		startStream(t, api, f, eventsource.Stream{BatchSize: 3, MaximumBatchingWindow: 10 * time.Second})
		api.put("a", "1")
		after(5 * time.Second)
		api.put("a", "2")
		after(4 * time.Second)
		wantGot(t, f, "")
		after(2 * time.Second)
		wantGot(t, f, "1 2")
		api.put("a", "3", "4", "5", "6") // a full batch doesn't wait; what is left has its own window
		after(9 * time.Second)
		wantGot(t, f, "1 2|3 4 5")
		after(2 * time.Second)
		wantGot(t, f, "1 2|3 4 5|6")
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
		startStream(t, api, f, eventsource.Stream{})
		synctest.Wait()
		if got := f.got(); len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 2 || len(f.payload(0)) > lambdarun.MaxRequestBytes {
			t.Errorf("got %d batches of %v records, want 2 of 2", len(got), got)
		}
	})
}

// Doubled from a tenth of a second on, to a second; what is written later comes after.
func TestStreamWaitsBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, w := newFakeStream("a"), &function{answer: refusing(6, crash(), nil)}, &watcher{}
		api.put("a", "1", "2")
		startStream(t, api, f, eventsource.Stream{Hooks: w.hooks()})
		synctest.Wait()
		api.put("a", "3")
		after(time.Minute)
		wantGot(t, f, strings.Repeat("1 2|", 7)+"3")
		var waits []time.Duration
		for i, at := range f.times()[1:7] {
			waits = append(waits, at.Sub(f.times()[i])/time.Millisecond)
		}
		if diff := cmp.Diff([]time.Duration{100, 200, 400, 800, 1000, 1000}, waits); diff != "" {
			t.Errorf("waits in ms (-want +got):\n%s", diff)
		}
		if i := w.invocations()[0]; i.Records != 2 || i.Failed != 2 || !strings.Contains(i.Err.Error(), "errorString") {
			t.Errorf("got the invocation %+v, want 2 records that failed", i)
		}
	})
}

func TestStreamDiscardsOldRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: failing("2")}, &failures{}
		api.put("a", "1")
		<-time.After(2 * time.Minute)
		api.put("a", "2")
		startStream(t, api, f, eventsource.Stream{MaximumRecordAge: time.Minute, OnFailure: out.take})
		after(59 * time.Second)
		if got := joined(out.names()); got != "1" {
			t.Errorf("given up in time are %s, want 1", got)
		}
		after(2 * time.Second)
		if got := joined(out.names()); got != "1|2" || strings.Contains(joined(f.got()), "1") {
			t.Errorf("given up are %s of %s, want 1, undelivered, and 2", got, joined(f.got()))
		}
	})
}

func TestStreamRetriesForADayByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, out := newFakeStream("a"), &function{answer: failing("1")}, &failures{}
		api.write("a", func(r *types.Record) {
			r.Dynamodb.Keys = map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "1"}}
			*r.Dynamodb.ApproximateCreationDateTime = time.Now().Add(time.Minute - 24*time.Hour)
		})
		startStream(t, api, f, eventsource.Stream{OnFailure: out.take})
		after(59 * time.Second)
		if n := len(out.got()); n != 0 {
			t.Errorf("%d are given up within a day, want none", n)
		}
		after(2 * time.Second)
		if n := len(out.got()); n != 1 {
			t.Errorf("%d are given up after a day, want 1", n)
		}
	})
}

func TestStreamGoesOnWhenTheDestinationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f, w := newFakeStream("a"), &function{answer: failing("1")}, &watcher{}
		api.put("a", "1", "2")
		startStream(t, api, f, eventsource.Stream{
			BatchSize: 1, MaximumRetryAttempts: new(0), Hooks: w.hooks(),
			OnFailure: func(context.Context, eventsource.Failure) error { return errors.New("bucket is gone") },
		})
		synctest.Wait()
		wantGot(t, f, "1|2")
		if told := w.errors(); len(told) != 1 || !strings.Contains(told[0].Error(), "bucket is gone") {
			t.Errorf("told %v, want that the bucket is gone", told)
		}
	})
}

func TestStreamReadsTheAnswerAsLambdaDoes(t *testing.T) {
	const reported = `{"batchItemFailures":[{"itemIdentifier":%s}]}`
	for answer, fails := range map[string]bool{
		``: false, " \n": false, `null`: false, `{}`: false, `[]`: false, `{"batchItemFailures":null}`: false, `{"other":[{"itemIdentifier":"9"}]}`: false,
		`"done"`: true, `[1]`: true, `{} {}`: true, `{"batchItemFailures":[{"id":"1"}]}`: true,
		fmt.Sprintf(reported, `""`): true, fmt.Sprintf(reported, `123`): true, fmt.Sprintf(reported, `"9"`): true, fmt.Sprintf(reported, `"2"},{"itemIdentifier":""`): true,
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeStream("a")
			f := &function{answer: func(context.Context, int, []string) ([]byte, error) { return []byte(answer), nil }}
			api.put("a", "1", "2")
			startStream(t, api, f, eventsource.Stream{ReportBatchItemFailures: true, MaximumRetryAttempts: new(1)})
			after(time.Minute)
			if failed := len(f.got()) > 1; failed != fails {
				t.Errorf("%s: it failed: %t, want %t", answer, failed, fails)
			}
		})
	}
}

// Shards are read in the order of their lineage, each record once, whatever becomes of iterators and shards.
func TestStreamReadsShards(t *testing.T) {
	type start func() *eventsource.Mapping
	trimmed := func(api *fakeStream, err error) {
		failed := false
		api.failWith(func(op string, _ int) error {
			if op == "GetRecords" && len(api.shard("a").records) > 1 && !failed {
				failed = true
				return err
			}
			return nil
		})
	}
	latest := eventsource.Stream{StartingPosition: eventsource.Latest}
	for name, tt := range map[string]struct {
		opt    eventsource.Stream
		answer answer
		play   func(api *fakeStream, start start)
		want   string
	}{
		"a child waits until its parent is settled": {
			opt: eventsource.Stream{BatchSize: 1, MaximumRetryAttempts: new(2)}, answer: failing("a2"), want: "a1|a2|a2|a2|b1|c1",
			play: func(api *fakeStream, start start) {
				api.put("a", "a1", "a2")
				api.close("a")
				api.open("b", "a")
				api.open("c", "b")
				api.put("c", "c1")
				api.put("b", "b1")
				api.close("b")
				start()
			},
		},
		"of a parent that is no longer listed": {answer: refusing(9, crash(), nil), want: strings.Repeat("a1|", 10) + "b1", play: func(api *fakeStream, start start) {
			api.put("a", "a1")
			api.close("a")
			api.open("b", "a")
			api.put("b", "b1")
			start()
			synctest.Wait()
			api.forget("a")
		}},
		"new shards": {opt: latest, want: "a1|b1|d1", play: func(api *fakeStream, start start) {
			api.pageSize = 1 // of DescribeStream
			start()
			api.put("a", "a1")
			after(time.Second)
			api.close("a")
			api.open("b", "a")
			api.put("b", "b1")
			api.close("b")
			api.open("d", "b")
			api.put("d", "d1")
		}},
		"a shard that ends has no window": {opt: eventsource.Stream{MaximumBatchingWindow: 5 * time.Minute}, want: "1", play: func(api *fakeStream, start start) {
			api.put("a", "1")
			api.close("a")
			start()
		}},
		"the latest": {opt: latest, want: "new", play: func(api *fakeStream, start start) {
			api.put("a", "old")
			api.close("a")
			api.open("b", "a")
			api.put("b", "old too")
			start()
			api.put("b", "new") // at once: the place was taken by Start
		}},
		// As DynamoDB Local has it: an iterator taken before the first record is refused after it.
		"a trimmed place": {opt: latest, want: "1 2", play: func(api *fakeStream, start start) {
			api.put("a", "before")
			<-time.After(2 * time.Minute)
			start()
			trimmed(api, &types.TrimmedDataAccessException{Message: aws.String("trimmed")})
			synctest.Wait()
			api.put("a", "1", "2")
		}},
		// An error costs the iterator, and another one at the end would leave out what was written in between.
		"an error at the latest": {opt: latest, want: "1 2", play: func(api *fakeStream, start start) {
			api.put("a", "before")
			<-time.After(2 * time.Minute)
			start()
			trimmed(api, errors.New("internal failure"))
			synctest.Wait()
			api.put("a", "1", "2")
		}},
		// After a day of pause the oldest records are no more. The rest comes, once.
		"a place that is gone": {want: "1 2|4 5", play: func(api *fakeStream, start start) {
			m := start()
			api.put("a", "1", "2")
			after(time.Second)
			m.Pause()
			api.put("a", "3", "4", "5")
			<-time.After(time.Hour)
			api.trim("a", 3)
			m.Resume()
		}},
		"a shard that is gone": {want: "1|3", play: func(api *fakeStream, start start) {
			m := start()
			api.put("a", "1")
			after(time.Second)
			m.Pause()
			api.put("a", "2")
			api.close("a")
			api.open("b", "a")
			api.put("b", "3")
			<-time.After(time.Hour)
			api.forget("a")
			m.Resume()
		}},
		// Not to be found for a moment isn't gone.
		"a shard that is still listed": {want: "1|2", play: func(api *fakeStream, start start) {
			start()
			api.put("a", "1")
			after(time.Second)
			api.failWith(func(op string, _ int) error {
				if op != "DescribeStream" {
					return &types.ResourceNotFoundException{Message: aws.String("no such shard")}
				}
				return nil
			})
			after(time.Minute)
			api.failWith(nil)
			api.put("a", "2")
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{answer: tt.answer}
			tt.play(api, func() *eventsource.Mapping { return startStream(t, api, f, tt.opt) })
			after(time.Minute)
			if got := joined(f.got()); got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
		})
	}
}

// Two shards without a common past are worked on side by side.
func TestStreamWorksOnShardsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeStream("a", "b")
		f := &function{answer: func(ctx context.Context, _ int, names []string) ([]byte, error) {
			if names[0] == "a1" {
				<-ctx.Done() // for ever
			}
			return nil, ctx.Err()
		}}
		api.put("a", "a1")
		startStream(t, api, f, eventsource.Stream{})
		synctest.Wait()
		api.put("b", "b1")
		after(time.Second)
		wantGot(t, f, "a1|b1")
	})
}

// Iterators are good for 15 minutes. Another LATEST would leave out what came in between.
func TestStreamRenewsAnExpiredIterator(t *testing.T) {
	for _, tt := range []struct {
		position, before string // written and read before the pause
		want             string // iterators taken
	}{
		{eventsource.TrimHorizon, "1", "TRIM_HORIZON AFTER_SEQUENCE_NUMBER"},
		{eventsource.TrimHorizon, "", "TRIM_HORIZON TRIM_HORIZON"},
		{eventsource.Latest, "1", "LATEST AFTER_SEQUENCE_NUMBER"},
		{eventsource.Latest, "", "LATEST TRIM_HORIZON"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f, w := newFakeStream("a"), &function{}, &watcher{}
			if tt.position == eventsource.Latest {
				api.put("a", "too old")
				<-time.After(time.Minute)
			}
			m := startStream(t, api, f, eventsource.Stream{StartingPosition: tt.position, Hooks: w.hooks()})
			api.put("a", strings.Fields(tt.before)...)
			after(time.Second)
			m.Pause()
			after(time.Second)
			api.put("a", "3")
			<-time.After(20 * time.Minute)
			m.Resume()
			after(time.Second)
			if got, want := joined(f.got()), strings.TrimPrefix(tt.before+"|3", "|"); got != want {
				t.Errorf("%s: got %s, want %s", tt.position, got, want)
			}
			if got := strings.Join(api.iteratorTypes(), " "); got != tt.want || len(w.errors()) > 0 {
				t.Errorf("%s: took the iterators %s, want %s; told %v, want nothing", tt.position, got, tt.want, w.errors())
			}
		})
	}
}

func TestStreamSurvivesAnEndpointThatIsDown(t *testing.T) {
	for _, op := range []string{"GetRecords", "GetShardIterator", "DescribeStream"} {
		synctest.Test(t, func(t *testing.T) {
			api, f, w := newFakeStream("a"), &function{}, &watcher{}
			startStream(t, api, f, eventsource.Stream{Hooks: w.hooks()})
			api.put("a", "1")
			synctest.Wait()
			begin := api.count(op)
			api.failWith(func(failing string, _ int) error {
				if failing == op {
					return errors.New("connection refused")
				}
				return nil
			})
			api.close("a")
			api.open("b", "a")
			api.put("b", "2")
			after(10 * time.Minute)
			if tries := api.count(op) - begin; tries < 100 || tries > 140 {
				t.Errorf("%s: %d tries in ten minutes, want about 120: every 5 s at last", op, tries)
			}
			if told := w.errors(); len(told) == 0 || !strings.Contains(told[0].Error(), "connection refused") {
				t.Errorf("%s: told %v, want the refusal", op, told)
			}
			api.failWith(nil)
			after(10 * time.Second)
			wantGot(t, f, "1|2")
		})
	}
}

func TestStreamStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := eventsource.Stream{Function: &function{}, API: newFakeStream("a"), ARN: streamARN}
	for want, change := range map[string]func(*eventsource.Stream){
		"no Function":                       func(s *eventsource.Stream) { s.Function = nil },
		"no API":                            func(s *eventsource.Stream) { s.API = nil },
		"no ARN":                            func(s *eventsource.Stream) { s.ARN = "" },
		"no such stream":                    func(s *eventsource.Stream) { s.ARN = "arn:other" },
		`StartingPosition "AT_TIMESTAMP"`:   func(s *eventsource.Stream) { s.StartingPosition = "AT_TIMESTAMP" },
		"BatchSize 10001":                   func(s *eventsource.Stream) { s.BatchSize = 10_001 },
		"MaximumBatchingWindow 5m1s":        func(s *eventsource.Stream) { s.MaximumBatchingWindow = 301 * time.Second },
		"MaximumRetryAttempts 10001":        func(s *eventsource.Stream) { s.MaximumRetryAttempts = new(10_001) },
		"ParallelizationFactor 2: only 1":   func(s *eventsource.Stream) { s.ParallelizationFactor = 2 },
		"PollEvery -1ns":                    func(s *eventsource.Stream) { s.PollEvery = -1 },
		`filter {"a":1}: a: needs an array`: func(s *eventsource.Stream) { s.Filters = []string{`{"a":1}`} },
	} {
		s := good
		change(&s)
		if _, err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
