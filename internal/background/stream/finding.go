package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// finding is an entry in the index of what waits for people. It is about another item,
// which has no entry of its own. Either that item is unreadable, or nobody continues
// its operation, or nobody delivers its jobs. The finding has no attribute st, so
// nobody who reads it takes it for a record.
type finding struct {
	pk     string // partition key of the other item; if the finding is about several items, of one of them
	key    string // the finding's own partition key; "" means findingPK(pk)
	kind   string // kind of the jobs that wait for a sink; "" if the finding isn't about such jobs
	why    error
	reason state.Reason // state.ReasonUnreadable or state.ReasonBlocked; "" if not listed yet
	since  time.Time    // the start of the wait, as stored
	ends   time.Time    // the finding's expiry, as stored
}

// findingLife is how long a finding lasts after it was last written. The sweep renews a
// finding that still holds. ticketLife is for a finding about a message in the ticket
// queue that was no ticket. The sweep doesn't renew such a finding, since the message
// is gone from the queue. The finding lasts for ticketLife, or until somebody dismisses
// it.
const (
	findingLife = 7 * 24 * time.Hour
	ticketLife  = 24 * time.Hour
)

// findingPK returns the partition key of the finding about the item with the key pk.
func findingPK(pk string) string { return hashed("samekey#unreadable#", pk) }

// kindPK returns the partition key of the finding about jobs of a kind.
func kindPK(kind string) string { return hashed("samekey#jobs#", kind) }

// namespacePK returns the partition key of the finding about operations of a namespace.
func namespacePK(namespace string) string { return hashed("samekey#namespace#", namespace) }

func hashed(prefix, name string) string {
	sum := sha256.Sum256([]byte(name))
	return prefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// noTicket reports whether the finding is about a message in the ticket queue that was no ticket.
// The table has no item for that message.
func (f finding) noTicket() bool { return strings.HasPrefix(f.pk, state.NoTicket) }

// itsPK returns the partition key of the finding itself.
func (f finding) itsPK() string { return cmp.Or(f.key, findingPK(f.pk)) }

// findingOf decodes an item that is a finding. For any other item, ok is false.
func findingOf(it item.Map) (f finding, ok bool) {
	d := item.Decoder{It: it}
	f.pk, f.key, f.kind = d.Text(item.AttrAbout, false), item.PK(it), d.WaitIn().Kind
	f.since, f.ends = d.Milli(item.AttrSince, false), time.Unix(d.Number(item.AttrExpires, false), 0)
	why, _, _ := strings.Cut(d.Text(item.AttrWait, false), "#")
	f.reason, f.why = state.Reason(why), errors.New(d.Text(item.AttrLastErr, false))
	return f, d.Err == nil && f.pk != ""
}

// Refer lists t's operation as waiting for people, because nobody continues the
// operation. Once somebody continues it, the sweep takes it off the list. If t names no
// operation, Refer lists t.PK as unreadable.
func Refer(ctx context.Context, table *dynamo.Store, t jobs.Ticket, why error) error {
	reason := state.ReasonBlocked
	if t.Operation == "" {
		reason = state.ReasonUnreadable
	}
	return jobWriter{table.Table()}.list(ctx, finding{pk: t.PK, why: why, reason: reason}, time.Now())
}

// Listed returns the entries about r, about r's namespace, and about the kinds of r's
// waiting jobs. It leaves out the entry in r itself. Listed uses only r.PK and r.Jobs.
// It makes two reads, and one more read for each kind of waiting jobs.
func Listed(ctx context.Context, table *dynamo.Store, r *store.Record) (all []Entry, _ error) {
	keys := []string{findingPK(r.PK), namespacePK(state.Namespace(r.PK))}
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		if key := kindPK(r.Jobs[name].Kind); state.Pending(r, name) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		it, err := jobWriter{table.Table()}.found(ctx, key)
		if err != nil {
			return nil, err
		}
		if f, ok := findingOf(it); ok && f.listed(time.Now()) {
			all = append(all, indexed(f.reason, it))
		}
	}
	return all, nil
}

// finding.listed reports whether the finding is on the list and has not expired. An
// expired finding may still be in the table, since TTL deletes late.
func (f finding) listed(now time.Time) bool { return f.reason != "" && f.ends.After(now) }

// Dismiss takes the entry with this pk off the list of what waits for people. The entry must be
// about a message in the ticket queue that was no ticket. If the list has no such entry, Dismiss
// returns false.
func Dismiss(ctx context.Context, table *dynamo.Store, pk string) (bool, error) {
	w := jobWriter{table.Table()}
	it, err := w.found(ctx, findingPK(pk))
	if err != nil {
		return false, err
	}
	f, ok := findingOf(it)
	if !ok || !f.noTicket() || !f.listed(time.Now()) {
		return false, nil
	}
	return true, w.strikeOff(ctx, f, time.Now())
}

func (w jobWriter) found(ctx context.Context, pk string) (item.Map, error) {
	out, err := w.table.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.table.Name, Key: item.Key(pk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, item.ReadError("look at a listed item", err)
	}
	return out.Item, nil
}

