package lambda

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem"
)

// Batch splits the events of a source into records and reports failed records to the
// source. [WrapEach] makes each record an operation.
//
// [SQS] and the batches for other sources, listed in the package's overview, must not be changed.
// Change a copy:
//
//	queue := lambda.SQS.WithKey(orderID)
//	queue.RecordTimeout = 5 * time.Second
//
// All functions must be safe for concurrent use.
type Batch[Ev, Rec, Re any] struct {
	// Records returns the records of an event in their order. For an event of another kind, or
	// without records, Records returns an error that matches [ErrEvent]. Required.
	Records func(ev Ev) ([]Rec, error)

	// ID returns the id that the source gave to a record. Required.
	ID func(rec Rec) string

	// Key returns the name of a record's work: records with the same key are done once. An error,
	// or a key that isn't 1 to 255 visible ASCII characters, fails the record. "" means no key:
	// that also fails the record, unless the engine has [idem.KeyOptional]. Required.
	Key func(rec Rec) (string, error)

	// Request converts a record to a request without a key. Set Source to the source, so that
	// other sources can use the same key for other work. Body and Query identify the work: the
	// same key with other work is refused ([idem.ErrMismatch]). So Body and Query must not hold
	// data that another delivery may change. Set DeliveryKey if a record gets a new ID when it is
	// redelivered after the source gave up. DeliveryKey has an effect only if Key is the ID.
	// Required.
	Request func(ctx context.Context, rec Rec) (idem.Request, error)

	// Group returns the group of a record. The records of a group run in order: once a record
	// fails, later records of the group are not tried and count as failed. If Group is nil or
	// returns "", there is no order.
	Group func(rec Rec) string

	// Reply returns the report for the source. The parameter failed lists the ids of the records
	// that failed, in the event's order; the list may be empty. If Reply is nil, the source takes
	// no report, so each failure fails the whole invocation.
	Reply func(failed []string) Re

	// Name distinguishes a function's handlers if several of them take records of one source. The
	// name is part of the scope: if it changes, all earlier keys are new, and their work is done
	// again. So don't change a handler's name. If you add a second handler beside an unnamed
	// handler, name only the second. For each kind of record, at most one handler may be unnamed. A
	// name has at most 256 bytes. Default: no name.
	Name string

	// Scope replaces the source as the scope of the keys. For example, a handler of a dead-letter
	// queue uses the scope of the source queue. Batches with the same Scope share keys. If a
	// source delivers each record to several functions, each function still has separate keys.
	// Default: the source.
	Scope string

	// Keeps is the greatest age that a record may have when the source delivers it. If an engine
	// forgets keys earlier ([idem.Options.Retention]), the handler runs again for a late delivery;
	// WrapEach warns of this at cold start. The batches of this package have the longest time that
	// AWS allows; [Kafka] has Kafka's default. Set a shorter time if your source keeps records for
	// less, or a longer time if a topic, a dead-letter queue or an archive keeps records for
	// longer. 0: unknown.
	Keeps time.Duration

	// CallsAgainAfterRedrive treats a record that returns from a dead-letter queue with another ID
	// as a new operation. Phases then call other systems again, under new derived keys, and stage
	// their jobs again. Default: if the key is only the ID, a phase that calls another system is
	// refused ([idem.ErrDeliveryKey]), and so is a phase that stages jobs and isn't the final
	// phase. A key that names the work is better than this option.
	CallsAgainAfterRedrive bool

	// Concurrency is how many records, of different keys and groups, run at once. The handler must
	// be safe for concurrent use unless Concurrency is 1. A handler whose RecordTimeout has passed
	// is overdue, and doesn't count against Concurrency: the next record begins, and the overdue
	// handler may run until the event's end. 0 means 10; 1 means one record after the other.
	Concurrency int

	// RecordTimeout is the longest time that a record's handler gets, from the handler's start
	// until its context ends. Set it to the longest time that a sound record needs: a record that
	// hangs then costs its event no more time than that. 0: a share of the invocation's remaining
	// time, so that waiting records get a share too. Whatever RecordTimeout is, a handler gets at
	// most this share.
	RecordTimeout time.Duration

	// Failed is called for each record that was tried and failed. Without this hook the failure
	// may pass unnoticed, because an invocation that reports failed records looks successful.
	// Calls may be concurrent. nil: an error line on slog.Default, without the record's content.
	Failed func(ctx context.Context, rec Rec, err error)

	// NotRun is called for each sound record whose handler was not run, either because an earlier
	// record of the same group or key failed, or because no time was left. The source delivers the
	// record again, as after a failure. err matches [ErrNotRun]. NotRun is called at the event's
	// end, for one record after the other. nil: one warning line for the event on slog.Default.
	NotRun func(ctx context.Context, rec Rec, err error)

	shared bool // several functions may get the same record, and each of them does its own work
}

