package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// handle lets h work on an event as the runtime does, and returns the sequence
// number it reports, "" for none.
func handle(t testing.TB, h interface {
	Invoke(context.Context, []byte) ([]byte, error)
}, ev events.DynamoDBEvent,
) string {
	t.Helper()
	payload, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var re events.DynamoDBEventResponse
	if err := json.Unmarshal(out, &re); err != nil {
		t.Fatal(err)
	}
	switch len(re.BatchItemFailures) {
	case 0:
		if !strings.Contains(string(out), "[]") {
			t.Errorf("the report is %s: null is not an empty list everywhere", out)
		}
		return ""
	case 1:
		return re.BatchItemFailures[0].ItemIdentifier
	}
	t.Errorf("%d failures are reported: the source looks at the lowest only", len(re.BatchItemFailures))
	return re.BatchItemFailures[0].ItemIdentifier
}

// pkOf is the record of an event.
func pkOf(rec events.DynamoDBEventRecord) string { return rec.Change.Keys["pk"].String() }

// from is the part of an event that comes again after seq was reported.
func from(t testing.TB, ev events.DynamoDBEvent, seq string) events.DynamoDBEvent {
	t.Helper()
	i := slices.IndexFunc(ev.Records, func(r events.DynamoDBEventRecord) bool { return r.Change.SequenceNumber == seq })
	if i < 0 {
		t.Fatalf("%q is not in the batch", seq)
	}
	return events.DynamoDBEvent{Records: ev.Records[i:]}
}

// staging is a handler with one job in each of its phases and the finish.
func staging(ctx context.Context) (idem.Response, error) {
	for _, name := range []string{"reserved", "charged"} {
		_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob(name, "args of "+name+" "+tabletest.Planted))
			return 1, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Stage(idem.NewJob("receipt", "r"), idem.NewJob("audit", "a"))
		return idem.Response{Status: 201}, nil
	})
}

// one is a handler that stages one job with its answer.
func one(kind string) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob(kind, kind))
	}
}

func run(t testing.TB, e *idem.Engine, fn func(context.Context) (idem.Response, error)) {
	t.Helper()
	if _, err := e.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), fn); err != nil {
		t.Fatal(err)
	}
}

func TestRequestWithJobsTakesOneAcknowledgement(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		drain := newDrain(t, tab, out)
		run(t, idem.New(tab.Store, callertest.Anybody), staging)
		ev := feed.event(t)
		tab.Transport.Reset()
		if seq := handle(t, drain, ev); seq != "" {
			t.Errorf("%s is reported as failed", seq)
		}
		if diff := cmp.Diff([]string{"reserved", "charged", "receipt", "audit"}, out.kinds()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(calls{"UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		tab.letGo(t, pkOf(ev.Records[0]))

		rec, err := tab.Store.Load(t.Context(), pkOf(ev.Records[0]))
		if err != nil {
			t.Fatal(err)
		}
		want := jobs.Delivery{JobID: rec.ID + ".2.1", Operation: rec.ID, Kind: "audit", Args: json.RawMessage(`"a"`), Group: rec.ID}
		if diff := cmp.Diff(want, out.all[3]); diff != "" {
			t.Errorf("delivery (-want +got):\n%s", diff)
		}

		t.Run("its own write asks for nothing", func(t *testing.T) {
			own := feed.event(t)
			if len(own.Records) != 1 {
				t.Fatalf("%d records, want the acknowledgement's", len(own.Records))
			}
			tab.Transport.Reset()
			if seq := handle(t, drain, own); seq != "" || tab.Transport.Total() != 0 || len(out.kinds()) != 4 {
				t.Errorf("reported %q, %d calls, %d deliveries", seq, tab.Transport.Total(), len(out.kinds()))
			}
		})
		t.Run("the same batch again, in another process: the same ids, no harm", func(t *testing.T) {
			again := &outbox{}
			if seq := handle(t, newDrain(t, tab, again), ev); seq != "" {
				t.Errorf("%s is reported as failed", seq)
			}
			if diff := cmp.Diff(out.byID, again.byID); diff != "" {
				t.Errorf("ids (-first +second):\n%s", diff)
			}
			tab.letGo(t, pkOf(ev.Records[0]))
		})
		t.Run("the same batch again, in the same process: not delivered twice", func(t *testing.T) {
			handle(t, drain, ev)
			if len(out.kinds()) != 4 {
				t.Errorf("%d deliveries", len(out.kinds()))
			}
		})
	})
}

func TestJobsDeliveredBeforeTheFinishTakeTwoUpdates(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		drain := newDrain(t, tab, out)
		var pk string
		run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "early", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("early", 1))
				return 1, nil
			})
			ev := feed.event(t)
			pk = pkOf(ev.Records[0])
			tab.Transport.Reset()
			handle(t, drain, ev)
			if diff := cmp.Diff(calls{"UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
				t.Errorf("calls for the early job (-want +got):\n%s", diff)
			}
			return idem.Response{Status: 201}, err
		})
		tab.kept(t, pk) // nothing else would let it go
		ev := feed.event(t)
		tab.Transport.Reset()
		handle(t, drain, ev)
		if diff := cmp.Diff(calls{"UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
			t.Errorf("calls to settle (-want +got):\n%s", diff)
		}
		tab.letGo(t, pk)
		tab.Transport.Reset()
		if handle(t, drain, feed.event(t)); tab.Transport.Total() != 0 || len(out.kinds()) != 1 {
			t.Errorf("its own writes took %d calls; %d deliveries", tab.Transport.Total(), len(out.kinds()))
		}
	})
}

