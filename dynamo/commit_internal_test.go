package dynamo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
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

// loading is a table from which a record can only be read.
type loading struct {
	fakeTable
	it item.Map
}

func (l *loading) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: l.it}, nil
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

// What a commit of a program that encrypts writes: of a sealed record only what differs,
// unless another handler takes it over. Its contents are bound to the handler, so they are
// sealed anew.
func TestCommitsOfAProgramThatEncrypts(t *testing.T) {
	t.Parallel()
	sealer := newSealer(t)
	s := &Store{inline: defaultInline, sealer: sealer}
	read := func(it item.Map) *store.Record {
		r, err := item.Decode(it)
		if err == nil {
			err = item.Unseal(t.Context(), sealer, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain, sealed := read(itemOf(t, nil)), read(itemOf(t, sealer))
	phased := sealed.Clone()
	phased.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
	withJob := plain.Clone()
	withJob.Jobs = map[string]store.Job{"0.0": {Kind: "k"}}
	renews := func(r *store.Record) { r.Lease = r.Lease.Add(time.Minute) }
	takes := func(r *store.Record) { renews(r); r.Owner = "c" }
	takesAs := func(r *store.Record) { takes(r); r.Handler.Name = "new" }
	for name, tt := range map[string]struct {
		prev *store.Record
		next func(*store.Record)
		want string
	}{
		"a renewal":                              {sealed, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a renewal of a plain record":            {plain, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a renewal of a plain record with jobs":  {withJob, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a job more":                             {withJob, func(r *store.Record) { r.Jobs = map[string]store.Job{"0.0": {Kind: "k"}, "1.0": {Kind: "k"}} }, "SET seal = :seal, ver = :ver1, jobs.#j1 = :j1"},
		"another tenant":                         {phased, func(r *store.Record) { takes(r); r.Tenant = "acme" }, "SET ver = :ver1, #owner = :owner1, tn = :tn, lease_ms = :lease_ms, phases = :phases, req = :req"},
		"a take-over":                            {sealed, takes, "SET ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
		"a take-over of a plain record":          {plain, takes, "SET seal = :seal, ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
		"a take-over by another handler":         {sealed, takesAs, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, req = :req"},
		"with phases":                            {phased, takesAs, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, phases = :phases, req = :req"},
		"with phases, and without the request":   {phased, func(r *store.Record) { takesAs(r); r.Input = nil }, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, phases = :phases REMOVE req"},
		"another handler takes over a plain one": {plain, takesAs, "SET seal = :seal, ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms"},
		"an operator ends a lease without a key": {plain, func(r *store.Record) { r.Owner, r.Lease = "c", time.Time{} }, "SET ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := tt.prev.Clone()
			next.Ver++
			tt.next(next)
			u, err := s.update(t.Context(), store.Commit{Prev: tt.prev, Next: next})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *u.expression()); diff != "" {
				t.Errorf("expression (-want +got):\n%s", diff)
			}
		})
	}
}

// A commit that is refused because jobs were acknowledged, parked or redriven meanwhile, or
// decided about, is made again of what is there now: it brings no job back, and loses none of its own.
func TestCommitIsMadeAgainWithTheJobsThatAreThere(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_000)
	first, theirs, mine := store.Decision{ID: "first"}, store.Decision{ID: "theirs"}, store.Decision{ID: "mine"}
	sent, parked, own := store.Job{Kind: "sent"}, store.Job{Kind: "parked", Failed: "down"}, store.Job{Kind: "own"}
	record := func(owner string, ver int64, jobs map[string]store.Job, settled ...store.Decision) *store.Record {
		return &store.Record{PK: "pk", Owner: owner, Ver: ver, State: store.Done, Jobs: jobs, Settled: settled}
	}
	prev := record("a", 1, map[string]store.Job{"1": sent, "2": {Kind: "parked"}}, first)
	held := record("a", 1, map[string]store.Job{"2": parked}, first, theirs)
	held.WaitSince = at
	for name, tt := range map[string]struct {
		next, want *store.Record
	}{
		"it stages a job": {
			record("a", 2, map[string]store.Job{"1": sent, "2": {Kind: "parked"}, "3": own}, first),
			record("a", 2, map[string]store.Job{"2": parked, "3": own}, first, theirs),
		},
		"it decides": {
			record("a", 2, map[string]store.Job{"1": sent, "2": {Kind: "parked"}}, first, mine),
			record("a", 2, map[string]store.Job{"2": parked}, first, theirs, mine),
		},
		"it does neither": {
			record("a", 2, map[string]store.Job{"1": sent, "2": {Kind: "parked"}}, first),
			record("a", 2, map[string]store.Job{"2": parked}, first, theirs),
		},
	} {
		tt.next.WaitSince, tt.want.WaitSince = at, at
		c := store.Commit{Prev: prev, Next: tt.next}
		before := *prev
		again, refused := withJobs(c, held)
		if diff := cmp.Diff(tt.want, again.Next); !refused || diff != "" {
			t.Errorf("%s: refused for its jobs: %t; (-want +got):\n%s", name, refused, diff)
		}
		want := before
		want.Jobs, want.Settled, want.WaitSince = held.Jobs, held.Settled, at
		if diff := cmp.Diff(&want, again.Prev); diff != "" {
			t.Errorf("%s: prev (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(&before, prev); diff != "" || c.Next != tt.next {
			t.Errorf("%s: the caller's commit was changed:\n%s", name, diff)
		}
	}
	c := store.Commit{Prev: prev, Next: record("a", 2, nil)}
	for name, other := range map[string]*store.Record{"none": nil, "another owner's": record("b", 1, nil), "a later one": record("a", 2, nil), "gone": {}} {
		if again, refused := withJobs(c, other); refused || again.Next != c.Next {
			t.Errorf("refused by %s: made again: %t", name, refused)
		}
	}
}

// crowded refuses each update, since the jobs of its record have changed.
type crowded struct {
	API
	held *store.Record
	n    int
}

func (f *crowded) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f.n++
	var v item.Values
	return nil, &types.ConditionalCheckFailedException{Item: v.Encode(f.held, nil)}
}

// After five times the commit is a conflict, and was not made. One that drops all jobs isn't
// sent again: they are not those that a person saw.
func TestCommitIsGivenUpWhileJobsChange(t *testing.T) {
	t.Parallel()
	jobs := map[string]store.Job{"1": {Kind: "mail", Failed: "down"}}
	prev := &store.Record{PK: "pk", Owner: "a", Ver: 1, ID: "i", State: store.Stuck, Keep: store.KeepOpen, Jobs: jobs, Created: time.UnixMilli(1), WaitSince: time.UnixMilli(2)}
	for name, tt := range map[string]struct {
		edit func(next *store.Record)
		want int
	}{
		"it goes on":        {func(*store.Record) {}, waitRounds},
		"it drops the jobs": {func(next *store.Record) { next.Jobs, next.Keep = nil, store.KeepFreed }, 1},
	} {
		f := &crowded{held: prev}
		s := &Store{api: f, table: "t", inline: 1}
		next := *prev
		next.Ver = 2
		tt.edit(&next)
		if held, err := s.Commit(t.Context(), store.Commit{Prev: prev, Next: &next}); !errors.Is(err, store.ErrConflict) || held != nil || f.n != tt.want {
			t.Errorf("%s: %+v, %v after %d tries, want %d", name, held, err, f.n, tt.want)
		}
	}
}

// Calls count, too: after a commit with them a take-over still fits.
func TestRoomForCallsBesideAResult(t *testing.T) {
	t.Parallel()
	for calls, fits := range map[int]bool{1: true, 508: false} {
		r := &store.Record{Phases: []store.Phase{{Name: "one", Result: make([]byte, 375<<10)}}, Calls: make(map[string]int)}
		for i := range calls {
			r.Calls[fmt.Sprintf("payments/charge-of-item-%04d", i)] = 1
		}
		if n := atMost(r); (n <= maxItem-state.Room) != fits {
			t.Errorf("%d calls beside 375 KB: %d bytes at most; they leave room: %t", calls, n, fits)
		}
	}
}

// What a record has beside its phases counts, too: its stored request, to the byte, with its
// query and with what may come into the record of its body.
func TestRoomForARequestBesidePhases(t *testing.T) {
	t.Parallel()
	record := func(query, body int) *store.Record {
		return &store.Record{
			PK: "pk", Owner: "o", Ver: 1, ID: "i", State: store.Open, Phases: []store.Phase{{Name: "one", Result: []byte("1")}},
			Input: &store.Input{Method: "POST", Path: "/", Query: strings.Repeat("q", query), Body: make([]byte, body)},
		}
	}
	for query, fits := range map[int]bool{1000: true, maxItem - state.Room - 2000: true, maxItem - state.Room: false} {
		if err := leavesRoom(&nothing, record(query, 0), nil, nil); (err == nil) != fits || err != nil && !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("a query of %d bytes: %v", query, err)
		}
		s, _, _, _ := partsOf(1, 0)
		if _, err := s.Claim(t.Context(), store.Claim{Next: record(query, 0), Now: time.Now()}); errors.Is(err, store.ErrTooLarge) == fits {
			t.Errorf("a claim with a query of %d bytes: %v", query, err)
		}
	}
	const rest = maxItem - state.Room - 2000
	for body, fits := range map[int]bool{1000: true, 3000: false, maxInline: false} {
		if err := leavesRoom(&nothing, record(rest, body), nil, nil); (err == nil) != fits {
			t.Errorf("a body of %d bytes beside %d: %v", body, rest, err)
		}
	}
	// Of a body in other items nothing comes into the record.
	r := record(rest, maxInline)
	r.Input.Overflow = &store.Overflow{Owner: "o", Count: 1, Length: maxInline}
	if err := leavesRoom(&nothing, r, nil, nil); err != nil {
		t.Errorf("a body in other items: %v", err)
	}
}

// While a key has two places, the record beside it may be another caller's request. It
// says nothing while another write on the key's own place hides that place's record: its
// reader would be told to take a new key.
func TestConflictIsToldBeforeTheRecordBeside(t *testing.T) {
	t.Parallel()
	conflict := types.CancellationReason{Code: aws.String("TransactionConflict")}
	refusal := func(pk string) types.CancellationReason {
		var v item.Values
		return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: v.Encode(&store.Record{PK: pk, Owner: "o", Ver: 1, ID: "i", State: store.Open, Keep: store.KeepOpen}, nil)}
	}
	for name, tt := range map[string]struct {
		reasons []types.CancellationReason
		held    string
		want    error
	}{
		"a conflict, and a record beside": {[]types.CancellationReason{conflict, refusal("beside")}, "", store.ErrConflict},
		"a record, and a conflict beside": {[]types.CancellationReason{refusal("own"), conflict}, "own", nil},
		"two records":                     {[]types.CancellationReason{refusal("own"), refusal("beside")}, "own", nil},
		"a record beside":                 {[]types.CancellationReason{{Code: aws.String("None")}, refusal("beside")}, "beside", nil},
	} {
		held, err := why(tt.reasons, len(tt.reasons), nil, errors.New("cancelled"))
		if !errors.Is(err, tt.want) || (held == nil) != (tt.held == "") || held != nil && held.PK != tt.held {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
	}
}

// refusing is a table that refuses transactions.
type refusing struct {
	API
	err error
}

func (r refusing) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return nil, r.err
}

// Of several reasons for a refusal, the one counts that the caller can act upon: the
// record first, then what passes by itself, then the user's conditions.
func TestWhyATransactionWasRefused(t *testing.T) {
	t.Parallel()
	reason := func(code string) types.CancellationReason { return types.CancellationReason{Code: aws.String(code)} }
	const failed = "ConditionalCheckFailed"
	none, conditional := reason("None"), reason(failed)
	withRecord := conditional
	withRecord.Item = itemOf(t, nil)
	tooLarge := reason("ValidationError")
	tooLarge.Message = aws.String("Item size to update has exceeded the maximum allowed size")
	changed := conditional
	changed.Item = item.Map{"x": str("new")}
	same := conditional
	same.Item = item.Map{"x": str("old")}
	cancelled := func(rs ...types.CancellationReason) error {
		return &types.TransactionCanceledException{CancellationReasons: rs}
	}
	for name, tt := range map[string]struct {
		err    error
		record string // the owner of the record that refused; "-": there is none
		want   error
	}{
		"the record":                     {cancelled(withRecord, conditional, reason("TransactionConflict")), "b", nil},
		"the record, which is gone":      {cancelled(conditional, none, none), "-", nil},
		"a conflict":                     {cancelled(none, reason("TransactionConflict"), none), "", store.ErrConflict},
		"a conflict, of the record":      {cancelled(reason("TransactionConflict"), none, none), "", store.ErrConflict},
		"throttled":                      {cancelled(none, none, reason("ThrottlingError")), "", store.ErrUnknown},
		"no units":                       {cancelled(none, none, reason("ProvisionedThroughputExceeded")), "", store.ErrUnknown},
		"a double":                       {cancelled(none, none, reason("DuplicateItem")), "", store.ErrConflict},
		"a condition":                    {cancelled(none, conditional, none), "", store.ErrCondition},
		"a condition, and no codes":      {cancelled(types.CancellationReason{}, conditional, types.CancellationReason{}), "", store.ErrCondition},
		"a condition, and a conflict":    {cancelled(none, conditional, reason("TransactionConflict")), "", store.ErrConflict},
		"what was read has changed":      {cancelled(none, none, changed), "", store.ErrChanged},
		"what was read, and a condition": {cancelled(none, conditional, changed), "", store.ErrChanged},
		"another condition of that":      {cancelled(none, none, same), "", store.ErrCondition},
		"the record is too large":        {cancelled(tooLarge, none, none), "", store.ErrTooLarge},
		"an item is too large":           {cancelled(none, tooLarge, none), "", store.ErrWrite},
		"the record is invalid":          {cancelled(reason("ValidationError"), none, none), "", store.ErrWrite},
		"no reason":                      {cancelled(none, none, none), "", store.ErrConflict},
		"too few reasons":                {cancelled(conditional), "", store.ErrUnknown},
		"no answer":                      {errors.New("connection reset"), "", store.ErrUnknown},
	} {
		s := &Store{api: refusing{err: tt.err}, table: "t"}
		mine := []*Write{Delete("mine", map[string]string{"id": "2"}), {verb: "check", table: "mine", key: id("1"), read: item.Map{"x": str("old")}, found: true}}
		held, err := s.transact(t.Context(), make([]types.TransactWriteItem, 1), nil, mine)
		owner := ""
		if held != nil {
			owner = "-"
			if held.State != store.None {
				owner = held.Owner
			}
		}
		if owner != tt.record || !errors.Is(err, tt.want) {
			t.Errorf("%s: %q, %v, want %q, %v", name, owner, err, tt.record, tt.want)
		}
	}
}

// TestTableNames compares the form of names with its regular expression.
func TestTableNames(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-zA-Z0-9:/_.-]+)$`)
	names := []string{
		"", "ab", "abc", "a.b-c_D9", "samekey:", "sämekey", "same key", "same/key", "arn", "arn:", "arn:x", "arn:\n", "arnold", "arnold:x",
		"arn:aws:dynamodb:eu-central-1:123456789012:table/samekey", "arn:aws:dynamodb:eu-central-1:123456789012:table/same key",
		strings.Repeat("n", 255), strings.Repeat("n", 256), "arn:" + strings.Repeat("n", 300),
	}
	for c := range rune(256) {
		names = append(names, "ab"+string(c), "arn:ab"+string(c), string(c)+"arn:ab")
	}
	for _, name := range names {
		if got, want := tableName(name), form.MatchString(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
