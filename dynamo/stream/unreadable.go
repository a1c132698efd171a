package stream

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// finding puts the item pk into the index of what waits for people, where a program must not
// change the item: it can't read it, or it only had its ticket. A finding is an item of its
// own, without st, so that no reader takes it for a record.
type finding struct {
	pk     string // of the item
	why    error
	reason Reason    // ReasonUnreadable, or ReasonBlocked for an operation whose ticket ended
	seen   time.Time // the finding's expiry, as it was read
}

// ticketPK begins the pk of a finding about a message that is no ticket: no item has it.
const ticketPK = "samekey#ticket#"

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
	why, _, _ := strings.Cut(d.Text(item.AttrWait, false), "#")
	f.reason, f.why = Reason(why), errors.New(d.Text(item.AttrLastErr, false))
	return f, d.Err == nil && f.pk != "" && !strings.HasPrefix(f.pk, ticketPK)
}

// Refer puts the operation of a ticket that ends on the list of what waits for people: for
// the option Listed of package lambda/completer. The sweep takes it off the list once the
// operation goes on.
func (d *Drain) Refer(ctx context.Context, t jobs.Ticket, why error) error {
	reason := ReasonBlocked
	if t.Operation == "" {
		reason = ReasonUnreadable
	}
	return d.jobs.list(ctx, finding{pk: t.PK, why: why, reason: reason}, time.Now())
}

// list writes the finding about an item, or renews it.
func (w jobWriter) list(ctx context.Context, f finding, now time.Time) error {
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
			":v": v.Digits(item.Layout), ":about": v.Str(f.pk), ":waits": v.Str(item.WaitKey(f.reason, key)),
			":since": v.Millis(now), ":why": v.Str(reason(f.why)), ":end": v.Secs(now.Add(findingLife)),
		},
	})
	if err != nil {
		return fmt.Errorf("dynamo: list an item: %w", err)
	}
	return nil
}

// review looks at the item of a finding. If the item is gone, or is readable and doesn't
// wait, the finding leaves the index, and TTL deletes it.
func (w jobWriter) review(ctx context.Context, f finding, now time.Time, grace time.Duration) error {
	out, err := w.table.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table.Name, Key: item.Key(f.pk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return item.ReadError("look at a listed item", err)
	}
	switch rec, why, err := readItem(out.Item); {
	case why == SkipUnreadable:
		return w.list(ctx, finding{pk: f.pk, why: err, reason: ReasonUnreadable}, now)
	case f.reason == ReasonBlocked && why == "" && waitsOn(rec, now, grace):
		return w.list(ctx, f, now)
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

// waitsOn reports whether nobody has gone on with the operation of a ticket that ended, or
// with its jobs.
func waitsOn(r *store.Record, now time.Time, grace time.Duration) bool {
	for name, j := range r.Jobs {
		if state.Pending(r, name) && !state.Later(j, now) {
			return true
		}
	}
	why, _ := state.Waits(r, now, grace)
	return why == state.ReasonOpen
}