func TestA20AbortedPhaseStagesNothing(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		failing := errors.New("down")
		_, err := idem.New(tab.Store, callertest.Anybody).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "phase", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("never", 1))
				return 0, failing
			})
			return idem.Response{}, err
		})
		if !errors.Is(err, failing) {
			t.Fatal(err)
		}
		if handle(t, newDrain(t, tab, out), feed.event(t)); len(out.kinds()) != 0 {
			t.Errorf("delivered %v", out.kinds())
		}
	})
}

// A21: ten requests with a job each, and a queue that fails on the fourth. It isn't
// asked for the rest, and another queue gets its own.
func TestA21FailureIsReportedAndTheRestComesAgain(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		down, tried := true, 0
		out := &outbox{fail: func(d jobs.Delivery) error {
			tried++
			if d.Kind >= "job 4" && down {
				return fmt.Errorf("%w: injected", jobs.ErrSinkDown)
			}
			return nil
		}}
		route, other := jobs.Route{}, &outbox{}
		engine := idem.New(tab.Store, callertest.Anybody)
		for i := range 10 {
			kind := fmt.Sprint("job ", i+1-i/9*10) // job 0 is the tenth
			route[kind] = out
			run(t, engine, one(kind))
		}
		route["job 0"] = other
		ev := feed.event(t)
		var staged []events.DynamoDBEventRecord // the finishes
		for _, r := range ev.Records {
			if st := r.Change.NewImage["st"]; st.String() == "done" {
				staged = append(staged, r)
			}
		}
		if len(staged) != 10 {
			t.Fatalf("%d finishes", len(staged))
		}
		seq := handle(t, newDrain(t, tab, route), ev)
		if seq != staged[3].Change.SequenceNumber {
			t.Errorf("reported %s, want the fourth's, %s", seq, staged[3].Change.SequenceNumber)
		}
		if tried != 4 {
			t.Errorf("the queue was asked %d times, want 4", tried)
		}
		for i, r := range staged {
			if i < 3 || i == 9 { // job 0 got through
				tab.letGo(t, pkOf(r))
			} else {
				tab.kept(t, pkOf(r), "0.0")
			}
		}
		down = false
		if seq := handle(t, newDrain(t, tab, route), from(t, ev, seq)); seq != "" {
			t.Errorf("the rerun reports %s", seq)
		}
		for _, r := range staged {
			tab.letGo(t, pkOf(r))
		}
		if len(out.byID) != 9 || len(other.byID) != 1 {
			t.Errorf("delivered %v and %v, want 9 ids and one", out.byID, other.byID)
		}
	})
}

