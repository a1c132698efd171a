package simulation

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// The tables of the episode.
const (
	records = "records"
	books   = "books" // the user's own
)

// link is a sandbox's way to DynamoDB.
type link struct{ sb *sandbox }

var (
	_ dynamo.API = link{}
	_ worker.API = link{}
)

var (
	errNet     = errors.New("connection reset by peer")
	errTimeout = errors.New("no answer within the client's time")
)

// longest is how long a packet may be on its way: DynamoDB refuses older signatures.
const longest = 15 * time.Minute

// sender is what the onlooker knows of who sends a write: the attempt that takes the
// record for its own, and something that orders claims of the same moment.
type sender struct{ owner, rank string }

// send sends a call to DynamoDB, through the faults.
func send[O any](ctx context.Context, l link, op, about string, writes int, do func(dynamo.API) (*O, error), by ...sender) (*O, error) {
	w := l.sb.w
	var api dynamo.API = w.db
	if w.flaw != nil {
		api = w.flaw(w.db)
	}
	var who sender
	if len(by) > 0 {
		who = by[0]
	}
	v, err := w.put(ctx, &call{actor: actorOf(ctx, l.sb), op: op, about: about, rank: who.rank, sandbox: l.sb, take: func(c *call) {
		l.sb.calls++
		apply := func(how string) (*O, error) {
			held := text(w.db.Item(records, about), "owner")
			out, err := do(api)
			w.progress()
			if err == nil && who.owner != "" && who.owner != held {
				w.fail("%s: a write of one attempt changes the record of another", w.name(about))
			}
			w.note(c.actor, "%s %s%s%s", op, w.name(about), how, outcome(err))
			return out, err
		}
		w.through(c, writes, func(how string) (any, error) { return apply(how) })
	}})
	out, _ := v.(*O)
	return out, err
}

func outcome(err error) string {
	if err == nil {
		return ""
	}
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return ": refused"
	}
	return ": " + err.Error()
}

// through carries out a call of DynamoDB, and what goes wrong with it. writes is how
// many items it writes: 0 for a read.
func (w *world) through(c *call, writes int, apply func(how string) (any, error)) {
	sb := c.sandbox
	delay := w.between(time.Millisecond, 12*time.Millisecond)
	lose := func(f fault, how string, err error, wait time.Duration) {
		w.after(wait, func() {
			w.note(c.actor, "%s %s: %s%s", c.op, w.name(c.about), f, how)
			c.give(nil, err)
		})
	}
	switch {
	case sb.crashes(c, apply):
	case !sb.frozen && w.fires(frozen, 0.002):
		w.freeze(c, apply)
	case c.op == putCompanion && sb.hasNoCompanions():
		lose(companionsDown, "", sb.inv.noCompanions, delay)
	case w.fires(requestLost, 0.01):
		lose(requestLost, "", errNet, w.between(time.Millisecond, 2*time.Second))
	case w.throttles():
		lose(throttled, "", &types.ProvisionedThroughputExceededException{Message: aws.String("simulated")}, delay)
	case w.fires(error500, 0.01):
		lose(error500, "", error500of(), delay)
	case writes == 0:
		if w.fires(answerLost, 0.005) {
			lose(answerLost, "", errTimeout, 2*time.Second)
			return
		}
		w.after(delay, func() { c.give(apply("")) })
	case w.fires(answerLost, 0.02):
		w.after(delay, func() { _, _ = apply(", and the answer is lost") })
		lose(answerLost, "", errTimeout, w.between(100*time.Millisecond, 2*time.Second))
	case w.fires(error500After, 0.01):
		w.after(delay, func() {
			_, _ = apply(", answered 500")
			c.give(nil, error500of())
		})
	case w.fires(late, 0.01):
		wait := w.between(3*time.Second, time.Minute)
		if w.likely(0.3) {
			wait = w.between(time.Minute, longest)
		}
		w.after(wait, func() { _, _ = apply(", late by " + wait.String()) })
		lose(late, "", errTimeout, 2*time.Second)
	case w.fires(duplicated, 0.02):
		w.after(delay, func() { c.give(apply("")) })
		again := w.between(time.Millisecond, 3*time.Second)
		if w.likely(0.1) {
			again = w.between(time.Second, longest)
		}
		w.after(delay+again, func() { _, _ = apply(", a copy of it") })
	case w.fires(conflict, 0.01):
		lose(conflict, "", conflictOf(writes), delay)
	case writes > 1 && w.fires(inProgress, 0.02):
		applied := w.likely(0.5)
		w.after(delay, func() {
			if applied {
				_, _ = apply(", answered: in progress")
			}
			c.give(nil, &types.TransactionInProgressException{Message: aws.String("simulated")})
		})
	default:
		w.after(delay, func() { c.give(apply("")) })
	}
}

func error500of() error {
	return &smithy.GenericAPIError{Code: "InternalServerError", Message: "simulated", Fault: smithy.FaultServer}
}

// putCompanion writes what doesn't fit into a record.
const putCompanion = "PutItem of a companion"

