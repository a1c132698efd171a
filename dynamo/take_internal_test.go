package dynamo

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

// fakeTable answers a take-over with an item, and remembers the updates.
type fakeTable struct {
	API
	claimed item.Map
	answer  item.Map
	updates []*dynamodb.UpdateItemInput
	limits  []time.Duration // what each update may take; 0: without a limit
}

func (f *fakeTable) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	f.claimed = in.Item
	return &dynamodb.PutItemOutput{}, nil
}

func (f *fakeTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f.updates = append(f.updates, in)
	var limit time.Duration
	if at, ok := ctx.Deadline(); ok {
		limit = time.Until(at)
	}
	f.limits = append(f.limits, limit)
	return &dynamodb.UpdateItemOutput{Attributes: f.answer}, ctx.Err()
}

// itemOf returns the item of a record with a stored request, as a store with sealer
// writes it.
func itemOf(t *testing.T, sealer *seal.Sealer) item.Map {
	t.Helper()
	var f fakeTable
	now := time.UnixMilli(1_000_000)
	r := &store.Record{
		PK: "v1##k", State: store.Open, Owner: "b", Ver: 8, ID: "i", Fingerprint: "f", Lease: now.Add(time.Minute), Keep: store.KeepOpen,
		Created: now, Run: now, Input: &store.Input{Method: "POST", Path: "/"},
	}
	s := &Store{api: &f, table: "t", inline: defaultInline, sealer: sealer}
	if held, err := s.Claim(t.Context(), store.Claim{Next: r, Now: now}); held != nil || err != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	return f.claimed
}

func newSealer(t *testing.T, optFns ...func(*seal.Options)) *seal.Sealer {
	t.Helper()
	p, err := seal.NewStatic("one", map[string][]byte{"one": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return seal.New(p, optFns...)
}

// values are the simple ones of an expression.
func values(args item.Map) map[string]string {
	all := make(map[string]string)
	for name, v := range args {
		switch v := v.(type) {
		case *types.AttributeValueMemberN:
			all[name] = v.Value
		case *types.AttributeValueMemberS:
			all[name] = v.Value
		}
	}
	return all
}

// A take-over counts one try, says who took the record, and raises the version by one.
// Its condition names each function and each handler once.
func TestTakeCountsATry(t *testing.T) {
	t.Parallel()
	f := &fakeTable{answer: itemOf(t, nil)}
	now := time.UnixMilli(5_000)
	rec, taken, err := (&Store{api: f, table: "t"}).Take(t.Context(), store.Take{
		PK: "v1##k", Owner: "a", Ver: 7, Released: true, Now: now, NewOwner: "b", Lease: now.Add(time.Minute), Tenant: "acme",
		Handlers: []store.HandlerID{{Function: "fn", Name: "one"}, {Name: "alone"}, {Function: "fn", Name: "two"}, {Function: "fn"}},
	})
	if rec == nil || !taken || err != nil || rec.Owner != "b" {
		t.Fatalf("got %+v, %t, %v", rec, taken, err)
	}
	in := f.updates[0]
	want := map[string]string{
		":owner": "a", ":ver": "7", ":v": "1", ":open": "open", ":zero": "0", ":owner1": "b", ":ver1": "8", ":lease": "65000", ":now": "5000", ":one": "1",
		":fn0": "fn", ":hn0_0": "one", ":hn0_1": "two", ":hn1_0": "alone", ":tn": "acme",
	}
	if diff := cmp.Diff(want, values(in.ExpressionAttributeValues)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	const whose = " AND (fn = :fn0 AND (attribute_not_exists(hn) OR hn IN (:hn0_0, :hn0_1)) OR attribute_not_exists(fn) AND (hn IN (:hn1_0))) AND tn = :tn"
	if want := takeCondition + takeReleased + whose; *in.ConditionExpression != want {
		t.Errorf("condition %s, want %s", *in.ConditionExpression, want)
	}
	if got := text(in.ExpressionAttributeValues[":hand"]); got != `[{"k":"completer","t":5000}]` {
		t.Errorf("the handover is written as %s", got)
	}
}

// A take-over sets the life of the taker's records, and leaves the default out.
func TestTakeSetsTheLife(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		take store.Take
		want string
		args map[string]string
	}{
		"the default": {store.Take{Retention: 24 * time.Hour}, " REMOVE tomb_s, retain_s", map[string]string{}},
		"longer":      {store.Take{Retention: 72 * time.Hour}, ", retain_s = :retain_s REMOVE tomb_s", map[string]string{":retain_s": "259200"}},
		"both": {
			store.Take{Retention: 72 * time.Hour, Tombstone: time.Minute},
			", tomb_s = :tomb_s, retain_s = :retain_s",
			map[string]string{":retain_s": "259200", ":tomb_s": "60"},
		},
	} {
		args := make(item.Map)
		if got := lasts(new(item.Values), tt.take, args); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
		if diff := cmp.Diff(tt.args, values(args)); diff != "" {
			t.Errorf("%s: values (-want +got):\n%s", name, diff)
		}
	}
}

// DynamoDB takes at most 100 values in an IN.
func TestTakeOfManyHandlers(t *testing.T) {
	t.Parallel()
	many := make([]store.HandlerID, 101)
	for i := range many {
		many[i].Name = strconv.Itoa(i + 1)
	}
	in := strings.Split(handlers(new(item.Values), many, make(item.Map)), " OR ")
	if len(in) != 2 || strings.Count(in[0], ":hn") != 100 || strings.Count(in[1], ":hn") != 1 {
		t.Errorf("got %q", in)
	}
}

// loading is a table from which a record can only be read.
type loading struct {
	fakeTable
	it item.Map
}

func (l *loading) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: l.it}, nil
}

