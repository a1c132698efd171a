package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

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
func TestBadInput25AlteredArgs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(job map[string]ddbtypes.AttributeValue){
		"altered": func(job map[string]ddbtypes.AttributeValue) {
			job["x"].(*ddbtypes.AttributeValueMemberB).Value[13] ^= 1
		},
		"another kind": func(job map[string]ddbtypes.AttributeValue) {
			job["k"] = &ddbtypes.AttributeValueMemberS{Value: "refund"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) { o.Seal = seal.New(static(t)) })
			r := tab.finished(t, nil, "0.0")
			it := tab.item(t, r.PK)
			spoil(it["jobs"].(*ddbtypes.AttributeValueMemberM).Value["0.0"].(*ddbtypes.AttributeValueMemberM).Value)
			tab.Put(t, it)
			var box outbox
			if err := drainOf(t, tab, static(t), &box).Retry(t.Context(), jobs.Ticket{PK: r.PK, Operation: r.ID, Jobs: true}); err != nil {
				t.Errorf("Retry returned %v", err)
			}
			if len(box.all) != 0 {
				t.Errorf("delivered: %+v", box.all)
			}
			failed := tab.item(t, r.PK)["jobs"].(*ddbtypes.AttributeValueMemberM).Value["0.0"].(*ddbtypes.AttributeValueMemberM).Value["f"]
			if failed == nil {
				t.Error("the job is not parked")
			}
		})
	}
}