// WithKey returns a copy of b with another [Batch.Key], for records that name their work. With
// this key, an order that is sent twice is handled once:
//
//	lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) {
//		var o order
//		err := json.Unmarshal([]byte(m.Body), &o)
//		return o.ID, err
//	})
//
// For keys in JSON use [Batch.WithBodyKey], which needs no function of your own.
//
// Another key doesn't change what is compared with the first delivery: the whole body and the
// attributes. If the body differs each time it is sent, for example in a time, each delivery after
// the first is refused ([idem.ErrMismatch]), until the message is in the dead-letter queue. To
// compare only parts of the body, use [BodyKey.Comparing], or [idem.Fingerprint.Func] for all
// handlers on an engine. The message group is compared as well, so the same key in another group is
// refused.
func (b Batch[Ev, Rec, Re]) WithKey(key func(rec Rec) (string, error)) Batch[Ev, Rec, Re] {
	b.Key = key
	return b
}

// WithBodyKey returns a copy of b that finds keys in the bodies of records. The body is the data of
// a stream's record, the detail of an event, or a message without the envelopes of SNS and
// EventBridge. For S3 and DynamoDB the body is a JSON text of the parts of the record that [S3] and
// [DynamoDBStream] compare.
func (b Batch[Ev, Rec, Re]) WithBodyKey(k BodyKey) Batch[Ev, Rec, Re] {
	if b.Key = nil; k.Key == nil || b.Request == nil {
		return b // WrapEach panics
	}
	request := b.Request
	b.Key = func(rec Rec) (string, error) {
		req, err := request(context.Background(), rec)
		if err != nil {
			return "", err
		}
		return k.Key(req.Body)
	}
	b.Request = func(ctx context.Context, rec Rec) (idem.Request, error) {
		req, err := request(ctx, rec)
		if err == nil {
			k.compare(&req)
		}
		return req, err
	}
	return b
}

// WithScope returns a copy of b with another [Batch.Scope], so that several sources of the same
// work share their keys. For example, a queue shares keys with the queue to which an operator
// moves dead letters:
//
//	orders := lambda.SQS.WithScope("orders").WithKey(orderID)
//
// If the scope changes, all earlier keys are new, and their work is done again. By default the
// scope of a queue is the queue's ARN.
func (b Batch[Ev, Rec, Re]) WithScope(scope string) Batch[Ev, Rec, Re] {
	b.Scope = scope
	return b
}

// WithName returns a copy of b with another [Batch.Name], for a function with two
// handlers for one kind of record:
//
//	mails := lambda.WrapEach(engine, lambda.SNS.WithName("mails"), mail)
//	ledger := lambda.WrapEach(engine, lambda.SNS.WithName("ledger"), book)
func (b Batch[Ev, Rec, Re]) WithName(name string) Batch[Ev, Rec, Re] {
	b.Name = name
	return b
}

// valid reports whether b has its required functions and no negative limit.
func (b *Batch[Ev, Rec, Re]) valid() bool {
	return b.Records != nil && b.ID != nil && b.Key != nil && b.Request != nil && b.Concurrency >= 0 && b.RecordTimeout >= 0
}

// defaultConcurrency is the default of Batch.Concurrency. A queue's batch, too, has at most 10
// records by default, so no record waits for another.
const defaultConcurrency = 10

const (
	day = 24 * time.Hour

	// keepsAsync is the longest time that an asynchronous invocation waits
	// (MaximumEventAgeInSeconds), as AWS documents it in November 2026.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
	keepsAsync = 6 * time.Hour
)