// Bad input 32: a job that always fails is parked, and what comes after it goes
// on; an operator hands it out again.
func TestBadInput32PoisonJobIsParked(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		bad := true
		out := &outbox{fail: func(d jobs.Delivery) error {
			if d.Kind == "poison" && bad {
				return errPoison
			}
			return nil
		}}
		var parked []stream.Entry
		var failures int
		drain := newDrain(t, tab, out, func(o *stream.DrainOptions) {
			o.MaxTries = 3
			o.Hooks.Parked = func(_ context.Context, e stream.Entry) { parked = append(parked, e) }
			o.Hooks.Failed = func(context.Context, jobs.Delivery, error) { failures++ }
		})
		engine := idem.New(tab.Store, callertest.Anybody)
		run(t, engine, func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("fine", 1), idem.NewJob("poison", 2))
		})
		run(t, engine, one("later"))
		ev := feed.event(t)
		pk := pkOf(ev.Records[0])
		batch := ev
		for try := 1; ; try++ {
			seq := handle(t, drain, batch)
			if seq == "" {
				if try != 3 {
					t.Errorf("parked after %d tries, want 3", try)
				}
				break
			}
			batch = from(t, batch, seq)
			if pkOf(batch.Records[0]) != pk {
				t.Fatal("another record is reported")
			}
		}
		if len(parked) != 1 || parked[0].PK != pk || parked[0].Job != "0.1" || parked[0].Kind != "poison" || parked[0].Tries != 3 ||
			parked[0].LastErr != "poison" || parked[0].Route != "POST /orders" || failures != 3 {
			t.Errorf("told %+v, and of %d failures", parked, failures)
		}
		tab.kept(t, pk, "0.1")
		if diff := cmp.Diff([]string{"fine", "later"}, out.kinds()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		t.Run("what was written about it asks for nothing", func(t *testing.T) {
			tab.Transport.Reset()
			if seq := handle(t, drain, feed.event(t)); seq != "" || tab.Transport.Total() != 0 {
				t.Errorf("reported %q after %d calls", seq, tab.Transport.Total())
			}
		})
		t.Run("a late image doesn't bring it back", func(t *testing.T) {
			if seq := handle(t, newDrain(t, tab, out, func(o *stream.DrainOptions) { o.MaxTries = 3 }), ev); seq != "" {
				t.Errorf("reported %q", seq)
			}
			tab.kept(t, pk, "0.1")
		})
		t.Run("redriven, it is delivered under its id, and the record is let go", func(t *testing.T) {
			bad = false
			r, err := tab.Store.Load(t.Context(), pk)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := stream.Redrive(t.Context(), tab.Store, pk, r.ID, "jane"); n != 1 || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
			before := len(out.all)
			if seq := handle(t, drain, feed.event(t)); seq != "" {
				t.Errorf("reported %q", seq)
			}
			if len(out.all) != before+1 || out.all[before].Kind != "poison" || !strings.HasSuffix(out.all[before].JobID, ".0.1") {
				t.Errorf("delivered %+v", out.all[before:])
			}
			tab.letGo(t, pk)
		})
	})
}

// What the drain writes about a job that waits on is no reason to deliver it: the
// batch that failed comes again, and nothing else.
func TestOwnWritesAboutAWaitingJobAskForNothing(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		out := &outbox{fail: func(d jobs.Delivery) error {
			if d.Kind == "poison" {
				return errPoison
			}
			return nil
		}}
		run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("fine", 1), idem.NewJob("poison", 2))
		})
		ev := feed.event(t)
		if seq := handle(t, newDrain(t, tab, out), ev); seq == "" {
			t.Fatal("nothing is reported")
		}
		own := feed.event(t)
		if len(own.Records) != 2 {
			t.Fatalf("%d records, want those of an acknowledgement and a count", len(own.Records))
		}
		again := &outbox{}
		tab.Transport.Reset()
		if seq := handle(t, newDrain(t, tab, again), own); seq != "" || tab.Transport.Total() != 0 || len(again.kinds()) != 0 {
			t.Errorf("reported %q after %d calls, delivered %v", seq, tab.Transport.Total(), again.kinds())
		}
		tab.kept(t, pkOf(ev.Records[0]), "0.1")
	})
}

