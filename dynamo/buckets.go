package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// Buckets are token buckets that all processes share, for [quota.Options.Shared]. Each lease of
// tokens ([Buckets.Lease]) costs one UpdateItem of one write unit. If another process has changed
// the bucket since this process last updated it, the lease may cost another UpdateItem, up to
// four in all. Buckets are safe for concurrent use.
type Buckets struct {
	api   API
	table string
}

var _ quota.Shared = (*Buckets)(nil)

// Buckets returns the shared buckets in the store's table. The buckets need no permissions beyond
// the store's. A record's item has its state in the attribute st. A bucket's item has no st, so
// that no stream filter, drain, completer or sweep mistakes a bucket for a record.
func (s *Store) Buckets() *Buckets { return &Buckets{api: s.api, table: s.table} }

// A bucket is an item with two times in microseconds. full_us is the time at which the bucket will
// be full. at_us, the bucket's own time, is the time at which a process last leased
// tokens.
const (
	bucketPrefix = "samekey#quota#"
	attrFull     = "full_us"
	attrAt       = "at_us"

	// atCondition keeps a process from setting the bucket's own time back, because this
	// would add the same tokens twice.
	atCondition = " AND (attribute_not_exists(at_us) OR at_us <= :now)"
	// fullCondition lets only one of two processes that find a full bucket take the first
	// lot.
	fullCondition = "(attribute_not_exists(pk) OR full_us <= :now)" + atCondition
	// usedCondition lets concurrent leases succeed as long as the bucket has tokens for all
	// of them.
	usedCondition = "full_us BETWEEN :now AND :most" + atCondition
	// wrongCondition lets only one of two processes correct a bucket whose times come from a
	// wrong clock.
	wrongCondition = "full_us = :seen"

	fullSet = "SET full_us = :full, at_us = :now, exp_s = :exp"
	usedSet = "SET full_us = full_us + :cost, at_us = :now, exp_s = :exp"
)

const (
	// leaseRounds is how often Lease tries to update a bucket while other processes update
	// it.
	leaseRounds = 4
	// maxSkew is how far clocks may differ. A bucket whose time is further ahead was set by a wrong
	// clock, and counts as full.
	maxSkew = 5 * time.Minute
	// bucketLasts is how long the item of a bucket remains after the bucket is full.
	bucketLasts = time.Hour
)

// Lease implements [quota.Shared].
//
// A process whose clock is up to five minutes ahead gets some tokens too early, but
// only once. Its lease moves the bucket's own time ahead, and all processes calculate
// later leases from this time. If the clock is further ahead, the next lease of another
// process sets the bucket's own time back, so the process can get tokens too early
// again.
func (b *Buckets) Lease(ctx context.Context, l quota.Lot) (quota.Leased, error) {
	pk := bucketPrefix + l.Bucket
	want, seen, own := l.Tokens, l.Full.UnixMicro(), l.Now.UnixMicro() // if l.Full is zero, seen is a time long ago
	now, wrong := own+l.Ahead.Microseconds(), false
	for range leaseRounds {
		u := bucketUpdate{exp: now + (l.Fill + bucketLasts).Microseconds()}
		cost := costOf(l, want)
		switch {
		case wrong || seen > now+(l.Fill+maxSkew).Microseconds():
			u.condition, u.set, u.args = wrongCondition, fullSet, map[string]int64{":seen": seen, ":full": now + cost, ":now": now}
		case seen > now:
			u.condition, u.set, u.args = usedCondition, usedSet, map[string]int64{":cost": cost, ":most": now + l.Fill.Microseconds() - cost, ":now": now}
		default:
			u.condition, u.set, u.args = fullCondition, fullSet, map[string]int64{":full": now + cost, ":now": now}
		}
		full, at, applied, err := b.send(ctx, pk, u)
		if err != nil {
			return quota.Leased{}, err
		}
		if applied {
			return quota.Leased{Tokens: want, Full: time.UnixMicro(full), Ahead: time.Duration(now-own) * time.Microsecond}, nil
		}
		seen, now = full, max(now, at)
		if wrong = at > own+maxSkew.Microseconds(); wrong {
			now = own
		}
		if late := full - now; !wrong && late <= (l.Fill+maxSkew).Microseconds() {
			room := l.Fill.Microseconds() - late
			want = min(l.Tokens, tokensIn(l, room))
			if want < l.Need {
				wait := max(costOf(l, l.Need)-room, 1)
				return quota.Leased{
					Wait: time.Duration(wait) * time.Microsecond, Full: time.UnixMicro(full), Ahead: time.Duration(now-own) * time.Microsecond,
				}, nil
			}
		} else {
			want = l.Tokens
		}
	}
	return quota.Leased{}, fmt.Errorf("dynamo: lease: %w: others lease from the same bucket", store.ErrConflict)
}

type bucketUpdate struct {
	condition, set string
	args           map[string]int64
	exp            int64
}

// Buckets.send sends an update, and returns the time at which the bucket will be full.
// If the update's condition is false, send returns the times in the item, or 0 if there
// is no item.
func (b *Buckets) send(ctx context.Context, pk string, u bucketUpdate) (full, at int64, applied bool, err error) {
	var v item.Values
	args := item.Map{":exp": v.Num(u.exp / 1e6)}
	for name, n := range u.args {
		args[name] = v.Num(n)
	}
	out, err := b.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: item.Key(pk), ConditionExpression: aws.String(u.condition), UpdateExpression: aws.String(u.set),
		ExpressionAttributeValues: args, ReturnValues: types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		full, err = timeOf(failed.Item, attrFull)
		if err == nil {
			at, err = timeOf(failed.Item, attrAt)
		}
		return full, at, false, err
	}
	if err != nil {
		_, err = item.WriteError("lease", err)
		return 0, 0, false, err
	}
	full, err = timeOf(out.Attributes, attrFull)
	return full, 0, true, err
}

// timeOf returns the bucket's time in the attribute called name, or 0 if the item lacks it.
func timeOf(it item.Map, name string) (int64, error) {
	raw, there := it[name]
	if !there {
		return 0, nil
	}
	n, ok := raw.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("dynamo: lease: %w: %s is no number", store.ErrCorrupt, name)
	}
	us, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("dynamo: lease: %w: %s: %w", store.ErrCorrupt, name, err)
	}
	return us, nil
}

// costOf returns how many microseconds the bucket needs to gain n tokens, rounded up. If n is
// l.Size, the result is exactly l.Fill.
func costOf(l quota.Lot, n int64) int64 {
	cost, rest := scaled(l.Fill.Microseconds(), n, l.Size)
	if rest {
		cost++
	}
	return cost
}

// tokensIn returns how many tokens the bucket gains in the given microseconds.
func tokensIn(l quota.Lot, room int64) int64 {
	fill := l.Fill.Microseconds()
	switch {
	case room >= fill:
		return l.Size
	case room <= 0:
		return 0
	}
	n, _ := scaled(room, l.Size, fill)
	return n
}

// scaled returns the quotient a*b/of, and whether there is a remainder. It panics if the
// quotient overflows, so a <= of or b <= of must hold. scaled calculates with integers,
// because a float64 would sometimes be wrong by one.
func scaled(a, b, of int64) (n int64, rest bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(of))
	return int64(q), r > 0
}
