package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/seal"
)

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

func TestAbortedPhaseStagesNothing(t *testing.T) {
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

// Ten requests with a job each, and a queue that fails on the fourth. It isn't
// asked for the rest, and another queue gets its own.
func TestFailureIsReportedAndTheRestComesAgain(t *testing.T) {
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

// A job that always fails is parked, and what comes after it goes
// on; an operator hands it out again.
func TestPoisonJobIsParked(t *testing.T) {
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
			tab.remove(t, r.PK)
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
			tab.remove(t, r.PK)
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
		"no index":          func() { stream.NewWaiting(nil, store) },
		"no table to list":  func() { stream.NewWaiting(client, nil) },
		"a reason that waits for nobody": func() {
			stream.NewWaiting(client, store, func(o *stream.WaitingOptions) { o.Only = []state.Reason{state.ReasonOpen} })
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

// What leaves the table's stream says to whom it is to go: tickets name the
// record's function and tenant, jobs their tenant.
func TestTicketsAndJobsAreAddressed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change                    map[string]any
		function, handler, tenant string
	}{
		"all of it":         {map[string]any{"fn": text("rides"), "hn": text("POST /rides"), "tn": text("jane")}, "rides", "POST /rides", "jane"},
		"without a name":    {map[string]any{"fn": text("rides")}, "rides", "", ""},
		"from elsewhere":    {nil, "", "", ""},
		"without its claim": {map[string]any{"hn": text("POST /rides")}, "", "POST /rides", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record(t, 1, "INSERT", nil, staged(tt.change))}}
			queue := &tickets{}
			handle(t, stream.NewCompleter(queue), ev)
			got := queue.all()
			if len(got) != 1 || got[0].Function != tt.function || got[0].Tenant != tt.tenant {
				t.Errorf("tickets %+v", got)
			}
			out := &outbox{}
			handle(t, stream.NewDrain(newTable(t).Store, out), ev)
			if len(out.all) != 1 || out.all[0].Tenant != tt.tenant {
				t.Errorf("delivered %+v", out.all)
			}
		})
	}
}