// An outage of the sink is not the jobs' fault: none is parked, however long.
func TestOutageParksNothing(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		out := &outbox{fail: func(jobs.Delivery) error { return jobs.ErrSinkDown }}
		run(t, idem.New(tab.Store, callertest.Anybody), one("job"))
		ev := feed.event(t)
		tab.Transport.Reset()
		for range 20 {
			if seq := handle(t, newDrain(t, tab, out), ev); seq == "" {
				t.Fatal("nothing is reported")
			}
		}
		if tab.Transport.Total() != 0 {
			t.Errorf("%d calls", tab.Transport.Total())
		}
		out.fail = nil
		if seq := handle(t, newDrain(t, tab, out), ev); seq != "" || len(out.byID) != 1 {
			t.Errorf("reported %q, delivered %v", seq, out.byID)
		}
	})
}

// A record that is removed while jobs wait in it: they come from the old image.
func TestRemovedRecordsJobsAreDelivered(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		removed := func(t *testing.T) (*store.Record, events.DynamoDBEvent) {
			t.Helper()
			r := tab.finished(t, func(r *store.Record) {
				r.Jobs["0.2"] = idem.Job{Kind: "parked", Args: []byte("1"), Tries: 9, Failed: "poison"}
			}, "0.0", "0.1")
			feed.event(t) // lost
			if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
			}); err != nil {
				t.Fatal(err)
			}
			return r, feed.event(t)
		}
		for name, identity := range map[string]*events.DynamoDBUserIdentity{
			"deleted": nil,
			"expired": {Type: "Service", PrincipalID: "dynamodb.amazonaws.com"},
		} {
			t.Run(name, func(t *testing.T) {
				r, ev := removed(t)
				ev.Records[0].UserIdentity = identity
				out := &outbox{}
				var lost []stream.Entry
				tab.Transport.Reset()
				drain := newDrain(t, tab, out, func(o *stream.DrainOptions) {
					o.Hooks.JobLost = func(_ context.Context, e stream.Entry) { lost = append(lost, e) }
				})
				if seq := handle(t, drain, ev); seq != "" || tab.Transport.Total() != 0 {
					t.Errorf("reported %q after %d calls", seq, tab.Transport.Total())
				}
				if len(lost) != 1 || lost[0].Reason != "job_lost" || lost[0].Job != "0.2" || lost[0].ID != r.ID || lost[0].LastErr != "poison" {
					t.Errorf("told of %+v, want the parked job", lost)
				}
				if diff := cmp.Diff(map[string]int{r.ID + ".0.0": 1, r.ID + ".0.1": 1}, out.byID); diff != "" {
					t.Errorf("delivered (-want +got):\n%s", diff)
				}
				if tab.item(t, r.PK) != nil {
					t.Error("a ghost was made")
				}
			})
		}
		t.Run("a parked job is told of, if there is nothing else", func(t *testing.T) {
			r := tab.finished(t, func(r *store.Record) {
				r.Jobs = map[string]idem.Job{"0.2": {Kind: "parked", Args: []byte("1"), Tries: 9, Failed: "poison"}}
			})
			feed.event(t)
			if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
			}); err != nil {
				t.Fatal(err)
			}
			told := 0
			drain := newDrain(t, tab, &outbox{}, func(o *stream.DrainOptions) {
				o.Hooks.JobLost = func(context.Context, stream.Entry) { told++ }
			})
			if seq := handle(t, drain, feed.event(t)); seq != "" || told != 1 {
				t.Errorf("reported %q, told %d times", seq, told)
			}
		})
		t.Run("what fails comes again", func(t *testing.T) {
			_, ev := removed(t)
			out := &outbox{fail: func(jobs.Delivery) error { return errPoison }}
			if seq := handle(t, newDrain(t, tab, out), ev); seq != ev.Records[0].Change.SequenceNumber {
				t.Errorf("reported %q", seq)
			}
		})
		t.Run("replaced by another operation, whose own jobs stay", func(t *testing.T) {
			r := tab.finished(t, nil, "0.0")
			feed.event(t)
			it := tab.item(t, r.PK)
			it["id"] = tabletest.Str("another")
			tab.Put(t, it)
			out := &outbox{fail: func(d jobs.Delivery) error {
				if d.Operation == "another" {
					return jobs.ErrSinkDown
				}
				return nil
			}}
			ev := feed.event(t)
			handle(t, newDrain(t, tab, out), ev)
			if diff := cmp.Diff(map[string]int{r.ID + ".0.0": 1}, out.byID); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			tab.kept(t, r.PK, "0.0")
		})
	})
}

