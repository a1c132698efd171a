package stream_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Two drains deliver the same last job. The one that is late finds a record
// without jobs, which the other, who saw it unfinished, didn't let go.
func TestLastAckOfWhatOthersDeliveredLetsGo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0")
	tab.edit(t, r.PK, "REMOVE jobs.#j", nil, "#j", "0.0")
	if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
		t.Fatal(err)
	}
	tab.letGo(t, r.PK)
}

// A record without the map is no record of ours: that is told, and not that the
// request was malformed, which a drain would repeat for ever.
func TestAckOfARecordWithoutItsMap(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0")
	tab.edit(t, r.PK, "REMOVE jobs", nil)
	image := *r
	image.State = store.Open // so that this job isn't the record's last
	for name, seen := range map[string]*store.Record{"the last job": r, "a job": &image} {
		if err := stream.Ack(t.Context(), tab.Store, seen, "0.0"); !errors.Is(err, idem.ErrCorrupt) {
			t.Errorf("%s: got %v, want corrupt", name, err)
		}
	}
}

// A drain that counted to the limit meets an operator who begins a new round: the
// job isn't parked by the old count.
func TestParkingMeetsARedrive(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0")
	writes := 0
	tab.Transport.Fault = func(op string, _ int) dynamotest.Fault {
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			if writes++; writes == 2 { // the first has counted, this one parks
				tab.edit(t, r.PK, "REMOVE jobs.#j.t", nil, "#j", "0.0")
			}
			return base.RoundTrip(req)
		}
	}
	_, _ = stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 1)
	now, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil || now.Jobs["0.0"].Failed != "" || writes < 2 {
		t.Errorf("got %+v, %v after %d writes; want it not parked", now.Jobs, err, writes)
	}
}

// Two drains fail with the same job: people read why it was parked first.
func TestParkedJobKeepsItsFirstReason(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, nil, "0.0")
	writes := 0
	tab.Transport.Fault = func(string, int) dynamotest.Fault {
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			if writes++; writes == 2 {
				tab.edit(t, r.PK, "SET jobs.#j.f = :f", map[string]types.AttributeValue{":f": tabletest.Str("the first")}, "#j", "0.0")
			}
			return base.RoundTrip(req)
		}
	}
	if _, err := stream.Fail(t.Context(), tab.Store, r, map[string]error{"0.0": errPoison}, 1); err != nil {
		t.Error(err)
	}
	now, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil || now.Jobs["0.0"].Failed != "the first" || writes < 2 {
		t.Errorf("got %+v, %v after %d writes", now.Jobs, err, writes)
	}
}

// Two operators redrive the same job, and it has failed again in between: the
// slower one doesn't take the new count away.
func TestRedriveMeetsANewRound(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.finished(t, func(r *store.Record) {
		r.Jobs["0.0"] = idem.Job{Kind: "job", Args: []byte("1"), Tries: 5, Failed: "poison"}
	})
	tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
		if op != "UpdateItem" || n > 1 {
			return nil
		}
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			tab.edit(t, r.PK, "SET jobs.#j.t = :t REMOVE jobs.#j.f", map[string]types.AttributeValue{":t": tabletest.Num(2)}, "#j", "0.0")
			return base.RoundTrip(req)
		}
	}
	if _, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane"); err != nil {
		t.Error(err)
	}
	if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.Jobs["0.0"].Tries != 2 {
		t.Errorf("got %+v, %v", now.Jobs, err)
	}
}

// An operator looked at one operation: the parked jobs of another that has the key
// by then, or gets it in between, stay parked.
func TestRedriveReachesNoOtherOperation(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the key is another's": true, "the key becomes another's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.finished(t, func(r *store.Record) {
				r.Jobs["0.0"] = idem.Job{Kind: "job", Args: []byte("1"), Tries: 5, Failed: "poison"}
			})
			replace := func() {
				tab.edit(t, r.PK, "SET id = :id", map[string]types.AttributeValue{":id": tabletest.Str("another")})
			}
			if before {
				replace()
			} else {
				tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
					if op != "UpdateItem" || n > 1 {
						return nil
					}
					return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
						replace()
						return base.RoundTrip(req)
					}
				}
			}
			n, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane")
			if n != 0 || !errors.Is(err, jobs.ErrMoved) && (before || !errors.Is(err, store.ErrUnknown)) {
				t.Errorf("got %d, %v", n, err)
			}
			if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || now.ID != "another" || now.Jobs["0.0"].Failed == "" || now.Jobs["0.0"].Tries != 5 {
				t.Errorf("got %+v, %v", now.Jobs, err)
			}
		})
	}
}

