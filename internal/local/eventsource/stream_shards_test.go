package eventsource_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
)

func TestStreamReadsParentsBeforeChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, out := newFakeStream("a"), &failures{}
		// A child waits until the last batch of its parent is settled.
		f := &function{answer: failing("a2")}
		api.put("a", "a1", "a2")
		api.close("a")
		api.open("b", "a")
		api.open("c", "b")
		api.put("c", "c1")
		api.put("b", "b1")
		api.close("b")
		startStream(t, api, f, func(s *eventsource.Stream) {
			s.BatchSize = 1
			s.MaximumRetryAttempts = new(4)
			s.OnFailure = out.take
		})
		after(time.Minute)
		wantBatches(t, f, []string{"a1"}, []string{"a2"}, []string{"a2"}, []string{"a2"}, []string{"a2"}, []string{"a2"}, []string{"b1"}, []string{"c1"})
	})
}

// The end of a shard is the end of its window too.
func TestStreamDeliversTheRestOfAShardThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		api.put("a", "1")
		api.close("a")
		startStream(t, api, f, func(s *eventsource.Stream) { s.MaximumBatchingWindow = time.Minute })
		synctest.Wait()
		wantBatches(t, f, []string{"1"})
	})
}

func TestStreamFollowsNewShards(t *testing.T) {
	for _, position := range []string{eventsource.TrimHorizon, eventsource.Latest} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{}
			api.pageSize = 1 // of DescribeStream
			startStream(t, api, f, func(s *eventsource.Stream) { s.StartingPosition = position })
			api.put("a", "a1")
			after(time.Second)
			// A split, and another a moment later.
			api.close("a")
			api.open("b", "a")
			api.open("c", "a")
			api.put("b", "b1")
			api.close("b")
			api.open("d", "b")
			api.put("d", "d1")
			api.put("c", "c1")
			after(2 * time.Second)
			got := slices.Concat(f.got()...)
			slices.Sort(got)
			if diff := cmp.Diff([]string{"a1", "b1", "c1", "d1"}, got); diff != "" {
				t.Errorf("%s: records (-want +got):\n%s", position, diff)
			}
		})
	}
}

// A parent may disappear from the listing while its last batch is retried.
func TestStreamChildWaitsForAParentThatIsNoLongerListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeStream("a")
		f := &function{answer: func(_ context.Context, n int, _ []string) ([]byte, error) {
			if n < 10 {
				return nil, crash()
			}
			return nil, nil
		}}
		api.put("a", "a1")
		api.close("a")
		api.open("b", "a")
		api.put("b", "b1")
		startStream(t, api, f, nil)
		synctest.Wait()
		api.forget("a")
		after(time.Minute)
		got := slices.Concat(f.got()...)
		if want := append(slices.Repeat([]string{"a1"}, 10), "b1"); !cmp.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// A rollover costs no more than a look at the stream.
func TestStreamGoesToTheNextShardAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		startStream(t, api, f, nil)
		synctest.Wait()
		api.close("a")
		api.open("b", "a")
		api.put("b", "b1")
		after(100 * time.Millisecond) // the next read of a
		wantBatches(t, f, []string{"b1"})
	})
}

// Not to be found for a moment isn't gone.
func TestStreamKeepsAShardThatIsStillListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		startStream(t, api, f, nil)
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
		after(time.Minute)
		wantBatches(t, f, []string{"1"}, []string{"2"})
	})
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
		startStream(t, api, f, nil)
		synctest.Wait()
		api.put("b", "b1")
		api.put("a", "a2")
		after(time.Second)
		wantBatches(t, f, []string{"a1"}, []string{"b1"})
	})
}

func TestStreamStartsAtTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		api.put("a", "old")
		api.close("a")
		api.open("b", "a")
		api.put("b", "old too")
		startStream(t, api, f, func(s *eventsource.Stream) { s.StartingPosition = eventsource.Latest })
		api.put("b", "new") // at once: the place was taken by Start
		after(time.Second)
		wantBatches(t, f, []string{"new"})
	})
}

