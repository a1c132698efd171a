package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/item"
)

// failure is a record for which a run of a sweep could not do what is to be done.
// The pass goes on without it, as the record may fail for ever; the next run tries
// it first, as the pass may come by only in a day.
type failure struct {
	pk   string
	runs int64 // in which it has failed
}

const (
	// maxAgain is how many records wait for the next run: 100 bytes each of the
	// item that holds them.
	maxAgain = 1000
	// giveWayAfter is in how many runs a record has failed that makes way for
	// others, where there is no room: it waits for the pass then.
	giveWayAfter = 4
	// againBatch is how many are read before they are worked on.
	againBatch = 100
)

// room makes room for n more, and returns the list without those that make way;
// false if there are not enough of them.
func room(list []failure, n int) ([]failure, bool) {
	over := len(list) + n - maxAgain
	if over <= 0 {
		return list, true
	}
	left := make([]failure, 0, len(list))
	for _, f := range list {
		if over > 0 && f.runs >= giveWayAfter {
			over--
			continue
		}
		left = append(left, f)
	}
	return left, over <= 0
}

// later has the next run try records that failed in this one. It returns false,
// and nothing is noted, where too many wait already: then more than single records
// is out of order, and the pass waits, too, rather than leave a table behind that
// nobody has worked on. Each that waits makes way in the end.
func (p *pass) later(pks []string) bool {
	pks = pks[:min(len(pks), maxAgain)] // of one page: the rest is for the next pass
	list, ok := room(p.again, len(pks))
	if !ok {
		return false
	}
	for _, pk := range pks {
		list = append(list, failure{pk, 1})
	}
	p.again = list
	return true
}

// stillLater puts back what was taken and has failed once more: behind the others,
// so that a run without time for all begins with others than the last.
func (p *pass) stillLater(pks []string) bool {
	for _, pk := range pks {
		p.again = append(p.again, failure{pk, p.tried[pk] + 1})
	}
	return true
}

// take takes out the next n to be tried.
func (p *pass) take(n int) []failure {
	batch := slices.Clone(p.again[:n])
	p.again = p.again[n:]
	for _, f := range batch {
		p.tried[f.pk] = f.runs
	}
	return batch
}

// fresh leaves out the items that were tried in this run.
func (p *pass) fresh(items []item.Map) []item.Map {
	return slices.DeleteFunc(items, func(it item.Map) bool {
		_, tried := p.tried[item.PK(it)]
		return tried
	})
}

// joinAgain adds what failed in another sweep. What this one has tried since is no
// longer theirs to tell.
func (p *pass) joinAgain(theirs []failure) []failure {
	list := slices.Clone(p.again)
	for _, f := range theirs {
		_, tried := p.tried[f.pk]
		if !tried && !slices.ContainsFunc(list, func(own failure) bool { return own.pk == f.pk }) {
			list = append(list, f)
		}
	}
	return list
}

// again has see work on the records that failed before, until end: the rest of the
// time is the pass's.
func (s *Sweep) again(ctx context.Context, end time.Time, p *pass, see func([]item.Map, func([]string) bool) bool) error {
	var errs []error
	for todo := len(p.again); todo > 0 && !out(ctx, end); {
		batch := p.take(min(todo, againBatch))
		todo -= len(batch)
		var items []item.Map
		var unread []string
		for _, f := range batch {
			got, err := s.jobs.table.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.jobs.table.Name, Key: item.Key(f.pk), ConsistentRead: aws.Bool(true)})
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("dynamo: sweep: read again: %w", err))
				unread = append(unread, f.pk)
			case got.Item != nil:
				items = append(items, got.Item)
			}
		}
		p.stillLater(unread)
		see(items, p.stillLater)
	}
	return errors.Join(errs...)
}

// out reports whether there is no time left, by the wall clock. A zero end is
// never.
func out(ctx context.Context, end time.Time) bool {
	return ctx.Err() != nil || !end.IsZero() && !time.Now().Before(end)
}

// half is the middle of the time from now to end.
func half(end time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return end.Add(-time.Until(end) / 2)
}
