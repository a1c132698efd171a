package lambda

import (
	"context"
	"time"

	"github.com/samekey/samekey/idem"
)

// Batch takes the events of a source apart into records, each of which
// [WrapEach] makes an operation of its own, and reports to the source which of
// them have failed.
//
// [SQS], [Kinesis], [DynamoDBStream], [SNS], [S3] and [EventBridge] are there.
// They must not be changed; a copy may be:
//
//	queue := lambda.SQS.WithKey(orderID)
//	queue.RecordTimeout = 5 * time.Second
//
// All functions must be safe for concurrent use.
type Batch[Ev, Rec, Re any] struct {
	// Records returns the records of an event in their order, or an error that
	// matches [ErrEvent] for an event of another kind, or without any record.
	// Required.
	Records func(ev Ev) ([]Rec, error)

	// ID is what the source knows a record by. Required.
	ID func(rec Rec) string

	// Key names the work that a record asks for: records of one key are done
	// once. An error, or a key that isn't 1 to 255 visible ASCII characters,
	// fails the record. "" says that there is none, which fails it too, unless the
	// engine has [idem.KeyOptional]. Required.
	Key func(rec Rec) (string, error)

	// Request makes a record neutral, but for its key. Scope is who else may
	// use the same key for other work: the source. Body and Query are what
	// identifies the work, so that the same key with other work is refused
	// ([idem.ErrMismatch]); what another delivery may change must not be in
	// them. DeliveryKey says that an ID is another one where a record is brought
	// back after its source has given up; it counts only where Key is the ID.
	// Required.
	Request func(ctx context.Context, rec Rec) (idem.Request, error)

	// Group puts records in groups that must be done in order: once one fails,
	// the rest of its group is not tried and counts as failed. nil, or "": no
	// order.
	Group func(rec Rec) string

	// Reply reports the failed records by their ids, in the event's order;
	// there may be none. nil: the source takes no such report, so every failure
	// is the whole invocation's.
	Reply func(failed []string) Re

	// Name tells apart what several handlers of one function do with the records of
	// one source: it is part of the scope. With another name all earlier keys are
	// new, and what they name is done again. So a handler keeps the name it has, and
	// one that has none stays without when a second one comes. At most 256 bytes.
	// Default: none, which one handler of each kind of record may have.
	Name string

	// Scope is where the keys are of, instead of the source itself, such as the queue
	// of which a dead-letter queue is. Whoever uses the same one shares the keys; of a
	// source that hands each record to several functions, each function still has its
	// own. Default: the source.
	Scope string

	// Keeps is for how long the source may bring a record: an engine that forgets
	// earlier ([idem.Options.Retention]) would let a late delivery run again, of which
	// WrapEach warns at cold start. The sources of this package have the longest time
	// that AWS lets them be set to; say less where yours is set to less, and more where
	// a dead-letter queue or an archive keeps it for longer. 0: nobody knows.
	Keeps time.Duration

	// CallsAgainAfterRedrive says that the program knows: a record that comes back
	// from a dead-letter queue with another ID is a new operation, so its phases call
	// other systems again under new derived keys, and stage their jobs again. Without
	// it, such phases are refused ([idem.ErrDeliveryKey]) where the key is only the
	// ID. Better have a key that names the work.
	CallsAgainAfterRedrive bool

	// Concurrency is how many records are worked on at once, of different keys
	// and groups; so the handler must be safe for concurrent use unless this is 1.
	// Each of them takes the memory that one call of the handler takes. A handler
	// that has not come back in its time is left behind, and another record takes
	// its place: it may run besides these until the event's end.
	// 0: 10. 1: one after the other.
	Concurrency int

	// RecordTimeout is the longest time a record's handler gets, from when it begins
	// until its context ends. Set it to what a sound record needs at most: then one
	// that hangs costs its event no more than that.
	// 0: what is left of the invocation, shared out so that the records which wait
	// for a worker get theirs too. That is a limit in any case.
	RecordTimeout time.Duration

	// Failed is told of each record that was tried and has failed, since the
	// invocation that reports it looks fine. It may be called for several at
	// once. nil: an error line on slog.Default, without the record's content.
	Failed func(ctx context.Context, rec Rec, err error)

	// NotRun is told of each record whose handler was not run, though nothing
	// was wrong with the record: an earlier one of its group or key has failed, or
	// the time was up. It comes again as if it had failed. err matches
	// [ErrNotRun]. It is called for one after the other, at the event's end. nil:
	// one warning line for the event on slog.Default.
	NotRun func(ctx context.Context, rec Rec, err error)

	shared bool // each function that gets a record does its own work
}

