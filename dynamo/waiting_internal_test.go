package dynamo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
)

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
