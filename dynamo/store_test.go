package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/enginetest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// The suite that MemoryStore passes too, unchanged.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, ...func(*dynamo.Options)) *table{"DynamoDB Local": newLocal, "in memory": newTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := open(t)
			enginetest.TestStore(t, func(testing.TB) store.Store { return tab.Store })
		})
	}
}

// A commit names the owner and the version that it was made from, and nothing of it is applied
// unless both are as seen: neither in the record nor of the user's items.
func TestCommitsAreConditional(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(next *store.Record){
		"a phase":                    func(r *store.Record) { r.Phases = []store.Phase{{Name: "one", Result: []byte("1")}} },
		"a take-over by a client":    func(r *store.Record) { r.Owner = rand.Text() },
		"a take-over by a completer": func(r *store.Record) { r.Owner, r.Tries = rand.Text(), r.Tries+1 },
	} {
		for _, with := range []string{"", " with an item"} {
			t.Run(name+with, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t)
				app := tab.App(t)
				var writes []idem.Write
				if with != "" {
					writes = []idem.Write{dynamo.Put(app, order{ID: "never"})}
				}
				r := tab.held(t)
				for who, prev := range seen(r) {
					next := prev.Clone()
					next.Ver++
					edit(next)
					held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: prev, Next: next, Writes: writes})
					if err != nil || held == nil || held.Owner != r.Owner || held.Ver != r.Ver {
						t.Errorf("%s: got %+v, %v; want it refused with the record", who, held, err)
					}
					now, err := tab.Store.Load(t.Context(), r.PK)
					if err != nil || cmp.Diff(held, now, cmpopts.IgnoreFields(store.Record{}, "Seal")) != "" {
						t.Errorf("%s: the record was written: %+v, %v", who, now, err)
					}
				}
				if _, found := tabletest.Read[order](t, tab.Table, app, "never"); found {
					t.Error("the user's item was written")
				}
			})
		}
	}
}

// A program that can't read a record must not take it over: after that nobody else
// could for as long as its lease lasts.
func TestRecordOfANewerLayoutIsNotTaken(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.held(t)
	it := tab.Items(t)[0]
	it["v"] = tabletest.Num(2)
	tab.Put(t, it)
	_, taken, err := tab.Store.Take(t.Context(), state.WithFrom(store.Take{
		PK: r.PK, Owner: r.Owner, Ver: r.Ver, Now: r.Lease.Add(time.Second), Handlers: []store.HandlerID{{}}, NewOwner: rand.Text(), Lease: r.Lease.Add(time.Hour),
	}))
	if taken || !errors.Is(err, idem.ErrCorrupt) {
		t.Errorf("taken: %t, %v", taken, err)
	}
	tab.unchanged(t, []map[string]types.AttributeValue{it})
}

// A commit that is sent again after its answer was lost meets its own record and
// its own items: that it has landed is told, and not that a condition of the
// user's has come untrue.
func TestRecordsReasonIsToldFirst(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	prev := tab.held(t)
	next := prev.Clone()
	next.Ver++
	next.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
	c := store.Commit{Prev: prev, Next: next, Writes: []idem.Write{dynamo.Put(app, order{ID: "once"}).If("attribute_not_exists(pk)")}}
	if held, err := tab.Store.Commit(t.Context(), c); held != nil || err != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	if held, err := tab.Store.Commit(t.Context(), c); err != nil || held == nil || held.Owner != next.Owner || held.Ver != next.Ver {
		t.Errorf("sent again: %+v, %v; want the record as committed", held, err)
	}
}

// A redrive adds its decision without raising ver: a decision that was made from the
// record as it was before must not remove it, however many the record has.
func TestDecisionsOfTwoOperatorsStay(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	for name, earlier := range map[string]int{"the first": 0, "of few": 3, "the oldest give way": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tab.held(t)
			now := time.Now().Truncate(time.Millisecond)
			decided := func(r *store.Record, by string) *store.Record {
				next, err := state.Settled(r, state.Settlement{By: by}, now)
				if err != nil {
					t.Fatal(err)
				}
				next.Settled[len(next.Settled)-1].ID = by
				return next
			}
			write := func(r *store.Record) {
				var v item.Values
				if _, err := tab.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String(tab.Name), Key: item.Key(r.PK), UpdateExpression: aws.String("SET settled = :d"),
					ExpressionAttributeValues: item.Map{":d": v.Settled(r.Settled)},
				}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range earlier {
				r.Settled = decided(r, "earlier "+strconv.Itoa(i)).Settled
			}
			if earlier > 0 {
				write(r)
			}
			write(decided(r, "omar")) // as a redrive
			next := decided(r, "jane")
			state.Stamp(next, r, "operator")
			if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); held != nil || err != nil {
				t.Fatal(held, err)
			}
			got, err := tab.Store.Load(t.Context(), r.PK)
			if err != nil {
				t.Fatal(err)
			}
			var by []string
			for _, d := range got.Settled {
				by = append(by, d.By)
			}
			if n := len(by); n != min(earlier+2, 10) || !slices.Equal(by[n-2:], []string{"omar", "jane"}) {
				t.Errorf("decisions by %q", by)
			}
		})
	}
}