// The drain's own writes show in the stream too, with jobs that still wait in
// them: they ask for nothing, or a failure would feed itself.
func TestDrainsOwnWritesAskForNothing(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		out := &outbox{fail: func(d jobs.Delivery) error {
			if d.Kind == "audit" {
				return errPoison
			}
			return nil
		}}
		run(t, idem.New(tab.Store, callertest.Anybody), staging)
		drain := newDrain(t, tab, out)
		if seq := handle(t, drain, feed.event(t)); seq == "" {
			t.Fatal("the failure isn't reported")
		}
		ev := feed.event(t)
		if len(ev.Records) != 2 {
			t.Fatalf("%d records, want the acknowledgement's and the count's", len(ev.Records))
		}
		tried := 0
		out.fail = func(jobs.Delivery) error { tried++; return nil }
		tab.Transport.Reset()
		if seq := handle(t, newDrain(t, tab, out), ev); seq != "" || tried != 0 || tab.Transport.Total() != 0 {
			t.Errorf("reported %q after %d deliveries and %d calls", seq, tried, tab.Transport.Total())
		}
	})
}

// There is nothing to count a failure in once the record is gone: the job comes
// again until it is delivered, and is never parked.
func TestFailedJobOfARemovedRecordComesAgain(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed := tab.tail(t)
		r := tab.finished(t, nil, "0.0")
		feed.event(t) // lost
		if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)},
		}); err != nil {
			t.Fatal(err)
		}
		ev := feed.event(t)
		out := &outbox{fail: func(jobs.Delivery) error { return errPoison }}
		drain := newDrain(t, tab, out, func(o *stream.DrainOptions) { o.MaxTries = 1 })
		for range 3 {
			if seq := handle(t, drain, ev); seq != ev.Records[0].Change.SequenceNumber {
				t.Errorf("reported %q", seq)
			}
		}
		out.fail = nil
		if seq := handle(t, drain, ev); seq != "" || out.byID[r.ID+".0.0"] != 1 {
			t.Errorf("reported %q, delivered %v", seq, out.byID)
		}
	})
}

// A parked job waits for its operator: the drain delivers what is staged beside
// it, and hands it to nobody.
func TestParkedJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		tab := newTable(t)
		feed, out := tab.tail(t), &outbox{}
		r := tab.finished(t, func(r *store.Record) {
			r.Jobs["0.1"] = idem.Job{Kind: "parked", Args: []byte("1"), Tries: 5, Failed: "poison"}
		}, "0.0")
		if seq := handle(t, newDrain(t, tab, out), feed.event(t)); seq != "" || len(out.all) != 1 || out.byID[r.ID+".0.0"] != 1 {
			t.Errorf("reported %q, delivered %v", seq, out.byID)
		}
		tab.kept(t, r.PK, "0.1")
	})
}

// A mapping that is made anew shows a day of the stream again: of old images, the jobs
// are delivered that still wait in the record, for one read. What is left by a record
// that is gone shows in its own removal.
func TestRemadeMappingDeliversNothingTwice(t *testing.T) {
	t.Parallel()
	drains(t, func(t *testing.T, newDrain makeDrain) {
		for name, tt := range map[string]struct {
			age       time.Duration
			gone      bool
			delivered int
			reads     int
		}{
			"young":           {4 * time.Minute, false, 2, 0},
			"old":             {6 * time.Minute, false, 1, 1},
			"old and removed": {6 * time.Minute, true, 1, 1},
		} {
			t.Run(name, func(t *testing.T) {
				tab := newTable(t)
				feed := tab.tail(t)
				r := tab.finished(t, nil, "0.0", "0.1")
				ev := feed.event(t)
				if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
					t.Fatal(err)
				}
				if tt.gone {
					if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(r.PK)}}); err != nil {
						t.Fatal(err)
					}
				}
				for i := range ev.Records {
					ev.Records[i].Change.ApproximateCreationDateTime.Time = time.Now().Add(-tt.age)
				}
				out := &outbox{}
				if tab.Transport.Reset(); tt.gone {
					later := feed.event(t)
					handle(t, newDrain(t, tab, out), ev)
					ev = later
				}
				handle(t, newDrain(t, tab, out), ev)
				if len(out.byID) != tt.delivered || tab.Transport.Calls()["GetItem"] != tt.reads {
					t.Errorf("delivered %v with %v", out.byID, tab.Transport.Calls())
				}
			})
		}
	})
}