// hasNoCompanions reports whether DynamoDB refuses all companions of an invocation.
func (sb *sandbox) hasNoCompanions() bool {
	inv := sb.inv
	if inv != nil && inv.noCompanions == nil && sb.w.fires(companionsDown, 0.03) {
		inv.noCompanions = error500of()
		if sb.w.likely(0.5) { // for good: nobody tries again
			inv.noCompanions = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "simulated", Fault: smithy.FaultClient}
		}
	}
	return inv != nil && inv.noCompanions != nil
}

// throttles reports whether DynamoDB throttles: now and then for some time, and then
// nearly every call.
func (w *world) throttles() bool {
	if !w.may(throttled) {
		return false
	}
	if w.likely(0.002 * w.rate) {
		w.throttle = time.Now().Add(w.between(500*time.Millisecond, 8*time.Second))
	}
	if time.Now().Before(w.throttle) && w.likely(0.8) {
		w.counts[throttled]++
		return true
	}
	return false
}

func conflictOf(writes int) error {
	if writes == 1 {
		return &types.TransactionConflictException{Message: aws.String("simulated")}
	}
	reasons := make([]types.CancellationReason, writes)
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[0].Code = aws.String("TransactionConflict")
	return &types.TransactionCanceledException{Message: aws.String("simulated"), CancellationReasons: reasons}
}

func pkOf(it fakedynamo.Item) string {
	if s, ok := it["pk"].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// fingerprint is that of the request for which a record was claimed.
func fingerprint(it fakedynamo.Item) string {
	if b, ok := it["fp"].(*types.AttributeValueMemberB); ok {
		return hex.EncodeToString(b.Value)
	}
	return text(it, "fp")
}

func (l link) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return send(ctx, l, "GetItem", pkOf(in.Key), 0, func(db dynamo.API) (*dynamodb.GetItemOutput, error) { return db.GetItem(ctx, in) })
}

func (l link) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	op := "PutItem"
	if in.ConditionExpression == nil {
		op = putCompanion
	}
	return send(ctx, l, op, pkOf(in.Item), 1, func(db dynamo.API) (*dynamodb.PutItemOutput, error) {
		out, err := db.PutItem(ctx, in)
		if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			l.sb.w.meets(in.Item, failed.Item, false)
		}
		return out, err
	}, sender{rank: fingerprint(in.Item)})
}

// meets counts the changes of meaning that a claim meets: its key has a record at its
// other place, or a record under another scheme.
func (w *world) meets(claim, held fakedynamo.Item, elsewhere bool) {
	if held != nil && elsewhere {
		w.counts[scopeChanges]++
	}
	if held != nil && text(held, "fps") != text(claim, "fps") {
		w.counts[schemeChanges]++
	}
}

func (l link) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return send(ctx, l, "UpdateItem", pkOf(in.Key), 1, func(db dynamo.API) (*dynamodb.UpdateItemOutput, error) { return db.UpdateItem(ctx, in) },
		sender{owner: text(in.ExpressionAttributeValues, ":owner")})
}

func (l link) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	about, owner, rank := "", "", ""
	var claim, beside fakedynamo.Item
	switch first := in.TransactItems[0]; {
	case first.Put != nil:
		claim, about, rank = first.Put.Item, pkOf(first.Put.Item), fingerprint(first.Put.Item)
		if check := in.TransactItems[min(1, len(in.TransactItems)-1)].ConditionCheck; check != nil && *check.TableName == records {
			beside = check.Key
		}
	case first.Update != nil:
		about, owner = pkOf(first.Update.Key), text(first.Update.ExpressionAttributeValues, ":owner")
	}
	return send(ctx, l, "TransactWriteItems", about, len(in.TransactItems), func(db dynamo.API) (*dynamodb.TransactWriteItemsOutput, error) {
		if beside != nil {
			l.sb.w.twoPlaces(about, pkOf(beside))
		}
		out, err := db.TransactWriteItems(ctx, in)
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && claim != nil {
			for i, reason := range cancelled.CancellationReasons[:2] {
				l.sb.w.meets(claim, reason.Item, i == 1 && beside != nil)
			}
		}
		return out, err
	}, sender{owner, rank})
}

func (l link) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return send(ctx, l, "BatchGetItem", "", 0, func(db dynamo.API) (*dynamodb.BatchGetItemOutput, error) { return db.BatchGetItem(ctx, in) })
}

func (l link) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return send(ctx, l, "BatchWriteItem", "", 1, func(db dynamo.API) (*dynamodb.BatchWriteItemOutput, error) { return db.BatchWriteItem(ctx, in) })
}

func (l link) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return send(ctx, l, "Scan", "", 0, func(dynamo.API) (*dynamodb.ScanOutput, error) { return l.sb.w.db.Scan(ctx, in) })
}

func (l link) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return send(ctx, l, "Query", "", 0, func(dynamo.API) (*dynamodb.QueryOutput, error) { return l.sb.w.db.Query(ctx, in) })
}
