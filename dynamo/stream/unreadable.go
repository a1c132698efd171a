package stream

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// finding says that the item pk is unreadable, for the index of what waits for people: a
// program must not change an item that it can't read. A finding is an item of its own,
// without st, so that no reader takes it for a record.
type finding struct {
	pk   string // of the unreadable item
	why  error
	seen time.Time // the finding's expiry, as it was read
}

// findingLife is how long a finding lasts after the last sweep or drain that saw its
// item.
const findingLife = 7 * 24 * time.Hour

// findingPK returns the partition key of the finding about the item pk.
func findingPK(pk string) string {
	sum := sha256.Sum256([]byte(pk))
	return "samekey#unreadable#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// findingOf reads a finding; false for any other item.
func findingOf(it item.Map) (f finding, ok bool) {
	d := item.Decoder{It: it}
	f.pk, f.seen = d.Text(item.AttrAbout, false), time.Unix(d.Number(item.AttrExpires, false), 0)
	return f, d.Err == nil && f.pk != ""
}

// unreadable writes the finding about an item, or renews it.
func (w jobWriter) unreadable(ctx context.Context, f finding, now time.Time) error {
	if f.pk == "" {
		return nil
	}
	var v item.Values
	key := findingPK(f.pk)
	_, err := w.table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table.Name,
		Key:       item.Key(key),
		UpdateExpression: aws.String("SET v = :v, " + item.AttrAbout + " = :about, " + item.AttrWait + " = :waits, " + item.SetSince + ", " +
			item.AttrLastErr + " = :why, " + item.AttrExpires + " = :end"),
		ExpressionAttributeValues: item.Map{
			":v": v.Digits(item.Layout), ":about": v.Str(f.pk), ":waits": v.Str(item.WaitKey(state.Reason(ReasonUnreadable), key)),
			":since": v.Millis(now), ":why": v.Str(reason(f.why)), ":end": v.Secs(now.Add(findingLife)),
		},
	})
	if err != nil {
		return fmt.Errorf("dynamo: list an unreadable item: %w", err)
	}
	return nil
}

// review looks at the item of a finding. If the item is gone or readable, the finding
// leaves the index, and TTL deletes it.
func (w jobWriter) review(ctx context.Context, f finding, now time.Time) error {
	out, err := w.table.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table.Name, Key: item.Key(f.pk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return item.ReadError("look at an unreadable item", err)
	}
	if _, why, err := readItem(out.Item); len(out.Item) > 0 && why == SkipUnreadable {
		return w.unreadable(ctx, finding{pk: f.pk, why: err}, now)
	}
	var v item.Values
	_, err = w.table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table.Name,
		Key:       item.Key(findingPK(f.pk)),
		// A drain that has seen the item unreadable since has renewed the finding.
		ConditionExpression:       aws.String(item.AttrExpires + " = :seen"),
		UpdateExpression:          aws.String("SET " + item.AttrExpires + " = :past REMOVE " + item.AttrWait + ", " + item.AttrSince),
		ExpressionAttributeValues: item.Map{":seen": v.Secs(f.seen), ":past": v.Secs(now.Add(-time.Minute))},
	})
	if _, renewed := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !renewed {
		return fmt.Errorf("dynamo: strike an item off the list: %w", err)
	}
	return nil
}
