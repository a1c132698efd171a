package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const (
	maxBatch   = 25 // items in a BatchWriteItem
	atOnce     = 8  // companions in one call: few, because the SDK needs up to four times their size in memory
	readRounds = 6  // how often a partly returned batch is read again
	dropRounds = 3  // how often a partly deleted batch is deleted again
)

// putChunks writes the last over.Missing companions of packed, which are not stored
// yet. It writes in batches, and lowers over.Missing after each batch. After a passing
// failure, putChunks sends the batch again until ctx ends, because companions are
// written without a condition: a repeated write does no harm. putChunks never returns
// ErrUnknown, because it doesn't write the record that refers to the companions.
func (s *Store) putChunks(ctx context.Context, pk string, over *store.Overflow, packed []byte, end time.Time, box *item.Box) error {
	for over.Missing > 0 {
		first := over.Count - over.Missing
		n := min(s.batch(), over.Missing)
		todo := make([]types.WriteRequest, n)
		for i := range todo {
			var v item.Values
			at := (first + i) * chunkSize
			chunk := packed[at:min(at+chunkSize, len(packed))]
			if over.Sealed {
				chunk = box.Chunk(chunk, over, first+i)
			}
			todo[i].PutRequest = &types.PutRequest{Item: v.Companion(companionKey(pk, over, first+i), end, chunk)}
		}
		for round := 1; ; round++ {
			var err error
			if todo, err = s.write(ctx, todo); len(todo) == 0 {
				break
			}
			if err == nil {
				err = errThrottled
			} else if _, known := item.WriteError("companion", err); !store.Passing(known) {
				return known
			}
			if item.Overdue(ctx) || !item.Pause(ctx, round) {
				return fmt.Errorf("%w: %w", idem.ErrUnavailable, err)
			}
		}
		over.Missing -= n
	}
	return nil
}

var errThrottled = errors.New("a part of a batch was left out: throttled")

// Store.write sends a batch of items, and returns the items that the service left out.
// A single item is sent by PutItem, because the role may lack the right to batches.
func (s *Store) write(ctx context.Context, todo []types.WriteRequest) (left []types.WriteRequest, err error) {
	if len(todo) > 1 && !s.noBatches.writes.Load() {
		out, err := s.api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.table: todo}})
		if err == nil {
			return slices.Concat(slices.Collect(maps.Values(out.UnprocessedItems))...), nil
		}
		if !denied(err, &s.noBatches.writes) {
			return todo, err
		}
	}
	for i, w := range todo {
		if _, err := s.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: w.PutRequest.Item}); err != nil {
			return todo[i:], err
		}
	}
	return nil, nil
}

// batches notes which calls the role was denied: BatchGetItem (reads) and
// BatchWriteItem (writes). There are two flags, because a role may have the right to
// BatchGetItem only: the right to BatchWriteItem also allows deleting.
type batches struct{ reads, writes atomic.Bool }

// Store.batch returns how many companions are sent in one call.
func (s *Store) batch() int {
	if s.noBatches.writes.Load() {
		return 1
	}
	return atOnce
}

// denied reports whether err means that the role lacks the right to a batch call. If
// so, denied sets *remembers, and from then on the store reads or writes
// companions one by one.
func denied(err error, remembers *atomic.Bool) bool {
	if item.AccessDenied(err) {
		remembers.Store(true)
		return true
	}
	return false
}

// getChunks reads each companion i of o with from <= i < to, by strongly consistent reads. The
// result omits companions that don't exist.
func (s *Store) getChunks(ctx context.Context, pk string, o *store.Overflow, from, to int) (map[string]item.Map, error) {
	found := make(map[string]item.Map, to-from)
	keys := make([]item.Map, 0, to-from)
	for i := from; i < to; i++ {
		keys = append(keys, item.Key(companionKey(pk, o, i)))
	}
	for round := 1; len(keys) > 1 && !s.noBatches.reads.Load(); round++ {
		out, err := s.api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: keys, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			if denied(err, &s.noBatches.reads) {
				break
			}
			return nil, err
		}
		for _, items := range out.Responses {
			for _, it := range items {
				if k, ok := it[item.AttrPK].(*types.AttributeValueMemberS); ok {
					found[k.Value] = it
				}
			}
		}
		keys = nil
		for _, left := range out.UnprocessedKeys {
			keys = append(keys, left.Keys...)
		}
		if len(keys) > 1 && (round >= readRounds || !item.Pause(ctx, round)) {
			return nil, errThrottled
		}
	}
	for _, k := range keys {
		out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: k, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		found[k[item.AttrPK].(*types.AttributeValueMemberS).Value] = out.Item
	}
	return found, nil
}

// dropChunks removes companions that are no longer needed. It deletes them in batches.
// If only one is left, or if the role lacks the right to batches, dropChunks empties
// companions one by one and lets them expire, so that TTL deletes them. If a call
// fails, TTL deletes the remaining companions later.
func (s *Store) dropChunks(ctx context.Context, pk string, o *store.Overflow) error {
	var todo []types.WriteRequest
	for i := range o.Count {
		todo = append(todo, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: item.Key(companionKey(pk, o, i))}})
	}
	for round := 1; len(todo) > 1 && !s.noBatches.writes.Load(); round++ {
		out, err := s.api.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{s.table: todo[:min(maxBatch, len(todo))]},
		})
		if err != nil {
			if denied(err, &s.noBatches.writes) {
				break
			}
			return err
		}
		todo = slices.Concat(append(slices.Collect(maps.Values(out.UnprocessedItems)), todo[min(maxBatch, len(todo)):])...)
		if len(out.UnprocessedItems) > 0 && (round >= dropRounds || !item.Pause(ctx, round)) {
			return fmt.Errorf("%d of them are left", len(todo))
		}
	}
	for _, w := range todo {
		var v item.Values
		_, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: w.DeleteRequest.Key,
			UpdateExpression:          aws.String("SET exp_s = :now REMOVE b"),
			ConditionExpression:       aws.String("attribute_exists(pk)"), // the update must not recreate an item that TTL has deleted
			ExpressionAttributeValues: item.Map{":now": v.Secs(time.Now().Add(-time.Minute))},
		})
		if _, gone := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !gone {
			return err
		}
	}
	return nil
}

func companionKey(pk string, o *store.Overflow, i int) string {
	return pk + "#" + o.Owner + "#" + strconv.FormatInt(o.First+int64(i), 10)
}