// An event of 4 MB is read in parts of 1 MB: the jobs of a part are delivered before the next
// part is read, and none behind a part with a record that has to come again.
func TestBatchIsReadInParts(t *testing.T) {
	t.Parallel()
	const n, size, most = 20, 150_000, 1 << 20
	store, payload := eventOfParts(t, n, size)
	sink := &sinkOfParts{}
	drain := stream.NewDrain(store, sink, func(o *stream.DrainOptions) { o.Concurrency = 1 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // time for all
	defer cancel()
	invoke := func() (again string) {
		out, err := drain.Invoke(ctx, payload)
		var re events.DynamoDBEventResponse
		if err == nil {
			err = json.Unmarshal(out, &re)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range re.BatchItemFailures {
			again += f.ItemIdentifier
		}
		return again
	}
	sink.down = "O9"
	if again := invoke(); again != "9" || slices.Contains(sink.delivered, "O9") || !slices.Contains(sink.delivered, "O8") || slices.Contains(sink.delivered, "O19") {
		t.Errorf("%q has to come again, want 9; delivered: %v", again, sink.delivered)
	}
	sink.down = ""
	if again := invoke(); again != "" {
		t.Errorf("%q has to come again", again)
	}
	slices.Sort(sink.delivered)
	if len(sink.delivered) != n || len(slices.Compact(sink.delivered)) != n || len(sink.parts) < n*size/most || slices.Max(sink.parts) > most {
		t.Errorf("%d jobs of %d were delivered, in parts of %d bytes", len(sink.delivered), n, sink.parts)
	}
}

// eventOfParts is an event of n records, each with a job of size bytes, and their store.
func eventOfParts(t *testing.T, n, size int) (*dynamo.Store, []byte) {
	t.Helper()
	const table = "parts"
	db := &fakedynamo.DB{}
	store, err := dynamo.New(db, table)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte('a' + random.IntN(26))
	}
	engine := idem.New(store, idem.OneScope)
	if _, err := engine.Do(t.Context(), tabletest.Post("k", ""), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("mail", string(noise)))
			return idem.Response{Status: 201}, nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	var ev events.DynamoDBEvent
	first := db.Items(table)[0]
	for i := range n {
		it := maps.Clone(first)
		it["pk"], it["id"] = tabletest.Str("v1##"+strconv.Itoa(i)), tabletest.Str("O"+strconv.Itoa(i))
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
			t.Fatal(err)
		}
		image := streamimage.Of(it)
		ev.Records = append(ev.Records, events.DynamoDBEventRecord{
			EventName: "INSERT", EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
		})
	}
	payload, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return store, payload
}

// sinkOfParts notes the bytes of each call.
type sinkOfParts struct {
	down      string        // the operation whose jobs it refuses
	takes     time.Duration // each call
	delivered []string
	parts     []int
}

func (s *sinkOfParts) Deliver(_ context.Context, batch []jobs.Delivery) []error {
	if s.takes > 0 {
		time.Sleep(s.takes) //nolint:forbidigo // virtual
	}
	errs, size := make([]error, len(batch)), 0
	for i, d := range batch {
		if size += len(d.Args); d.Operation == s.down {
			errs[i] = errors.New("refused")
			continue
		}
		s.delivered = append(s.delivered, d.Operation)
	}
	s.parts = append(s.parts, size)
	return errs
}

// A request and an answer of 4 MB of one letter are items of some KB. Whoever sends a
// hundred of them doesn't take the worker's memory: its readers inflate no body.
func TestReadersInflateNoBody(t *testing.T) {
	const table, each, largest = "bodies", 50, 64 << 20
	large := slices.Repeat([]byte("a"), 4<<20)
	db := &fakedynamo.DB{}
	store, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Inline = 16 << 10 })
	if err != nil {
		t.Fatal(err)
	}
	engine := idem.New(store, idem.OneScope, func(o *idem.Options) {
		o.Function, o.Resumable, o.CallerFromOp, o.MaxBody, o.MaxRequest = "f", true, true, len(large), len(large)
	})
	down := errors.New("down")
	for key, want := range map[string]error{"open": down, "done": nil} {
		req := tabletest.Post(key, "")
		if req.Body = large; want == nil {
			req.Body = nil
		}
		if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("mail", 1))
				return 1, nil
			})
			return idem.Response{Status: 201, Body: large}, errors.Join(err, want)
		}); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	if n := len(db.Items(table)); n != 2 {
		t.Fatalf("%d items: a body lies beside its record", n)
	}
	var ev events.DynamoDBEvent
	for i, it := range slices.Repeat(db.Items(table), each) {
		it = maps.Clone(it)
		it["pk"] = tabletest.Str("v1##" + strconv.Itoa(i))
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
			t.Fatal(err)
		}
		image := streamimage.Of(it)
		ev.Records = append(ev.Records, events.DynamoDBEventRecord{
			EventName: "INSERT", EventSource: "aws:dynamodb",
			Change: events.DynamoDBStreamRecord{SequenceNumber: strconv.Itoa(i), NewImage: image, Keys: map[string]events.DynamoDBAttributeValue{"pk": image["pk"]}},
		})
	}
	var delivered, ticketed int
	sink := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { delivered++; return nil })
	fast := func(o *stream.SweepOptions) { o.PagesPerSecond = 1e6 }
	for name, read := range map[string]func() error{
		"completer": func() error {
			_, err := stream.NewCompleter(putter(func(all []jobs.Ticket) { ticketed += len(all) })).Handle(t.Context(), ev)
			return err
		},
		"list":  func() error { _, err := stream.NewSweep(db, store, fast).List(t.Context()); return err },
		"sweep": func() error { _, err := stream.NewSweep(db, store, fast).Run(t.Context()); return err },
		"drain": func() error {
			_, err := stream.NewDrain(store, sink, func(o *stream.DrainOptions) { o.Concurrency = 1 }).Handle(t.Context(), ev)
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > largest {
			t.Errorf("%s: %d MB were allocated for bodies of %d MB", name, (after.TotalAlloc-before.TotalAlloc)>>20, each*len(large)>>20)
		}
	}
	if delivered != 2*each || ticketed != each {
		t.Errorf("%d jobs were delivered, %d tickets put", delivered, ticketed)
	}
}

// putter is a queue that takes every ticket.
type putter func([]jobs.Ticket)

func (p putter) Put(_ context.Context, all []jobs.Ticket) []error { p(all); return nil }

