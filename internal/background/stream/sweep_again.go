package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/item"
)

// failure is a record that a run of a sweep failed to handle. The pass goes on without
// the record, since it may fail for ever. The next run tries the record before it
// scans, since the scan may reach the record only a day later.
type failure struct {
	pk   string
	runs int64 // how many runs have failed to handle the record
}

const (
	// maxAgain is the maximum number of failed records that the cursor lists for the
	// next run. Each takes 100 bytes of the cursor's item.
	maxAgain = 1000
	// A record leaves the list after giveWayAfter failed runs, if other records need its place.
	giveWayAfter = 4
	// againBatch is how many records are read, and then processed together.
	againBatch = 100
)

// pass.later adds the records pks, which failed in this run, to the list for the next
// run. If the list is full, records with giveWayAfter or more failed runs make room.
// Records of pks that still find no room wait for the next pass.
func (p *pass) later(pks []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := len(p.again) + len(pks) - maxAgain
	p.again = slices.DeleteFunc(p.again, func(f failure) bool {
		gives := over > 0 && f.runs >= giveWayAfter
		if gives {
			over--
		}
		return gives
	})
	for _, pk := range pks[:max(0, min(len(pks), maxAgain-len(p.again)))] {
		p.again = append(p.again, failure{pk, 1})
	}
}

// stillLater puts records that failed again at the end of the list, so that the next run begins
// with other records.
func (p *pass) stillLater(pks []string) {
	for _, pk := range pks {
		p.again = append(p.again, failure{pk, p.tried[pk] + 1})
	}
}

// pass.take removes the next n records from the list, notes them in p.tried, and
// returns them.
func (p *pass) take(n int) []failure {
	batch := slices.Clone(p.again[:n])
	p.again = p.again[n:]
	for _, f := range batch {
		p.tried[f.pk] = f.runs
	}
	return batch
}

// pass.part splits items into those that this run has not tried yet and those that it
// has tried.
func (p *pass) part(items []item.Map) (fresh, tried []item.Map) {
	for _, it := range items {
		if _, was := p.tried[item.PK(it)]; was {
			tried = append(tried, it)
		} else {
			fresh = append(fresh, it)
		}
	}
	return fresh, tried
}

// joinAgain returns p's failures together with theirs, the failures that another sweep
// has stored. It leaves out records of theirs that this run has tried.
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

// Sweep.again calls see with the records that failed in earlier runs. It stops at the
// time end, so that time is left for the scan.
func (s *Sweep) again(ctx context.Context, end time.Time, p *pass, see func([]item.Map) []string) error {
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
		p.stillLater(append(unread, see(items)...))
	}
	return errors.Join(errs...)
}

// The function out reports whether a sweep is out of time: ctx has ended, or the wall
// clock has reached end. A zero end sets no limit.
func out(ctx context.Context, end time.Time) bool {
	return ctx.Err() != nil || !end.IsZero() && !time.Now().Before(end)
}

// half returns the time halfway between now and end; zero if end is zero.
func half(end time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return end.Add(-time.Until(end) / 2)
}