// As DynamoDB Local has it: an iterator taken before the first record is
// refused after it.
func TestStreamTakesTheHorizonWhereDataIsTrimmed(t *testing.T) {
	for _, position := range []string{eventsource.TrimHorizon, eventsource.Latest} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{}
			api.put("a", "before")
			<-time.After(2 * time.Minute)
			refused := false
			startStream(t, api, f, func(s *eventsource.Stream) { s.StartingPosition = position })
			api.failWith(func(op string, _ int) error {
				if op == "GetRecords" && len(api.shard("a").records) > 1 && !refused {
					refused = true
					return &types.TrimmedDataAccessException{Message: aws.String("trimmed")}
				}
				return nil
			})
			synctest.Wait()
			api.put("a", "1", "2")
			after(time.Second)
			want := []string{"before", "1", "2"}
			if position == eventsource.Latest {
				want = want[1:]
			}
			if got := slices.Concat(f.got()...); !cmp.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", position, got, want)
			}
		})
	}
}

// Any error costs the iterator, and another one at the end of the shard would
// leave out what was written in between.
func TestStreamFromTheLatestLosesNothingToAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		api.put("a", "before")
		<-time.After(2 * time.Minute)
		failed := false
		startStream(t, api, f, func(s *eventsource.Stream) { s.StartingPosition = eventsource.Latest })
		api.failWith(func(op string, _ int) error {
			if op == "GetRecords" && len(api.shard("a").records) > 1 && !failed {
				failed = true
				return errors.New("internal failure")
			}
			return nil
		})
		synctest.Wait()
		api.put("a", "1", "2")
		after(time.Minute)
		if got := slices.Concat(f.got()...); !cmp.Equal(got, []string{"1", "2"}) {
			t.Errorf("got %v", got)
		}
	})
}

// After a day of pause the oldest records are no more. The rest comes, once.
func TestStreamGoesOnAtTheHorizonWhenItsPlaceIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		m := startStream(t, api, f, nil)
		api.put("a", "1", "2")
		after(time.Second)
		m.Pause()
		api.put("a", "3", "4", "5")
		<-time.After(time.Hour)
		api.trim("a", 3)
		m.Resume()
		after(time.Second)
		wantBatches(t, f, []string{"1", "2"}, []string{"4", "5"})
	})
}

// A trimmed answer though nothing is lost: what was read doesn't come again.
func TestStreamRepeatsNothingAfterGoingBackToTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		startStream(t, api, f, nil)
		for range 10 { // sequence numbers of one digit and of two
			api.put("a", "x")
		}
		after(time.Second)
		at := api.count("GetRecords") + 1
		api.failWith(func(op string, n int) error {
			if op == "GetRecords" && n == at {
				return &types.TrimmedDataAccessException{Message: aws.String("trimmed")}
			}
			return nil
		})
		after(time.Second)
		api.put("a", "new")
		after(time.Second)
		if got := f.got(); len(got) != 2 || !cmp.Equal(got[1], []string{"new"}) {
			t.Errorf("got %v, want ten records, then new", got)
		}
		if got := api.iteratorTypes(); !cmp.Equal(got, []string{"TRIM_HORIZON", "TRIM_HORIZON"}) {
			t.Errorf("iterators %v", got)
		}
	})
}

// Iterators are good for 15 minutes.
func TestStreamRenewsAnExpiredIterator(t *testing.T) {
	for _, tt := range []struct {
		name, position string
		before         []string // written and read before the pause
		want           []string // iterators taken
	}{
		{"after a record", eventsource.TrimHorizon, []string{"1", "2"}, []string{"TRIM_HORIZON", "AFTER_SEQUENCE_NUMBER"}},
		{"before any", eventsource.TrimHorizon, nil, []string{"TRIM_HORIZON", "TRIM_HORIZON"}},
		{"from the latest on, after a record", eventsource.Latest, []string{"1", "2"}, []string{"LATEST", "AFTER_SEQUENCE_NUMBER"}},
		// Another LATEST would leave out what came in between.
		{"from the latest on, before any", eventsource.Latest, nil, []string{"LATEST", "TRIM_HORIZON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, f := newFakeStream("a"), &function{}
				var want []string
				if tt.position == eventsource.Latest {
					api.put("a", "too old")
					<-time.After(time.Minute)
				}
				w := &watcher{}
				m := startStream(t, api, f, func(s *eventsource.Stream) {
					s.StartingPosition = tt.position
					s.Hooks = w.hooks()
				})
				want = append(want, tt.before...)
				api.put("a", tt.before...)
				after(time.Second)
				m.Pause()
				after(time.Second)
				api.put("a", "3")
				<-time.After(20 * time.Minute)
				m.Resume()
				after(time.Second)
				if got := slices.Concat(f.got()...); !cmp.Equal(got, append(want, "3")) {
					t.Errorf("got %v, want %v and 3", got, want)
				}
				if diff := cmp.Diff(tt.want, api.iteratorTypes()); diff != "" {
					t.Errorf("iterators (-want +got):\n%s", diff)
				}
				if told := w.errors(); len(told) != 0 {
					t.Errorf("told %v: this is nothing to tell of", told)
				}
			})
		})
	}
}

