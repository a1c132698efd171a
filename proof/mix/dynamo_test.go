package mix

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// The tables.
const (
	records = "records"
	books   = "books" // the user's own
)

// link is a process's way to DynamoDB.
type link struct{ p *process }

var (
	_ dynamo.API     = link{}
	_ stream.ScanAPI = link{}
)

var (
	errNet     = errors.New("connection reset by peer")
	errTimeout = errors.New("no answer within the client's time")
)

func server500() error {
	return &smithy.GenericAPIError{Code: "InternalServerError", Message: "simulated", Fault: smithy.FaultServer}
}

// send sends a call to DynamoDB, through the faults. writes is how many items it
// writes: 0 for a read.
func send[O any](ctx context.Context, l link, op, about string, writes int, do func(dynamo.API) (*O, error)) (*O, error) {
	w := l.p.w
	v, err := w.ask(ctx, l.p, op, about, func(c *call) {
		w.touch(c.actor, about)
		w.through(c, writes, func(how string) (any, error) {
			out, err := do(w.table())
			w.note(c.actor, "%s %s%s%s", op, w.name(about), how, outcome(err))
			return out, err
		})
	})
	out, _ := v.(*O)
	return out, err
}

// table is the database, or what a planted fault makes of it.
func (w *world) table() dynamo.API {
	if w.flaw != nil {
		return w.flaw(w.db)
	}
	return w.db
}

func outcome(err error) string {
	if err == nil {
		return ""
	}
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return ": refused"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return ": " + text
}

// through carries out a call of DynamoDB, and what goes wrong with it.
func (w *world) through(c *call, writes int, apply func(how string) (any, error)) {
	delay := w.between(time.Millisecond, 12*time.Millisecond, c.actor, c.n)
	lose := func(f choice, err error, wait time.Duration) {
		w.after(wait, func() {
			w.note(c.actor, "%s %s: %s", c.op, w.name(c.about), f)
			c.give(nil, err)
		})
	}
	beside := isCompanion(c.about)
	switch {
	case w.fires(crashBefore, 0.006, c):
		w.note(c.actor, "%s %s: %s", c.op, w.name(c.about), crashBefore)
		w.crash(c.process)
	case w.fires(crashAfter, 0.006, c):
		_, _ = apply(", and the process crashes")
		w.crash(c.process)
	case w.fires(frozen, 0.003, c):
		w.freeze(c, apply)
	case beside && !w.calm.Load() && w.odds(0.3, companions):
		w.fired[companions]++
		switch w.hash("companions") % 3 {
		case 0:
			lose(companions, &types.ProvisionedThroughputExceededException{Message: aws.String("simulated")}, delay)
		case 1:
			lose(companions, errTimeout, 8*time.Second)
		default:
			lose(companions, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "simulated", Fault: smithy.FaultClient}, delay)
		}
	case w.fires(requestLost, 0.01, c):
		lose(requestLost, errNet, w.between(time.Millisecond, 2*time.Second, "lost", c.actor, c.n))
	case w.throttles(c):
		lose(throttled, &types.ProvisionedThroughputExceededException{Message: aws.String("simulated")}, delay)
	case w.fires(error500, 0.01, c):
		lose(error500, server500(), delay)
	case w.fires(slow, 0.015, c):
		wait := w.between(500*time.Millisecond, 12*time.Second, "slow", c.actor, c.n)
		w.after(wait, func() { c.give(apply(", after " + wait.String())) })
	case writes == 0:
		if w.fires(answerLost, 0.005, c) {
			lose(answerLost, errTimeout, 2*time.Second)
			return
		}
		w.after(delay, func() { c.give(apply("")) })
	case w.fires(answerLost, 0.02, c):
		w.after(delay, func() { _, _ = apply(", and the answer is lost") })
		lose(answerLost, errTimeout, w.between(100*time.Millisecond, 2*time.Second, "mute", c.actor, c.n))
	case w.fires(error500After, 0.01, c):
		w.after(delay, func() {
			_, _ = apply(", answered 500")
			c.give(nil, server500())
		})
	case w.fires(late, 0.015, c):
		wait := w.between(3*time.Second, time.Minute, "late", c.actor, c.n)
		if w.hash("very late", c.actor, c.n)%3 == 0 {
			wait = w.between(time.Minute, longest, "very late", c.actor, c.n)
		}
		w.after(wait, func() { _, _ = apply(", late by " + wait.String()) })
		lose(late, errTimeout, 2*time.Second)
	case w.fires(duplicated, 0.02, c):
		w.after(delay, func() { c.give(apply("")) })
		again := w.between(time.Millisecond, time.Minute, "again", c.actor, c.n)
		w.after(delay+again, func() { _, _ = apply(", a copy of it") })
	case w.fires(conflict, 0.01, c):
		lose(conflict, conflictOf(writes), delay)
	case writes > 1 && w.fires(inProgress, 0.02, c):
		w.after(delay, func() {
			if w.hash("in progress", c.actor, c.n)%2 == 0 {
				_, _ = apply(", answered: in progress")
			}
			c.give(nil, &types.TransactionInProgressException{Message: aws.String("simulated")})
		})
	default:
		w.after(delay, func() { c.give(apply("")) })
	}
}

