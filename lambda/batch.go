package lambda

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem"
)

// Batch splits the events of a source into records and reports failed records to the
// source. [WrapEach] makes each record an operation.
//
// The package's overview lists [SQS] and the batches for other sources. Don't change
// these, but a copy:
//
//	queue := lambda.SQS.WithKey(orderID)
//	queue.RecordTimeout = 5 * time.Second
//
// All functions must be safe for concurrent use.
type Batch[Ev, Rec, Re any] struct {
	// Records returns the records of an event in the event's order. If the event is of
	// another kind, or has no records, Records returns an error that matches
	// [ErrEvent]. Required.
	Records func(ev Ev) ([]Rec, error)

	// ID returns the id that the source gave to a record. Required.
	ID func(rec Rec) string

	// Key returns the name of a record's work. If several records have the same key,
	// the work is done only once. The record fails if Key returns an error, or a key
	// that isn't 1 to 255 visible ASCII characters, or a new key shorter than
	// [idem.Options.MinKey]. "" means no key: the record then fails, unless the engine
	// has [idem.KeyOptional]. In [idem.ModeObserve] and [idem.ModeOff] the handler runs
	// in all these cases. Required.
	Key func(rec Rec) (string, error)

	// Request converts a record to a request without a key. Set Source to the source,
	// so that other sources can use the same key for other work. Set Body and Query to
	// the work that the record asks for: a key that was used with another Body or Query
	// is refused ([idem.ErrMismatch]). So leave out data that differs in each delivery.
	// Set DeliveryKey if a record gets a new ID when it is delivered again after the
	// source gave up. DeliveryKey has an effect only on records whose key is the ID.
	// Required.
	Request func(ctx context.Context, rec Rec) (idem.Request, error)

	// Group returns the group of a record. The records of a group run in order: once a
	// record fails, the event's later records of this group are not tried and count as
	// failed. If Group is nil, or returns "" for a record, the record has no group.
	Group func(rec Rec) string

	// Reply returns the report for the source. The parameter failed lists the ids of
	// the records that failed, in the event's order; the list may be empty. Reply is
	// nil if the source takes no report: then each failure fails the whole invocation.
	Reply func(failed []string) Re

	// Name distinguishes handlers of one function that take records of the same source.
	// The name is part of the scope. If the name changes, all earlier keys count as
	// new, and their work is done again. So don't change a handler's name. If you add a
	// second handler beside an unnamed handler, name only the second. For each kind of
	// record, at most one handler may be unnamed. A name has at most 256 bytes.
	// Default: no name.
	Name string

	// Scope replaces the source as the scope of the keys. Batches with the same Scope
	// and Name share keys. For example, a queue can share keys with a second queue, to
	// which an operator moves dead letters. If a source delivers each record to several
	// functions, each function has separate keys, whatever Scope is. Default: the
	// source.
	Scope string

	// Keeps is the greatest age that a record may have when the source delivers it. If
	// an engine forgets keys earlier ([idem.Options.Retention]), the handler runs again
	// for a late delivery. WrapEach logs a warning of this at cold start. In the
	// batches of this package, Keeps is the longest time that AWS allows; in [Kafka] it
	// is Kafka's default. Set a shorter time if your source keeps records for a shorter
	// time. Set a longer time if a topic, a dead-letter queue or an archive keeps them
	// longer. 0: unknown.
	Keeps time.Duration

	// CallsAgainAfterRedrive accepts that a record is a new operation if it returns
	// from a dead-letter queue with a new ID. The phases then call other systems again,
	// under new derived keys, and stage their jobs again. By default, if the key is the
	// ID and Request sets DeliveryKey, the engine refuses a phase that calls another
	// system, and a phase before the final phase that stages jobs
	// ([idem.ErrDeliveryKey]). A key that names the work is better than this option.
	CallsAgainAfterRedrive bool

	// Concurrency is how many records of an event run at once. Records of a group run
	// one after the other, and so do records outside groups that have the same key. A
	// handler that hasn't returned in its time (see RecordTimeout) is overdue: it may
	// run on (see [EachHandler.Handle]), but no longer counts, so the next record
	// begins. 0 means 10; 1 means one record after the other. The handler must be safe
	// for concurrent use, unless Concurrency is 1, no handler is ever overdue, and the
	// process has one invocation at a time.
	Concurrency int

	// RecordTimeout is the longest time from a handler's start until the handler's
	// context ends. Set RecordTimeout to the longest time that a sound record needs, so
	// that a record that hangs doesn't take much more time from its event. Each handler
	// gets at most a share of the invocation's remaining time, so that waiting records
	// get a share too. 0: the whole share.
	RecordTimeout time.Duration

	// Failed is called for each record that was tried and failed. An invocation that
	// reports failed records looks successful, so without this hook nobody may notice
	// the failure. Calls may be concurrent. nil: an error line on slog.Default, without
	// the record's content.
	Failed func(ctx context.Context, rec Rec, err error)

	// NotRun is called for each record whose handler was not run for one of the reasons
	// that [ErrNotRun] lists. The source delivers the record again, as after a failure.
	// err matches ErrNotRun. NotRun is called at the event's end, for one record after
	// the other. nil: one warning line for the event on slog.Default.
	NotRun func(ctx context.Context, rec Rec, err error)

	shared bool // several functions may get the same record, and each does its own work for it
}

