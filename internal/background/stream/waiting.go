package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// QueryAPI is the part of *dynamodb.Client that [Waiting] uses.
type QueryAPI interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

var _ QueryAPI = (*dynamodb.Client)(nil)

// ErrNoIndex is matched by errors of [Waiting] if the table has no index of what waits
// for people, or if the index is still being built. [Sweep.List] needs no index.
var ErrNoIndex = errors.New("the table has no index of what waits for people")

// A Waiting lists and counts what waits for people. It reads an index that holds only
// what waits for people, so its work doesn't grow with the table. A Waiting is safe for
// concurrent use.
//
// DynamoDB updates the index after the table, usually within a second. So an entry may be out of
// date, and a new entry may be missing. Read the record before you act on its entry, as the
// engine's Settle and [Redrive] do. If a record began to wait under an earlier version of Samekey,
// its entry may be missing until a sweep has seen the record.
//
// A record has one entry, even if it waits for several reasons. The entry names the
// reason that comes first in [WaitingReasons]. If the reason is [state.ReasonParked],
// the entry also names the record's first parked job. The index lacks operations that
// need no person, such as abandoned operations. [Sweep] lists them.
type Waiting struct {
	api   QueryAPI
	table string
	opt   WaitingOptions
}

// WaitingOptions are the settings of a [Waiting]; the zero value is the default.
type WaitingOptions struct {
	// Only has the reasons whose entries are listed and counted. Default: [WaitingReasons].
	Only []state.Reason
	// After is the entry after which [Waiting.All] begins. Only its fields Since and PK are used.
	// Default: All begins with the oldest entry.
	After Entry
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// WaitingReasons returns the reasons for which a record waits for people, in the order of
// precedence.
func WaitingReasons() (all []state.Reason) {
	for _, name := range state.ReasonNames(true) {
		all = append(all, state.Reason(name))
	}
	return all
}

// NewWaiting returns a [Waiting] for the table of store. The Waiting queries the
// table's index with api. NewWaiting panics if api or store is nil, or if
// [WaitingOptions.Only] has a reason that [WaitingReasons] lacks.
func NewWaiting(api QueryAPI, store *dynamo.Store, optFns ...func(*WaitingOptions)) *Waiting {
	var opt WaitingOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	foreign := func(why state.Reason) bool { return !slices.Contains(WaitingReasons(), why) }
	if api == nil || store == nil || slices.ContainsFunc(opt.Only, foreign) {
		panic("stream: NewWaiting: api and store must not be nil, and Only has reasons to wait for people") //nolint:forbidigo // a mistake in the program
	}
	if len(opt.Only) == 0 {
		opt.Only = WaitingReasons()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Waiting{api, store.Table().Name, opt}
}

// Counted is how many entries wait for people, and for how long.
type Counted struct {
	Count int `json:"count"`
	// Oldest is how long the oldest entry has waited, in whole seconds; 0 if nothing waits.
	Oldest int64 `json:"oldest_s"`
	// ByReason has a Tally for each reason in [WaitingOptions.Only], even if the count is 0.
	ByReason map[state.Reason]Tally `json:"by_reason"`
}

// Count counts the entries that wait for people. It reads all these entries. Half a
// read unit pays for 4 KB, which is about ten entries. If nothing waits, Count costs 4
// read units for each reason in [WaitingOptions.Only]: 20 by default.
func (w *Waiting) Count(ctx context.Context) (*Counted, error) {
	parts := w.parts(time.Time{})
	tallies, err := inParallel(parts, func(p *part) (Tally, error) { return w.count(ctx, p) })
	if err != nil {
		return nil, err
	}
	all := &Counted{ByReason: make(map[state.Reason]Tally)}
	for i, p := range parts {
		sum := all.ByReason[p.why]
		sum.Count += tallies[i].Count
		sum.Oldest = max(sum.Oldest, tallies[i].Oldest)
		all.ByReason[p.why] = sum
		all.Count += tallies[i].Count
		all.Oldest = max(all.Oldest, sum.Oldest)
	}
	return all, nil
}

// All returns the entries that wait for people, the oldest first. It reads ahead in
// each partition of the index. The first error ends the sequence.
func (w *Waiting) All(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		parts := w.parts(w.opt.After.Since)
		if _, err := inParallel(parts, func(p *part) (any, error) { return nil, w.fill(ctx, p) }); err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			p := oldest(parts)
			if p == nil {
				return
			}
			e := p.ready[0]
			p.ready = p.ready[1:]
			if byAge(e, w.opt.After) > 0 && !yield(e, nil) {
				return
			}
			if err := w.fill(ctx, p); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// part is a partition of the index, and the progress of reading it.
type part struct {
	why   state.Reason
	key   string    // the partition key in the index
	since time.Time // where to begin
	limit int32     // size of the next page

	next  item.Map // where the next page begins
	read  bool     // whether the partition was read to its end
	ready []Entry  // entries to return next, in order
	held  []Entry  // entries with the latest Since that was read; returned once all entries with this Since are read
}

// Sizes of pages. The first page of a partition is small and cheap. Each later page is moreLimit
// times as large as the one before, up to mostLimit entries.
const (
	firstLimit = 25
	moreLimit  = 4
	mostLimit  = 2000
)

func (w *Waiting) parts(since time.Time) (all []*part) {
	for _, why := range w.opt.Only {
		for _, key := range item.WaitKeys(why) {
			all = append(all, &part{why: why, key: key, since: since, limit: firstLimit})
		}
	}
	return all
}

// parallel is how many partitions are read at once.
const parallel = 10

func inParallel[T any](parts []*part, do func(*part) (T, error)) ([]T, error) {
	results, errs := make([]T, len(parts)), make([]error, len(parts))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, p := range parts {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = do(p)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (w *Waiting) query(ctx context.Context, p *part, edit func(*dynamodb.QueryInput)) (*dynamodb.QueryOutput, error) {
	var v item.Values
	condition := item.AttrWait + " = :wait"
	args := item.Map{":wait": v.Str(p.key), ":now": v.Secs(w.opt.Now())}
	if !p.since.IsZero() {
		condition += " AND " + item.AttrSince + " >= :since"
		args[":since"] = v.Millis(p.since)
	}
	in := &dynamodb.QueryInput{
		TableName: &w.table, IndexName: aws.String(item.WaitIndex),
		KeyConditionExpression: &condition,
		// TTL deletes late, so the index may still have expired records and findings: leave them
		// out.
		FilterExpression:          aws.String("attribute_not_exists(exp_s) OR exp_s >= :now"),
		ExpressionAttributeValues: args,
		ExclusiveStartKey:         p.next,
	}
	edit(in)
	out, err := w.api.Query(ctx, in)
	switch {
	case item.NoIndex(err):
		return nil, fmt.Errorf("dynamo: waiting: %w: %w", ErrNoIndex, err)
	case err != nil:
		return nil, item.ReadError("waiting", err)
	}
	p.next, p.read = out.LastEvaluatedKey, len(out.LastEvaluatedKey) == 0
	return out, nil
}

// Waiting.fill reads on until an entry of p is ready, or until the end of p.
func (w *Waiting) fill(ctx context.Context, p *part) error {
	for len(p.ready) == 0 && !p.read {
		out, err := w.query(ctx, p, func(in *dynamodb.QueryInput) { in.Limit = &p.limit })
		if err != nil {
			return err
		}
		p.limit = min(moreLimit*p.limit, mostLimit)
		for _, it := range out.Items {
			p.held = append(p.held, indexed(p.why, it))
		}
		// DynamoDB returns entries with the same Since in any order, so they are sorted by PK here
		// once all of them are read.
		slices.SortFunc(p.held, byAge)
		n := len(p.held)
		for n > 0 && !p.read && p.held[n-1].Since.Equal(p.held[len(p.held)-1].Since) {
			n--
		}
		p.ready, p.held = p.held[:n:n], slices.Clone(p.held[n:])
	}
	return nil
}

func (w *Waiting) count(ctx context.Context, p *part) (t Tally, _ error) {
	for found := false; !p.read; {
		out, err := w.query(ctx, p, func(in *dynamodb.QueryInput) {
			if found {
				in.Select = types.SelectCount
				return
			}
			in.Limit, in.ProjectionExpression = aws.Int32(firstLimit), aws.String(item.AttrSince)
		})
		if err != nil {
			return t, err
		}
		t.Count += int(out.Count)
		if !found && len(out.Items) > 0 {
			d := item.Decoder{It: out.Items[0]}
			t.Oldest = max(0, int64(w.opt.Now().Sub(d.Milli(item.AttrSince, true))/time.Second))
			found = true
		}
	}
	return t, nil
}

// oldest returns the part with the oldest entry; nil if no part has an entry.
func oldest(parts []*part) (first *part) {
	for _, p := range parts {
		if len(p.ready) > 0 && (first == nil || byAge(p.ready[0], first.ready[0]) < 0) {
			first = p
		}
	}
	return first
}

// byAge orders entries by Since, the oldest first, and entries with the same Since by
// PK.
func byAge(a, b Entry) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.PK, b.PK)) }

// indexed returns an entry of the index. Fields that can't be read stay empty, so that
// a damaged entry doesn't end the list.
func indexed(why state.Reason, it item.Map) Entry {
	text := func(name string) string { d := item.Decoder{It: it}; return d.Text(name, false) }
	milli := func(name string) time.Time { d := item.Decoder{It: it}; return d.Milli(name, false) }
	at := (&item.Decoder{It: it}).WaitIn()
	tries := int((&item.Decoder{It: it}).Number(item.AttrTries, false))
	if at.Job != "" {
		tries = at.Tries
	}
	pk := cmp.Or(text(item.AttrAbout), item.PK(it))
	return Entry{
		Reason: why, PK: pk, Record: redact.Record(pk), ID: text(item.AttrID), Function: text(item.AttrFn), Handler: text(item.AttrHandler),
		Route: text(item.AttrRoute), Phase: at.Phase, Tries: tries, LastErr: cmp.Or(at.Failed, text(item.AttrLastErr)),
		Created: milli(item.AttrCreated), Run: cmp.Or(milli(item.AttrRun), milli(item.AttrCreated)), Since: milli(item.AttrSince), Job: at.Job, Kind: at.Kind,
	}
}