// An expression has at most 4 KB: with more names of handlers Take reads the record, and the
// engine decides.
func TestTakeOfMoreHandlersThanAnExpressionTakes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 300, 420, 5000} {
		l := &loading{fakeTable: fakeTable{answer: itemOf(t, nil)}, it: itemOf(t, nil)}
		many := make([]store.HandlerID, n)
		for i := range many {
			many[i] = store.HandlerID{Function: "f", Name: strconv.Itoa(i)}
		}
		now := time.UnixMilli(5_000)
		rec, taken, err := (&Store{api: l, table: "t"}).Take(t.Context(), store.Take{PK: "v1##k", Owner: "b", Ver: 8, Now: now, NewOwner: "c", Lease: now, Handlers: many})
		if err != nil || rec == nil || rec.ID != "i" || taken == (n > 400) {
			t.Errorf("%d handlers: got %+v, taken: %t, %v", n, rec, taken, err)
		}
		for _, in := range l.updates {
			if len(*in.ConditionExpression) > 4096 || n > 400 {
				t.Errorf("%d handlers: a condition of %d bytes was sent", n, len(*in.ConditionExpression))
			}
		}
	}
}

// Without handlers nothing is taken: the condition can't hold.
func TestTakeWithoutHandlers(t *testing.T) {
	t.Parallel()
	if got := handlers(new(item.Values), nil, make(item.Map)); got != " AND attribute_not_exists(pk)" {
		t.Errorf("got %q", got)
	}
}

// An answer that can't be read is no take-over. The record is given back only if its
// contents can't be opened: without that, a try more would be counted.
func TestTakeThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	plain, sealed := itemOf(t, nil), itemOf(t, newSealer(t))
	broken := itemOf(t, nil)
	broken["ver"] = &types.AttributeValueMemberS{Value: "eight"}
	for name, tt := range map[string]struct {
		answer  item.Map
		sealer  *seal.Sealer
		want    error
		untakes bool
	}{
		"no item":      {nil, nil, store.ErrUnknown, false},
		"not a record": {broken, nil, store.ErrCorrupt, false},
		"not sealed":   {plain, newSealer(t, func(o *seal.Options) { o.Required = true }), store.ErrCorrupt, false},
		"not opened":   {sealed, nil, store.ErrSealed, true},
	} {
		f := &fakeTable{answer: tt.answer}
		ctx, cancel := context.WithCancel(t.Context())
		rec, taken, err := (&Store{api: f, table: "t", sealer: tt.sealer}).Take(ctx, store.Take{PK: "v1##k", Owner: "a", Ver: 7, NewOwner: "b"})
		cancel()
		if rec != nil || taken || !errors.Is(err, tt.want) {
			t.Errorf("%s: got %+v, %t, %v", name, rec, taken, err)
		}
		if (len(f.updates) == 2) != tt.untakes {
			t.Errorf("%s: %d updates", name, len(f.updates))
			continue
		}
		if !tt.untakes {
			continue
		}
		in := f.updates[1]
		want := map[string]string{":owner": "b", ":ver": "8", ":ver1": "9", ":zero": "0", ":one": "1"}
		if diff := cmp.Diff(want, values(in.ExpressionAttributeValues)); diff != "" || *in.ConditionExpression != holderCondition {
			t.Errorf("given back on %s (-want +got):\n%s", *in.ConditionExpression, diff)
		}
		if limit := f.limits[1]; limit <= 0 || limit > 2*time.Second {
			t.Errorf("giving it back may take %v", limit)
		}
	}
}