func TestStreamSurvivesAnEndpointThatIsDown(t *testing.T) {
	for _, op := range []string{"GetRecords", "GetShardIterator", "DescribeStream"} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{}
			w := &watcher{}
			startStream(t, api, f, func(s *eventsource.Stream) { s.Hooks = w.hooks() })
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
			// Every 5 s at last.
			if tries := api.count(op) - begin; tries < 100 || tries > 140 {
				t.Errorf("%s: %d tries in ten minutes, want about 120", op, tries)
			}
			if told := w.errors(); len(told) == 0 || !strings.Contains(told[0].Error(), "connection refused") {
				t.Errorf("%s: told %v", op, told)
			}
			api.failWith(nil)
			after(10 * time.Second)
			wantBatches(t, f, []string{"1"}, []string{"2"})
		})
	}
}

// A shard whose records are all a day old disappears, its children don't.
func TestStreamLetsGoOfAShardThatIsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		m := startStream(t, api, f, nil)
		api.put("a", "1")
		after(time.Second)
		m.Pause()
		api.put("a", "2")
		api.close("a")
		api.open("b", "a")
		api.put("b", "3")
		<-time.After(time.Hour)
		api.forget("a")
		<-time.After(time.Hour)
		m.Resume()
		after(10 * time.Second)
		wantBatches(t, f, []string{"1"}, []string{"3"})
	})
}

func TestStreamStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := eventsource.Stream{Function: &function{}, API: newFakeStream("a"), ARN: streamARN}
	for _, tt := range []struct {
		want   string
		change func(*eventsource.Stream)
	}{
		{"no Function", func(s *eventsource.Stream) { s.Function = nil }},
		{"no API", func(s *eventsource.Stream) { s.API = nil }},
		{"no ARN", func(s *eventsource.Stream) { s.ARN = "" }},
		{"no such stream", func(s *eventsource.Stream) { s.ARN = "arn:other" }},
		{`StartingPosition "AT_TIMESTAMP"`, func(s *eventsource.Stream) { s.StartingPosition = "AT_TIMESTAMP" }},
		{"BatchSize 10001", func(s *eventsource.Stream) { s.BatchSize = 10_001 }},
		{"BatchSize -1", func(s *eventsource.Stream) { s.BatchSize = -1 }},
		{"MaximumBatchingWindow 5m1s", func(s *eventsource.Stream) { s.MaximumBatchingWindow = 301 * time.Second }},
		{"MaximumBatchingWindow -1s", func(s *eventsource.Stream) { s.MaximumBatchingWindow = -time.Second }},
		{"MaximumRetryAttempts -2", func(s *eventsource.Stream) { s.MaximumRetryAttempts = new(-2) }},
		{"MaximumRetryAttempts 10001", func(s *eventsource.Stream) { s.MaximumRetryAttempts = new(10_001) }},
		{"ParallelizationFactor 2: only 1", func(s *eventsource.Stream) { s.ParallelizationFactor = 2 }},
		{"PollEvery -1ns", func(s *eventsource.Stream) { s.PollEvery = -1 }},
		{`filter {"a":1}: a: needs an array`, func(s *eventsource.Stream) { s.Filters = []string{`{"a":1}`} }},
	} {
		s := good
		tt.change(&s)
		m, err := s.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if err == nil {
			_ = m.Close()
		}
	}
	good.ParallelizationFactor = 1
	m, err := good.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
}