// What this program doesn't know of stays: a later version's attributes survive
// every write of ours.
func TestUnknownAttributesStay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	_, err := tab.Engine().Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		it := tab.Items(t)[0]
		it["newer"] = &types.AttributeValueMemberS{Value: "kept"}
		tab.Put(t, it)
		return tabletest.Created("{}")(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := tab.Items(t)[0]["newer"].(*types.AttributeValueMemberS); !ok || v.Value != "kept" {
		t.Error("an unknown attribute is gone after the finish")
	}
}

// Of the items of a table only records are read as records. One that isn't understood is an
// error: a tool must not pass over it.
func TestDecodeTellsRecordsFromOtherItems(t *testing.T) {
	t.Parallel()
	var db fakedynamo.DB
	st, err := dynamo.New(&db, "records")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idem.New(st, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/"}, tabletest.Created("made")); err != nil {
		t.Fatal(err)
	}
	record := db.Items("records")[0]
	without := func(names ...string) map[string]types.AttributeValue {
		it := maps.Clone(record)
		for _, name := range names {
			delete(it, name)
		}
		return it
	}
	if r, err := item.Read(record); err != nil || r == nil || r.State != store.Done || r.PK == "" {
		t.Errorf("the record: %+v, %v", r, err)
	}
	for name, it := range map[string]map[string]types.AttributeValue{
		"nothing": nil, "no key": without("pk"), "no version": without("v"), "no state": without("st"),
		"a key that is no text": {"pk": tabletest.Num(1), "v": record["v"], "st": record["st"]},
	} {
		if r, err := item.Read(it); r != nil || err != nil {
			t.Errorf("%s: %+v, %v, want no record", name, r, err)
		}
	}
	newer := without()
	newer["v"] = tabletest.Num(99)
	if r, err := item.Read(newer); r != nil || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("another layout: %+v, %v", r, err)
	}
}

func TestNewRefusesWhatCantWork(t *testing.T) {
	t.Parallel()
	client := fakeAPI{}
	for name, tt := range map[string]struct {
		api   dynamo.API
		table string
		opt   func(*dynamo.Options)
		want  string
	}{
		"no client":           {nil, "table", nil, "api is nil"},
		"no table":            {client, "", nil, "table is empty"},
		"a table of one byte": {client, "t", nil, "is not the name"},
		"a URL":               {client, "https://example.com/table", nil, "is not the name"},
		"inline too large":    {client, "table", func(o *dynamo.Options) { o.Inline = 64<<10 + 1 }, "Options.Inline"},
		"inline of nothing":   {client, "table", func(o *dynamo.Options) { o.Inline = 0 }, "Options.Inline"},
		"inline negative":     {client, "table", func(o *dynamo.Options) { o.Inline = -1 }, "Options.Inline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := tt.opt
			if opt == nil {
				opt = func(*dynamo.Options) {}
			}
			if _, err := dynamo.New(tt.api, tt.table, opt); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	for _, limit := range []func(*dynamo.Options){
		func(o *dynamo.Options) { o.Inline = 1 }, func(o *dynamo.Options) { o.Inline = 64 << 10 },
	} {
		if _, err := dynamo.New(client, "table", limit); err != nil {
			t.Error(err)
		}
	}
	for _, table := range []string{"idempotency", "a.b-c_D1", "arn:aws:dynamodb:eu-central-1:123456789012:table/idempotency"} {
		if _, err := dynamo.New(client, table); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

type fakeAPI struct{ dynamo.API }

// The Region in which a record was claimed is read with it: an application in several
// Regions has one table for each.
func TestRegionOfTheClaim(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	s, err := dynamo.New(&fakedynamo.DB{}, goldenTable)
	if err != nil {
		t.Fatal(err)
	}
	r := formatRecord()
	r.Region = ""
	if held, err := s.Claim(t.Context(), store.Claim{Next: r, Now: r.Created}); held != nil || err != nil {
		t.Fatal(held, err)
	}
	if got, err := s.Load(t.Context(), r.PK); err != nil || got.Region != "eu-west-1" {
		t.Errorf("the record is of Region %q, %v", got.Region, err)
	}
}

// Two engines of one store and namespace have the same keys: handlers of one kind
// without a name would take each other's work for done.
func TestTwoEnginesWithTheSameKeysOnOneStore(t *testing.T) {
	t.Parallel()
	onTable, err := dynamo.New(&fakedynamo.DB{}, "unnamed")
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]store.Store{"a table": onTable, "memory": &idem.MemoryStore{}}
	for _, step := range []struct {
		namespace, kind, name string
		ok                    bool
	}{
		{"a", "Direct", "", true},
		{"b", "Direct", "", true},
		{"a", "events.SNSEventRecord", "", true},
		{"a", "Direct", "refund", true},
		{"a", "Direct", "refund", true}, // another version of it, in a test: it has the same name
		{"a", "Direct", "", false},
		{"a", "events.SNSEventRecord", "", false},
	} {
		for name, st := range stores {
			e := idem.New(st, func(o *idem.Options) { o.Namespace = step.namespace })
			if err := e.AddOperation(step.kind, step.name); (err == nil) != step.ok {
				t.Errorf("%s: %+v: %v", name, step, err)
			}
		}
	}
	for name, st := range stores {
		off := idem.New(st, func(o *idem.Options) { o.Namespace, o.Mode = "a", idem.ModeOff })
		if err := off.AddOperation("Direct", ""); err != nil {
			t.Errorf("%s: a disabled engine: %v", name, err)
		}
	}
}
