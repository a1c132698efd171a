package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
)

// The store checks a transaction's limits before it sends anything, because the service's errors
// say less.
const (
	maxItems       = 100 // including the record
	maxTransaction = 4 << 20
	maxItem        = 400 << 10
)

// Store.transact writes the record and the user's items: all or none. The list record
// has the write of the record and, if the key has another place, the check of this
// place. transact computes the record's size from sent, the values in the record's
// write.
func (s *Store) transact(ctx context.Context, record []types.TransactWriteItem, sent item.Map, writes []*Write) (*store.Record, error) {
	if err := checkSize(sent, writes); err != nil {
		return nil, err
	}
	items := slices.Grow(record, len(writes))
	for _, w := range writes {
		items = append(items, w.transactItem())
	}
	// The SDK sends an idempotency token with each call, and sends the same token again
	// when it repeats the call. Samekey doesn't rely on the token, because its
	// conditions compare owner and version.
	_, err := s.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	if err == nil {
		return nil, nil
	}
	if item.Invalid(err) {
		// The mistake is always in the user's writes: an expression that can't be parsed, a
		// reserved word, or two writes to the same item.
		return nil, fmt.Errorf("dynamo: %w: %w", store.ErrWrite, err)
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) != len(items) {
		return item.WriteError("transaction", err)
	}
	return why(cancelled.CancellationReasons, len(record), writes, err)
}

// why returns the error for a cancelled transaction, which wrote nothing. If there are
// several reasons, the first in this order decides:
//  1. a reason of the record, and then one of the key's other record. If an earlier
//     try of the transaction was applied, the record's condition is false, and the
//     user's conditions may be false only because of that try;
//  2. a write that the service can never accept;
//  3. an item that has changed since Get read it, because no repeat of this write can
//     succeed;
//  4. a temporary reason ([item.Passes]);
//  5. a refused condition of the user's writes.
func why(reasons []types.CancellationReason, records int, writes []*Write, err error) (*store.Record, error) {
	for _, r := range reasons[:records] {
		code := aws.ToString(r.Code)
		pass := item.Passes(code)
		switch {
		case pass != nil:
			return nil, fmt.Errorf("dynamo: %w: %s", pass, code)
		case code != "ConditionalCheckFailed":
		case len(r.Item) == 0:
			return &store.Record{}, nil
		default:
			return item.Decode(r.Item)
		}
	}
	var changed, passing, condition error
	for i, r := range reasons {
		code := aws.ToString(r.Code)
		pass := item.Passes(code)
		switch {
		case code == "" || code == "None":
		case code == "ConditionalCheckFailed":
			w := writes[i-records]
			if !w.still(r.Item) {
				changed = fmt.Errorf("dynamo: %w: an item in %s", store.ErrChanged, w.table)
			} else {
				condition = fmt.Errorf("dynamo: %w: %s in %s", store.ErrCondition, w.verb, w.table)
			}
		case pass != nil:
			passing = cmp.Or(passing, fmt.Errorf("dynamo: %w: %s", pass, code))
		case i == 0 && item.TooLarge(aws.ToString(r.Message)):
			return nil, fmt.Errorf("dynamo: %w: %w", store.ErrTooLarge, err)
		default: // ValidationError, ItemCollectionSizeLimitExceeded, …
			return nil, fmt.Errorf("dynamo: %w: %w", store.ErrWrite, err)
		}
	}
	if told := cmp.Or(changed, passing, condition); told != nil {
		return nil, told
	}
	return nil, fmt.Errorf("dynamo: transaction: %w: %w", store.ErrConflict, err)
}

// transactItem returns the write in the service's form. A Raw write stays as it is. Any
// other write asks for the item if its condition is false, because why compares the
// item with what Get read.
func (w *Write) transactItem() types.TransactWriteItem {
	const allOld = types.ReturnValuesOnConditionCheckFailureAllOld
	names, values := w.names, w.values
	if len(values) == 0 {
		values = nil // the service refuses an empty map
	}
	var cond *string
	if w.cond != "" {
		cond = &w.cond
	}
	switch {
	case w.raw != nil:
		return *w.raw
	case w.verb == "put":
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &w.table, Item: w.item, ConditionExpression: cond,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case w.verb == "update":
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &w.table, Key: w.key, UpdateExpression: &w.update, ConditionExpression: cond,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case w.verb == "delete":
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &w.table, Key: w.key, ConditionExpression: cond,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &w.table, Key: w.key, ConditionExpression: cond,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	}
}

// checkSize checks a transaction against the service's limits. For an update, checkSize
// counts only the key and the expression's values, because the rest of the item is
// unknown.
func checkSize(record item.Map, writes []*Write) error {
	if n := len(writes) + 1; n > maxItems {
		return fmt.Errorf("dynamo: %w: %d items in one commit, with the record: at most %d; divide the phase", store.ErrWrite, n, maxItems)
	}
	total := itemsize.Of(record)
	for _, w := range writes {
		size := itemsize.Of(w.item) + itemsize.Of(w.key) + itemsize.Of(w.values)
		if w.raw != nil && w.raw.Update != nil {
			size += itemsize.Of(w.raw.Update.ExpressionAttributeValues)
		}
		if size > maxItem {
			return fmt.Errorf("dynamo: %w: an item of %d bytes for %s: at most %d", store.ErrWrite, size, w.table, maxItem)
		}
		total += size
	}
	if total > maxTransaction {
		return fmt.Errorf("dynamo: %w: %d bytes in one commit: at most %d; divide the phase", store.ErrWrite, total, maxTransaction)
	}
	return nil
}