// A job goes to its sink with the context of its phase, from the stream and from its
// record alike. Each delivery is a step of that trace.
func TestDeliveriesContinueTheTrace(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	var engine, worker tracetest.Recorder
	run(t, idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) { o.Tracer = &engine }), staging)
	ev := feed.event(t)
	phases := make(map[string]trace.Context)
	for _, s := range engine.Spans() {
		if s.Kind == trace.Phase {
			phases[s.Name] = s.Identity()
		}
	}

	got := make(map[string]trace.Context)
	sink := jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		got[d.Kind] = d.Trace
		if d.Kind == "charged" {
			return errors.New("the data of a customer")
		}
		return nil
	})
	drain := stream.NewDrain(tab.Store, sink, func(o *stream.DrainOptions) { o.Tracer = &worker })
	if handle(t, drain, ev) == "" {
		t.Error("no failure is reported")
	}
	spans := worker.Spans()
	const want = "deliver reserved\ndeliver charged delivery_failed\ndeliver receipt held_back\ndeliver audit held_back\n"
	if diff := cmp.Diff(want, tracetest.Tree(spans)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	pk := pkOf(ev.Records[0])
	rec, err := tab.Store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans[:2] {
		if s.From != phases[s.Name] || s.From == (trace.Context{}) || got[s.Name] != s.From {
			t.Errorf("%s is delivered with %+v in the trace %+v, want that of its phase %+v", s.Name, got[s.Name], s.From, phases[s.Name])
		}
		if s.Step.Operation != rec.ID || s.Job == "" || s.Record == "" || s.Route == "" {
			t.Errorf("the step is %+v", s.Step)
		}
	}

	sink = func(_ context.Context, d jobs.Delivery) error { got[d.Kind] = d.Trace; return nil }
	again := stream.NewDrain(tab.Store, sink, func(o *stream.DrainOptions) { o.Tracer = &worker })
	if err := again.Retry(t.Context(), jobs.Ticket{PK: pk, Operation: rec.ID, Jobs: true}); err != nil {
		t.Fatal(err)
	}
	if spans := worker.Spans(); len(spans) != 3 || spans[0].Tries != 1 || got["charged"] != phases["charged"] {
		t.Errorf("from its record: %+v, %s", got["charged"], tracetest.Tree(spans))
	}
}

// Whatever lies in the stream, it is counted and passed over, by
// the drain and by the completer, and what comes after it goes on.
func TestStrangeStreamRecords(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	for name, test := range map[string]struct {
		record events.DynamoDBEventRecord
		why    stream.Skip
	}{
		"insert without images":       {record(t, 1, "INSERT", nil, nil), stream.SkipNoImage},
		"change without a new image":  {record(t, 1, "MODIFY", staged(nil), nil), stream.SkipNoImage},
		"removal without an image":    {record(t, 1, "REMOVE", nil, nil), stream.SkipNoImage},
		"somebody else's item":        {record(t, 1, "INSERT", nil, map[string]any{"pk": text("order#1"), "total": digits(5)}), stream.SkipForeign},
		"somebody else's item, gone":  {record(t, 1, "REMOVE", map[string]any{"pk": text("order#1")}, nil), stream.SkipForeign},
		"another table's key":         {record(t, 1, "INSERT", nil, map[string]any{"pk": digits(7), "v": digits(1), "st": text("open")}), stream.SkipForeign},
		"no key at all":               {record(t, 1, "INSERT", nil, map[string]any{"x": text("y")}), stream.SkipForeign},
		"a companion":                 {record(t, 1, "INSERT", nil, map[string]any{"pk": text("v1##x#o#1"), "v": digits(1), "b": map[string]any{"B": "AAEC"}}), stream.SkipCompanion},
		"a companion that expired":    {record(t, 1, "REMOVE", map[string]any{"pk": text("v1##x#o#1"), "v": digits(1)}, nil), stream.SkipCompanion},
		"a layout of the future":      {record(t, 1, "MODIFY", nil, staged(map[string]any{"v": digits(2)})), stream.SkipUnreadable},
		"a layout that is no number":  {record(t, 1, "INSERT", nil, staged(map[string]any{"v": text("1")})), stream.SkipUnreadable},
		"an unknown state":            {record(t, 1, "INSERT", nil, staged(map[string]any{"st": text("paused")})), stream.SkipUnreadable},
		"an unknown state, removed":   {record(t, 1, "REMOVE", staged(map[string]any{"st": text("paused")}), nil), stream.SkipUnreadable},
		"a state of another type":     {record(t, 1, "INSERT", nil, staged(map[string]any{"st": digits(1)})), stream.SkipUnreadable},
		"neither kept nor to expire":  {record(t, 1, "INSERT", nil, staged(map[string]any{"keep": nil})), stream.SkipUnreadable},
		"jobs that are a list":        {record(t, 1, "INSERT", nil, open(map[string]any{"jobs": map[string]any{"L": []any{}}})), stream.SkipUnreadable},
		"jobs that are gone":          {record(t, 1, "INSERT", nil, staged(map[string]any{"st": text("done"), "keep": text("jobs"), "jobs": nil})), stream.SkipUnreadable},
		"null where an owner belongs": {record(t, 1, "INSERT", nil, staged(map[string]any{"owner": map[string]any{"NULL": true}})), stream.SkipUnreadable},
		"sets where text belongs":     {record(t, 1, "INSERT", nil, staged(map[string]any{"fp": map[string]any{"SS": []string{"a"}}, "id": map[string]any{"NS": []string{"1"}}})), stream.SkipUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sound := record(t, 2, "INSERT", nil, staged(map[string]any{"pk": text("v1##sound-" + strings.ReplaceAll(name, " ", "-"))}))
			ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{test.record, sound}}
			test.record.EventSource = "aws:dynamodb"
			var skipped []stream.Skipped
			hooks := stream.Hooks{Skipped: func(_ context.Context, s stream.Skipped) { skipped = append(skipped, s) }}
			out, all, queue := &outbox{}, &outbox{}, &tickets{}
			drain := stream.NewDrain(tab.Store, out, func(o *stream.DrainOptions) { o.Hooks = hooks })
			completer := stream.NewCompleter(queue, func(o *stream.CompleterOptions) { o.Hooks = hooks })
			for what, h := range map[string]interface {
				Invoke(context.Context, []byte) ([]byte, error)
			}{"drain": drain, "completer": completer, "both": stream.Both{Drain: drain, Completer: completer}, "worker": worker.New(tab.Client, tab.Store, asSQS(queue), func(o *worker.Options) {
				o.Sink, o.Hooks = all, hooks
			})} {
				skipped = nil
				if seq := handle(t, h, ev); seq != "" {
					t.Errorf("%s: %s is reported as failed", what, seq)
				}
				if len(skipped) != 1 || skipped[0].Reason != test.why || skipped[0].Sequence != "1" {
					t.Errorf("%s told %+v, want one %q", what, skipped, test.why)
				}
				if test.why == stream.SkipUnreadable && !errors.Is(skipped[0].Err, idem.ErrCorrupt) {
					t.Errorf("%s told why: %v", what, skipped[0].Err)
				}
			}
			if diff := cmp.Diff([]string{"mail"}, out.kinds()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(out.kinds(), all.kinds()); diff != "" {
				t.Errorf("delivered by the worker (-drain +worker):\n%s", diff)
			}
			queued := queue.all()
			if len(queued) != 3 || slices.ContainsFunc(queued, func(t jobs.Ticket) bool { return t.PK != pkOf(sound) }) {
				t.Errorf("queued %+v, want the sound one's tickets", queued)
			}
		})
	}
}