// WithKey is a copy of b with another [Batch.Key], for records that say
// themselves what they ask for. An order that is sent twice then is one order:
//
//	lambda.SQS.WithKey(func(m events.SQSMessage) (string, error) {
//		var o order
//		err := json.Unmarshal([]byte(m.Body), &o)
//		return o.ID, err
//	})
//
// [Batch.WithBodyKey] has such functions ready for JSON.
//
// A key doesn't change what is compared: the whole body, with the attributes. So a body
// that differs each time it is sent, such as by a time, is refused at each delivery
// after the first ([idem.ErrMismatch]), until it is in the dead-letter queue. Say what
// must be the same by [BodyKey.Comparing], or, for all handlers on an engine, by
// [idem.Fingerprint.Func]. A message group is compared as well: a key that comes again
// in another group is refused.
func (b Batch[Ev, Rec, Re]) WithKey(key func(rec Rec) (string, error)) Batch[Ev, Rec, Re] {
	b.Key = key
	return b
}

// WithBodyKey is a copy of b that finds keys in its records' bodies: a message
// without the envelopes of SNS and EventBridge, an event's detail, a stream's data. Of
// S3 and DynamoDB it is the JSON that their batches compare.
func (b Batch[Ev, Rec, Re]) WithBodyKey(k BodyKey) Batch[Ev, Rec, Re] {
	if b.Key = nil; k.Key == nil || b.Request == nil {
		return b // WrapEach says so
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
			err = k.compare(&req)
		}
		return req, err
	}
	return b
}

// WithScope is a copy of b with another [Batch.Scope], so that several sources of
// one work have their keys in common, such as a queue and the one that an operator
// moves its dead letters to:
//
//	orders := lambda.SQS.WithScope("orders").WithKey(orderID)
//
// With another scope all earlier keys are new, and what they name is done again. The
// ARN of a queue is the scope that it has without.
func (b Batch[Ev, Rec, Re]) WithScope(scope string) Batch[Ev, Rec, Re] {
	b.Scope = scope
	return b
}

// WithName is a copy of b with another [Batch.Name], for a function in which two
// handlers take records of one kind:
//
//	mails := lambda.WrapEach(engine, lambda.SNS.WithName("mails"), mail)
//	ledger := lambda.WrapEach(engine, lambda.SNS.WithName("ledger"), book)
func (b Batch[Ev, Rec, Re]) WithName(name string) Batch[Ev, Rec, Re] {
	b.Name = name
	return b
}

// valid reports whether b has all it needs.
func (b *Batch[Ev, Rec, Re]) valid() bool {
	return b.Records != nil && b.ID != nil && b.Key != nil && b.Request != nil && b.Concurrency >= 0 && b.RecordTimeout >= 0
}

// defaultConcurrency is how many records are worked on at once by default: as many
// as a queue delivers at once by default, so that none of them waits for another.
const defaultConcurrency = 10

const (
	day = 24 * time.Hour

	// keepsAsync is how long an asynchronous invocation waits at most
	// (MaximumEventAgeInSeconds), as AWS documents it in November 2026.
	// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
	keepsAsync = 6 * time.Hour
)