// Whatever is lost of an acknowledgement, the batch comes again or is right.
func TestDrainWhoseAnswersAreLost(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		for name, fault := range tabletest.Ambiguous {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				withRetries(t, func(t *testing.T, tab *table) {
					feed, out := tab.tail(t), &outbox{}
					run(t, idem.New(tab.Store, callertest.Anybody), staging)
					ev := feed.event(t)
					tab.Transport.Reset()
					tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
					drain := newDrain(t, tab, out)
					for seq := handle(t, drain, ev); seq != ""; seq = handle(t, drain, ev) {
						ev = from(t, ev, seq)
					}
					tab.letGo(t, pkOf(ev.Records[0]))
					if len(out.byID) != 4 {
						t.Errorf("delivered %v", out.byID)
					}
				})
			})
		}
	})
}

func TestUnacknowledgedJobsComeAgain(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		run(t, idem.New(tab.Store, callertest.Anybody), one("job"))
		ev := feed.event(t)
		tab.Transport.Fault = func(string, int) dynamotest.Fault {
			return dynamotest.AnswerError(400, "AccessDeniedException", "injected")
		}
		drain := newDrain(t, tab, out)
		seq := handle(t, drain, ev)
		if want := ev.Records[len(ev.Records)-1].Change.SequenceNumber; seq != want {
			t.Fatalf("reported %q, want %q", seq, want)
		}
		tab.Transport.Fault = nil
		if seq := handle(t, drain, from(t, ev, seq)); seq != "" {
			t.Errorf("the rerun reports %q", seq)
		}
		tab.letGo(t, pkOf(ev.Records[0]))
		if len(out.kinds()) != 1 {
			t.Errorf("delivered %d times by one process", len(out.kinds()))
		}
	})
}

// A settle that fails is reported, so that the source brings it again: nothing else
// of the stream would let the record go.
func TestFailedLettingGoComesAgain(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		drain := newDrain(t, tab, out)
		run(t, idem.New(tab.Store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "early", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("early", 1))
				return 1, nil
			})
			handle(t, drain, feed.event(t))
			return idem.Response{Status: 201}, err
		})
		ev := feed.event(t)
		tab.Transport.Fault = func(string, int) dynamotest.Fault {
			return dynamotest.AnswerError(400, "AccessDeniedException", "injected")
		}
		seq := handle(t, drain, ev)
		if want := ev.Records[len(ev.Records)-1].Change.SequenceNumber; seq != want {
			t.Fatalf("reported %q, want %q", seq, want)
		}
		tab.Transport.Fault = nil
		if seq := handle(t, drain, from(t, ev, seq)); seq != "" {
			t.Errorf("the rerun reports %q", seq)
		}
		tab.letGo(t, pkOf(ev.Records[0]))
	})
}