// jobWriter.list writes or renews a finding.
func (w jobWriter) list(ctx context.Context, f finding, now time.Time) error {
	if f.pk == "" {
		return nil
	}
	life := findingLife
	if f.noTicket() {
		life = ticketLife
	}
	var v item.Values
	key := f.itsPK()
	_, err := w.table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table.Name,
		Key:       item.Key(key),
		UpdateExpression: aws.String("SET v = :v, " + item.AttrAbout + " = :about, " + item.AttrWait + " = :waits, " + item.AttrWaitIn + " = :in, " + item.SetSince + ", " +
			item.AttrLastErr + " = :why, " + item.AttrExpires + " = :end"),
		ExpressionAttributeValues: item.Map{
			":v": v.Digits(item.Layout), ":about": v.Str(f.pk), ":waits": v.Str(item.WaitKey(f.reason, key)),
			":since": v.Millis(now), ":in": v.WaitIn(state.Wait{Reason: f.reason, Kind: f.kind}), ":why": v.Str(reason(f.why)), ":end": v.Secs(now.Add(life)),
		},
	})
	if err != nil {
		return fmt.Errorf("dynamo: list an item: %w", err)
	}
	return nil
}

// jobWriter.suspect is called when the sink of f's kind has failed. It stores the time
// of the first failure. If the sink fails again after the duration patience, suspect
// lists the kind. If the sink doesn't fail for the duration memory, the next failure
// counts as the first.
func (w jobWriter) suspect(ctx context.Context, f finding, now time.Time, memory time.Duration) error {
	it, err := w.found(ctx, f.key)
	if err != nil {
		return err
	}
	known, ok := findingOf(it)
	switch {
	case ok && known.listed(now):
		return nil // review renews the finding
	case ok && known.ends.After(now) && now.Sub(known.since) >= patience:
		return w.list(ctx, f, now)
	}
	since := now
	if ok && known.ends.After(now) {
		since = known.since
	}
	var v item.Values
	_, err = w.table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table.Name,
		Key:       item.Key(f.key),
		// If another sweep has listed the kind meanwhile, the condition fails, and the
		// kind stays listed.
		ConditionExpression: aws.String("attribute_not_exists(" + item.AttrWait + ") OR " + item.AttrExpires + " < :now"),
		UpdateExpression: aws.String("SET v = :v, " + item.AttrAbout + " = :about, " + item.AttrSince + " = :since, " +
			item.AttrExpires + " = :end REMOVE " + item.AttrWait),
		ExpressionAttributeValues: item.Map{
			":v": v.Digits(item.Layout), ":about": v.Str(f.pk), ":since": v.Millis(since), ":end": v.Secs(now.Add(memory)), ":now": v.Secs(now),
		},
	})
	if _, listed := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !listed {
		return fmt.Errorf("dynamo: note a sink that is down: %w", err)
	}
	return nil
}

// jobWriter.review reads the item that a finding is about. If the finding still holds,
// review renews the finding. Otherwise review takes the finding off the list, and TTL
// deletes it.
func (w jobWriter) review(ctx context.Context, f finding, now time.Time, grace time.Duration) error {
	it, err := w.found(ctx, f.pk)
	if err != nil {
		return err
	}
	switch rec, why, err := readItem(it); {
	case why == SkipUnreadable && f.key != findingPK(f.pk):
		// The finding is about a kind or namespace. If it holds for another item, the
		// next sweep lists the kind or namespace again.
	case why == SkipUnreadable:
		return w.list(ctx, finding{pk: f.pk, why: err, reason: state.ReasonUnreadable}, now)
	case f.reason == state.ReasonBlocked && why == "" && f.lasts(rec, now, grace):
		return w.list(ctx, f, now)
	}
	return w.strikeOff(ctx, f, now)
}

func (w jobWriter) strikeOff(ctx context.Context, f finding, now time.Time) error {
	var v item.Values
	_, err := w.table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &w.table.Name,
		Key:       item.Key(f.itsPK()),
		// If the finding was renewed since it was read, the condition fails, and the
		// finding stays.
		ConditionExpression:       aws.String(item.AttrExpires + " = :seen"),
		UpdateExpression:          aws.String("SET " + item.AttrExpires + " = :past REMOVE " + item.AttrWait + ", " + item.AttrSince),
		ExpressionAttributeValues: item.Map{":seen": v.Secs(f.ends), ":past": v.Secs(now.Add(-time.Minute))},
	})
	if _, renewed := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !renewed {
		return fmt.Errorf("dynamo: strike an item off the list: %w", err)
	}
	return nil
}

// finding.lasts reports whether the finding f, which is about r, still holds: nobody
// has continued r's operation, or nobody has delivered r's jobs. A finding about a kind
// of jobs holds while r has waiting jobs of that kind. If only other records have such
// jobs, f doesn't hold, but the next sweep lists the kind again. If r has no stored
// request, f holds until the client or a message begins another attempt.
func (f finding) lasts(r *store.Record, now time.Time, grace time.Duration) bool {
	for name, j := range r.Jobs {
		if (f.kind == "" || f.kind == j.Kind) && state.Pending(r, name) && !state.Later(j, now) {
			return true
		}
	}
	if f.kind != "" {
		return false
	}
	if r.State == store.Open && !state.Completable(r) {
		return !state.Free(r, now) && !r.Lease.After(now) && !r.Run.After(f.since)
	}
	why, _ := state.FoundBySweep(r, now, grace)
	return why == state.ReasonOpen
}
