package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// held claims a record, and brings it to version 2.
func (tab *table) held(t testing.TB) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (rand.Text() + rand.Text())[:43], State: store.Open, Owner: rand.Text(), Ver: 1, ID: rand.Text(), Fingerprint: "f",
		Lease: now.Add(time.Minute), Expires: now.Add(time.Hour).Truncate(time.Second), Created: now, Run: now,
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	next := r.Clone()
	next.Ver, next.LastErr = 2, "it failed"
	if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	return next
}

// seen is r as somebody saw it who is late.
func seen(r *store.Record) map[string]*store.Record {
	other, old, newer := r.Clone(), r.Clone(), r.Clone()
	other.Owner = rand.Text()
	old.Ver--
	newer.Ver++
	return map[string]*store.Record{"another owner": other, "an old version": old, "a later version": newer}
}

// A program that can't read a record must not take it over: after that nobody else
// could for as long as its lease lasts.
func TestRecordOfANewerLayoutIsNotTaken(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (rand.Text() + rand.Text())[:43], State: store.Open, Owner: rand.Text(), Ver: 1, ID: rand.Text(), Fingerprint: "f",
		Lease: now.Add(-time.Minute), Keep: store.KeepOpen, Created: now, Run: now, Input: &store.Input{Method: "POST", Path: "/"},
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	it := tab.Items(t)[0]
	it["v"] = &types.AttributeValueMemberN{Value: "2"}
	tab.Put(t, it)
	_, taken, err := tab.Store.Take(t.Context(), state.WithFrom(store.Take{
		PK: r.PK, Owner: r.Owner, Ver: r.Ver, Now: now, Handlers: []store.HandlerID{{}}, NewOwner: rand.Text(), Lease: now,
	}))
	if taken || !errors.Is(err, idem.ErrCorrupt) {
		t.Errorf("taken: %t, %v", taken, err)
	}
	if diff := cmp.Diff(it, tab.Items(t)[0], anyValue); diff != "" {
		t.Errorf("the record was written (-before +after):\n%s", diff)
	}
}

// refusedCommit fails the test unless a commit is refused and nothing is written.
func (tab *table) refusedCommit(t *testing.T, r *store.Record, c store.Commit) {
	t.Helper()
	held, err := tab.Store.Commit(t.Context(), c)
	if err != nil || held == nil || held.Owner != r.Owner || held.Ver != r.Ver {
		t.Errorf("got %+v, %v; want it refused with the record", held, err)
	}
	if now, err := tab.Store.Load(t.Context(), r.PK); err != nil || cmp.Diff(held, now, cmpopts.IgnoreFields(store.Record{}, "Seal")) != "" {
		t.Errorf("the record was written: %+v, %v", now, err)
	}
}

// A write with the user's items names the owner and the version as any other
// does: nothing of it is applied unless both are as seen.
//
//nolint:tparallel // one table, looked at in the end
func TestMergedWritesAreConditional(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	write := []idem.Write{dynamo.Put(app, order{ID: "never"})}
	r := tab.held(t)
	for name, prev := range seen(r) {
		t.Run(name+" in a commit", func(t *testing.T) {
			next := prev.Clone()
			next.Ver++
			next.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
			tab.refusedCommit(t, r, store.Commit{Prev: prev, Next: next, Writes: write})
		})
	}
	if _, found := tabletest.Read[order](t, tab.Table, app, "never"); found {
		t.Error("the user's item was written")
	}
}

func TestTakeOverIsConditional(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.held(t)
	for by, tries := range map[string]int{"a client": 0, "a completer": 1} {
		for name, prev := range seen(r) {
			t.Run(name+" seen by "+by, func(t *testing.T) {
				t.Parallel()
				next := prev.Clone()
				next.Owner, next.Ver, next.Tries = rand.Text(), prev.Ver+1, prev.Tries+tries
				tab.refusedCommit(t, r, store.Commit{Prev: prev, Next: next})
			})
		}
	}
}

// reader remembers how items were read.
type reader struct {
	*dynamodb.Client
	strong []bool
}

func (r *reader) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.strong = append(r.strong, aws.ToBool(in.ConsistentRead))
	return r.Client.GetItem(ctx, in, optFns...)
}

// DynamoDB Local never gives an old answer: only the request shows that DynamoDB
// wouldn't either.
func TestReadsThatDecideAreStrong(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	api := &reader{Client: tab.Client}
	st, err := dynamo.New(api, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	r := tab.held(t)
	finished := r.Clone()
	finished.State, finished.Ver, finished.Response = store.Done, 3, &idem.Response{Status: 200, Body: []byte(randomText(9 << 10))}
	if held, err := st.Commit(t.Context(), store.Commit{Prev: r, Next: finished}); held != nil || err != nil {
		t.Fatal(held, err)
	}
	for _, tt := range []struct {
		name string
		read func() error
	}{
		{"Load", func() error { _, err := st.Load(t.Context(), r.PK); return err }},
		{"LoadBody", func() error {
			now, err := tab.Store.Load(t.Context(), r.PK)
			return errors.Join(err, st.LoadBody(t.Context(), now))
		}},
		{"Get", func() error {
			_, err := tab.Engine().Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					_, err := dynamo.Get(ctx, tx, api, app, tabletest.ID("none"), &order{})
					return idem.Response{Status: 200}, err
				})
			})
			return err
		}},
	} {
		api.strong = nil
		if err := tt.read(); err != nil || !cmp.Equal(api.strong, []bool{true}) {
			t.Errorf("%s: strong %v, %v; want one strong read", tt.name, api.strong, err)
		}
	}
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
	c := store.Commit{Prev: prev, Next: next, Writes: []idem.Write{dynamo.Put(app, order{ID: "once"}).If("attribute_not_exists(id)")}}
	if held, err := tab.Store.Commit(t.Context(), c); held != nil || err != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	if held, err := tab.Store.Commit(t.Context(), c); err != nil || held == nil || held.Owner != next.Owner || held.Ver != next.Ver {
		t.Errorf("sent again: %+v, %v; want the record as committed", held, err)
	}
}

// A conflict may be what made a condition untrue: with both, the phase runs again
// instead of telling the user.
func TestConflictIsToldBeforeACondition(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	tab.Transport.Fault = tabletest.On("TransactWriteItems", 1, dynamotest.CancelTransaction("", "ConditionalCheckFailed", "TransactionConflict"))
	runs := 0
	_, err := tab.Engine().Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			runs++
			tx.Write(dynamo.Put(app, order{ID: "a"}).If("attribute_not_exists(id)"), dynamo.Put(app, order{ID: "b"}))
			return idem.Response{Status: 201}, nil
		})
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs", err, runs)
	}
}