// A record that somebody broke by hand must not hold up the others.
func TestBrokenRecordDoesNotBlock(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		engine := idem.New(tab.Store, callertest.Anybody)
		run(t, engine, one("broken"))
		run(t, engine, one("sound"))
		ev := feed.event(t)
		pk := pkOf(ev.Records[0])
		tab.edit(t, pk, "SET resp = :x", map[string]types.AttributeValue{":x": tabletest.Str("broken by hand")})
		var skipped []stream.Skipped
		drain := newDrain(t, tab, out, func(o *stream.DrainOptions) {
			o.Hooks.Skipped = func(_ context.Context, s stream.Skipped) { skipped = append(skipped, s) }
			o.Concurrency = 1
		})
		if seq := handle(t, drain, ev); seq != "" {
			t.Errorf("reported %q", seq)
		}
		if len(skipped) != 1 || skipped[0].Reason != stream.SkipUnreadable || !errors.Is(skipped[0].Err, idem.ErrCorrupt) {
			t.Errorf("told %+v", skipped)
		}
		if diff := cmp.Diff([]string{"broken", "sound"}, out.kinds()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestSinkLeavesTimeToAcknowledge(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	run(t, idem.New(tab.Store, callertest.Anybody), one("job"))
	ev := feed.event(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var left time.Duration
	drain := stream.NewDrain(tab.Store, jobs.SinkFunc(func(sctx context.Context, _ jobs.Delivery) error {
		d, _ := ctx.Deadline()
		s, _ := sctx.Deadline()
		left = d.Sub(s)
		return nil
	}))
	if _, err := drain.Handle(ctx, ev); err != nil || left < 5*time.Second || left > 7*time.Second {
		t.Errorf("%v are left of a minute, %v", left, err)
	}
}

// Jobs of one group stay in order: what comes after a failure is held back, and
// only the failure counts.
func TestGroupIsHeldBackAfterAFailure(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		out := &outbox{fail: func(d jobs.Delivery) error {
			if d.Kind == "second" {
				return errPoison
			}
			return nil
		}}
		grouped := func(kind, group string) func(context.Context) (idem.Response, error) {
			return func(ctx context.Context) (idem.Response, error) {
				j := idem.NewJob(kind, 1)
				j.Group = group
				return idem.Response{Status: 201}, idem.Stage(ctx, j)
			}
		}
		engine := idem.New(tab.Store, callertest.Anybody)
		for _, k := range [][2]string{{"first", "g"}, {"second", "g"}, {"third", "g"}, {"other", "h"}} {
			run(t, engine, grouped(k[0], k[1]))
		}
		ev := feed.event(t)
		handle(t, newDrain(t, tab, out, func(o *stream.DrainOptions) { o.MaxTries = 1 }), ev)
		if diff := cmp.Diff([]string{"first", "other"}, out.kinds()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		for _, r := range ev.Records {
			rec, err := tab.Store.Load(t.Context(), pkOf(r))
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range rec.Jobs {
				if (j.Failed != "") != (j.Kind == "second") || j.Kind == "third" && j.Tries != 0 {
					t.Errorf("%+v", j)
				}
			}
		}
	})
}

func TestMistakesShowAtColdStart(t *testing.T) {
	t.Parallel()
	client := dynamodb.New(dynamodb.Options{})
	store, err := dynamo.New(client, "table")
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]func(){
		"no store":       func() { stream.NewDrain(nil, jobs.Route{}) },
		"no sink":        func() { stream.NewDrain(store, nil) },
		"negative tries": func() { stream.NewDrain(store, jobs.Route{}, func(o *stream.DrainOptions) { o.MaxTries = -1 }) },
		"negative concurrency": func() {
			stream.NewDrain(store, jobs.Route{}, func(o *stream.DrainOptions) { o.Concurrency = -1 })
		},
		"no queue":          func() { stream.NewCompleter(nil) },
		"negative grace":    func() { stream.NewCompleter(&tickets{}, func(o *stream.CompleterOptions) { o.Grace = -1 }) },
		"no scan":           func() { stream.NewSweep(nil, store) },
		"no table to sweep": func() { stream.NewSweep(client, nil) },
		"negative segments": func() { stream.NewSweep(client, store, func(o *stream.SweepOptions) { o.Segments = -1 }) },
		"negative pace":     func() { stream.NewSweep(client, store, func(o *stream.SweepOptions) { o.PagesPerSecond = -1 }) },
		"negative budget":   func() { stream.NewSweep(client, store, func(o *stream.SweepOptions) { o.Budget = -1 }) },
		"no index":          func() { stream.NewWaiting(nil, store) },
		"no table to list":  func() { stream.NewWaiting(client, nil) },
		"a reason that waits for nobody": func() {
			stream.NewWaiting(client, store, func(o *stream.WaitingOptions) { o.Only = []stream.Reason{stream.ReasonOpen} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "stream: New") {
					t.Errorf("no panic that says so: %q", v)
				}
			}()
			fn()
		})
	}
}