// WithKey returns a copy of b with another [Batch.Key], for records that name their
// work. In this example, an order that is sent twice is handled once:
//
//	lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) {
//		var o order
//		err := json.Unmarshal([]byte(m.Body), &o)
//		return o.ID, err
//	})
//
// For keys in JSON use [Batch.WithBodyKey], which needs no function of your own.
//
// WithKey doesn't change what records with the same key must have in common
// ([Batch.Request]). For messages, this is the whole body, the attributes and the
// message group. Suppose that a producer sends an order twice, and that the two bodies
// differ, for example in the time of sending. Then the second message is refused
// ([idem.ErrMismatch]) at each delivery, until it is in the dead-letter queue. To
// compare only parts of the body, use [BodyKey.Comparing], or [idem.Fingerprint.Func]
// for all handlers on an engine.
func (b Batch[Ev, Rec, Re]) WithKey(key func(rec Rec) (string, error)) Batch[Ev, Rec, Re] {
	b.Key = key
	return b
}

// WithBodyKey returns a copy of b that finds keys in the bodies of records. The body of
// a message is its content, without envelopes of SNS and EventBridge. The body of an
// event of EventBridge is its detail, and the body of a Kinesis or Kafka record is its
// data. For S3 and DynamoDB streams, the body is a JSON text of the parts of the record
// that [S3] and [DynamoDBStream] compare.
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

// WithScope returns a copy of b with another [Batch.Scope], so that several sources of
// the same work share keys. For example, use this batch for a queue and for a second
// queue, to which an operator moves dead letters:
//
//	orders := lambda.SQS.WithScope("orders").WithKey(orderID)
//
// If the scope changes, all earlier keys count as new, and their work is done again. By
// default the scope of a queue is the queue's ARN.
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

// Batch.valid reports whether b has its required functions and no negative limit.
func (b *Batch[Ev, Rec, Re]) valid() bool {
	return b.Records != nil && b.ID != nil && b.Key != nil && b.Request != nil && b.Concurrency >= 0 && b.RecordTimeout >= 0
}

// defaultConcurrency is the default of Batch.Concurrency. An event of a queue has at
// most 10 records by default, so all its records can run at once.
const defaultConcurrency = 10

const (
	day = 24 * time.Hour

	// keepsAsync is the longest time that Lambda keeps the event of an asynchronous
	// invocation (MaximumEventAgeInSeconds), as AWS documents it in November 2026.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
	keepsAsync = 6 * time.Hour
)