// longest is how long a packet may be on its way: DynamoDB refuses older signatures.
const longest = 15 * time.Minute

// freeze stops a call for longer than its lease. It was sent before, or is sent when the
// process comes back.
func (w *world) freeze(c *call, apply func(string) (any, error)) {
	rest := w.between(10*time.Second, 5*time.Minute, "frozen", c.actor, c.n)
	sent := w.hash("sent", c.actor, c.n)%2 == 0
	w.note(c.actor, "%s %s: stands still for %s, sent: %t", c.op, w.name(c.about), rest, sent)
	var v any
	var err error
	if sent {
		v, err = apply(", then frozen")
	}
	w.after(rest, func() {
		if !sent {
			v, err = apply(", after " + rest.String() + " frozen")
		}
		c.give(v, err)
	})
}

// throttles reports whether DynamoDB throttles: now and then for some time, and then
// nearly every call.
func (w *world) throttles(c *call) bool {
	if w.calm.Load() {
		return false
	}
	if w.fires(throttled, 0.004, c) {
		w.throttle = time.Now().Add(w.between(500*time.Millisecond, 8*time.Second, "throttle", c.actor, c.n))
	}
	return time.Now().Before(w.throttle) && w.hash("throttled", c.actor, c.n)%5 > 0
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

// isCompanion reports whether pk is that of a body beside its record.
func isCompanion(pk string) bool { return strings.HasPrefix(pk, "v1#") && strings.Count(pk, "#") > 2 }

func (l link) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return send(ctx, l, "GetItem", pkOf(in.Key), 0, func(db dynamo.API) (*dynamodb.GetItemOutput, error) { return db.GetItem(ctx, in) })
}

func (l link) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return send(ctx, l, "PutItem", pkOf(in.Item), 1, func(db dynamo.API) (*dynamodb.PutItemOutput, error) { return db.PutItem(ctx, in) })
}

func (l link) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return send(ctx, l, "UpdateItem", pkOf(in.Key), 1, func(db dynamo.API) (*dynamodb.UpdateItemOutput, error) { return db.UpdateItem(ctx, in) })
}

func (l link) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	about := ""
	switch first := in.TransactItems[0]; {
	case first.Put != nil:
		about = pkOf(first.Put.Item)
	case first.Update != nil:
		about = pkOf(first.Update.Key)
	}
	return send(ctx, l, "TransactWriteItems", about, len(in.TransactItems), func(db dynamo.API) (*dynamodb.TransactWriteItemsOutput, error) {
		return db.TransactWriteItems(ctx, in)
	})
}

func (l link) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	about := ""
	for _, keys := range in.RequestItems {
		about = pkOf(keys.Keys[0])
	}
	return send(ctx, l, "BatchGetItem", about, 0, func(db dynamo.API) (*dynamodb.BatchGetItemOutput, error) { return db.BatchGetItem(ctx, in) })
}

func (l link) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	about := ""
	for _, all := range in.RequestItems {
		if put := all[0].PutRequest; put != nil {
			about = pkOf(put.Item)
		} else {
			about = pkOf(all[0].DeleteRequest.Key)
		}
	}
	return send(ctx, l, "BatchWriteItem", about, 1, func(db dynamo.API) (*dynamodb.BatchWriteItemOutput, error) { return db.BatchWriteItem(ctx, in) })
}

func (l link) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return send(ctx, l, "Scan", "", 0, func(dynamo.API) (*dynamodb.ScanOutput, error) { return l.p.w.db.Scan(ctx, in) })
}