// An old image that can't be read makes everything in the new one new: jobs are
// handed on once more rather than never.
func TestUnreadableOldImage(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		out := &outbox{}
		rec := record(t, 1, "MODIFY", staged(map[string]any{"v": digits(9)}), staged(nil))
		if seq := handle(t, newDrain(t, tab, out), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{rec}}); seq != "" {
			t.Errorf("reported %s", seq)
		}
		if diff := cmp.Diff(map[string]int{"i.0.0": 1}, out.byID); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

// A payload that isn't a stream's must fail: to pass over its records would lose
// them in silence.
func TestOtherSourcesAreRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	drain, completer := stream.NewDrain(tab.Store, &outbox{}), stream.NewCompleter(&tickets{})
	one := worker.New(tab.Client, tab.Store, asSQS(&tickets{}))
	for name, payload := range map[string]string{
		"nothing":           ``,
		"not JSON":          `{`,
		"null":              `null`,
		"no records":        `{"Records":[]}`,
		"a schedule":        `{"source":"aws.events","detail-type":"Scheduled Event"}`,
		"a queue":           `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"{}"}]}`,
		"a bucket":          `{"Records":[{"eventSource":"aws:s3"}]}`,
		"one among ours":    `{"Records":[{"eventSource":"aws:dynamodb"},{"eventSource":"aws:kinesis"}]}`,
		"an image gone bad": `{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"NewImage":{"pk":{"L":["x"]}}}}]}`,
	} {
		for what, h := range map[string]interface {
			Invoke(context.Context, []byte) ([]byte, error)
		}{"drain": drain, "completer": completer, "both": stream.Both{Drain: drain, Completer: completer}, "worker": one} {
			if what == "worker" && (name == "a schedule" || name == "a queue") {
				continue // it takes both
			}
			if out, err := h.Invoke(t.Context(), []byte(payload)); err == nil {
				t.Errorf("%s, %s: answered %s", what, name, out)
			}
		}
	}
}

// denied is a provider that opens nothing as long as it is told to.
type denied struct {
	seal.Provider
	denies bool
	calls  int
}

func (d *denied) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	if d.calls++; d.denies {
		return nil, errors.New("access denied")
	}
	return d.Provider.Open(ctx, id, wrapped)
}

