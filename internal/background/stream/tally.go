package stream

import (
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// tally holds the counts of what a pass has found. Each segment's tally is stored
// together with the segment's place, so that the records of a page count once even if
// the page is read again.
type tally struct {
	by   map[state.Reason]found
	open time.Time // when the oldest open operation was claimed; zero for none
}

type found struct {
	count  int
	oldest time.Time // the earliest start of an entry's last attempt; zero if unknown
}

// earlier returns the earlier of two times. It ignores a zero time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (t *tally) add(e Entry) { *t = t.with(tally{by: map[state.Reason]found{e.Reason: {1, e.Run}}}) }

func (t tally) with(o tally) tally {
	sum := tally{maps.Clone(t.by), earlier(t.open, o.open)}
	if sum.by == nil {
		sum.by = make(map[state.Reason]found)
	}
	for why, f := range o.by {
		sum.by[why] = found{sum.by[why].count + f.count, earlier(sum.by[why].oldest, f.oldest)}
	}
	return sum
}

// atLeast returns, for each reason, the greater of the counts in t and in o. While a
// pass is incomplete, its counts in t lack the records that are not read yet. So o has
// the counts of the last complete pass.
func (t tally) atLeast(o tally) tally {
	most := t.with(tally{open: o.open})
	for why, f := range o.by {
		if f.count > most.by[why].count {
			most.by[why] = f
		}
	}
	return most
}

// tally.report returns each reason's count and the age of its oldest entry.
func (t tally) report(now time.Time) map[state.Reason]Tally {
	by := make(map[state.Reason]Tally)
	for why, f := range t.by {
		by[why] = Tally{Count: f.count, Oldest: age(f.oldest, now)}
	}
	return by
}

// The attributes of a tally in the cursor's item.
const (
	tallyReason = "r" // S
	tallyCount  = "n" // N
	tallyOldest = "o" // N  ms, 0 = unknown
)

// tally.value returns the stored form of t's counts.
func (t tally) value() item.Value {
	var v item.Values
	list := make([]item.Value, 0, len(t.by))
	for _, why := range slices.Sorted(maps.Keys(t.by)) {
		f := t.by[why]
		list = append(list, &types.AttributeValueMemberM{Value: item.Map{
			tallyReason: v.Str(string(why)), tallyCount: v.Num(int64(f.count)), tallyOldest: v.Millis(f.oldest),
		}})
	}
	return &types.AttributeValueMemberL{Value: list}
}

func tallyOf(d *item.Decoder, counts, open string) tally {
	t := tally{by: make(map[state.Reason]found), open: d.Milli(open, false)}
	d.Maps(counts, func(one *item.Decoder) {
		t.by[state.Reason(one.Text(tallyReason, true))] = found{int(one.Number(tallyCount, true)), one.Milli(tallyOldest, false)}
	})
	return t
}