func static(t testing.TB) seal.Provider {
	t.Helper()
	p, err := seal.NewStatic("one", map[string][]byte{"one": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sealedBatch has a sealed record with two jobs and a plain one with another, and the
// event that shows them.
func sealedBatch(t *testing.T) (tab *table, sealed, plain *store.Record, ev events.DynamoDBEvent) {
	t.Helper()
	tab = newTable(t, func(o *dynamo.Options) { o.Seal = seal.New(static(t)) })
	s := tab.tail(t)
	sealed = tab.finished(t, nil, "0.0", "1.0")
	withSeal := tab.Store
	var err error
	if tab.Store, err = dynamo.New(tab.Client, tab.Name); err != nil {
		t.Fatal(err)
	}
	plain = tab.finished(t, nil, "0.0")
	tab.Store = withSeal
	return tab, sealed, plain, s.event(t)
}

// drainOf returns the drain of another process, with its own sealer.
func drainOf(t *testing.T, tab *table, p seal.Provider, box *outbox) *stream.Drain {
	t.Helper()
	s, err := dynamo.New(tab.Client, tab.Name, func(o *dynamo.Options) {
		if p != nil {
			o.Seal = seal.New(p)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return stream.NewDrain(s, box, func(o *stream.DrainOptions) { o.MaxTries = 1 })
}

// A job whose args can't be opened waits, however often it is tried, and is delivered
// once they can.
func TestSealedJobWaitsForItsKey(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]*denied{"denied": {Provider: static(t), denies: true}, "without a sealer": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, sealed, plain, ev := sealedBatch(t)
			var box outbox
			var d *stream.Drain
			if provider == nil {
				d = drainOf(t, tab, nil, &box)
			} else {
				d = drainOf(t, tab, provider, &box)
			}
			for range 3 {
				if re, err := d.Handle(t.Context(), ev); err != nil || len(re.BatchItemFailures) != 1 {
					t.Fatalf("the report is %+v, %v; want the sealed record to come again", re, err)
				}
			}
			if diff := cmp.Diff([]string{"job 0.0"}, box.kinds()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			tab.letGo(t, plain.PK)
			tab.kept(t, sealed.PK, "0.0", "1.0")
			r, err := tab.Store.Load(t.Context(), sealed.PK)
			if err != nil {
				t.Fatal(err)
			}
			for name, job := range r.Jobs {
				if job.Tries != 0 || job.Failed != "" {
					t.Errorf("job %s has %d tries and was parked for %q", name, job.Tries, job.Failed)
				}
			}
			box.all = nil
			allowed := &denied{Provider: static(t)}
			if re, err := drainOf(t, tab, allowed, &box).Handle(t.Context(), ev); err != nil || len(re.BatchItemFailures) != 0 {
				t.Fatalf("with the key, the report is %+v, %v", re, err)
			}
			tab.letGo(t, sealed.PK)
			got := map[string]string{}
			for _, d := range box.all {
				if d.Operation == sealed.ID {
					var args string
					if err := json.Unmarshal(d.Args, &args); err != nil {
						t.Fatal(err)
					}
					got[d.Kind] = args
				}
			}
			if diff := cmp.Diff(map[string]string{"job 0.0": "0.0 " + tabletest.Planted, "job 1.0": "1.0 " + tabletest.Planted}, got); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			if allowed.calls != 1 {
				t.Errorf("%d calls of the provider for a record, want 1", allowed.calls)
			}
		})
	}
}

// Args that were altered, or put under another kind, are never delivered: the job is
// parked at last, and people see it.
func TestAlteredArgs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(job map[string]types.AttributeValue){
		"altered": func(job map[string]types.AttributeValue) {
			job["x"].(*types.AttributeValueMemberB).Value[13] ^= 1
		},
		"another kind": func(job map[string]types.AttributeValue) {
			job["k"] = &types.AttributeValueMemberS{Value: "refund"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) { o.Seal = seal.New(static(t)) })
			r := tab.finished(t, nil, "0.0")
			it := tab.item(t, r.PK)
			spoil(it["jobs"].(*types.AttributeValueMemberM).Value["0.0"].(*types.AttributeValueMemberM).Value)
			tab.Put(t, it)
			var box outbox
			if err := drainOf(t, tab, static(t), &box).Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err != nil {
				t.Errorf("Retry returned %v", err)
			}
			if len(box.all) != 0 {
				t.Errorf("delivered: %+v", box.all)
			}
			failed := tab.item(t, r.PK)["jobs"].(*types.AttributeValueMemberM).Value["0.0"].(*types.AttributeValueMemberM).Value["f"]
			if failed == nil {
				t.Error("the job is not parked")
			}
		})
	}
}
