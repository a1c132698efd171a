package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
)

// WrapEach makes a handler of single records safe to retry: each record of an event is
// an operation with its own key, lease and outcome. The type parameters follow from the
// batch:
//
//	lambda.WrapEach(engine, lambda.SQS, receive)
//
// A record is done when the handler h has returned nil for it, in this invocation or an
// earlier one. For a done record h doesn't run again. If h returns an error or panics,
// the record fails. The key is then free, unless a phase is committed or a call is in
// doubt. In these cases a record fails without a run of h:
//
//   - another invocation works on the record (for SNS, EventBridge and S3, WrapEach first waits for
//     that invocation: [idem.Request.Asynchronous]);
//   - the record's key was used for other work;
//   - too little time is left;
//   - the store doesn't answer.
//
// The source delivers a failed record again.
//
// A record has no key if [Batch.Key] returns "" and no error. Such a record fails. But
// if the engine has [idem.KeyOptional], h runs for each delivery of the record.
// [idem.KeyGenerate] doesn't help, since the next delivery would get another key. If
// [Batch.Key] returns an error, the record fails in every [idem.KeyMode].
//
// h runs for several records at once, each in its own goroutine ([Batch.Concurrency]). The context
// of a run ends when the record's share of the invocation's time is over, or earlier if
// [Batch.RecordTimeout] is shorter. Then h has to return. If h doesn't return, the record fails
// ([ErrOverdue]) and the other records go on; see [EachHandler.Handle].
//
// If a phase has failed and h returns nil, the record fails with the phase's error. If the
// record shall count as done in spite of the failed phase, h has to return [idem.Respond].
//
// h gets the record unchanged. WrapEach panics if a required value is nil. Except in
// [idem.ModeOff], it also panics if an engine gets two handlers of one kind of record
// with the same [Batch.Name], or two without a name, because each handler would skip
// records that only the other has done. Two handlers without a name on different
// engines also make WrapEach panic, if the engines have the same namespace and the same
// store, and the store counts handlers.
func WrapEach[Ev, Rec, Re any](e *idem.Engine, b Batch[Ev, Rec, Re], h func(context.Context, Rec) error) *EachHandler[Ev, Rec, Re] {
	switch {
	case e == nil:
		panic("lambda: WrapEach: engine is nil") //nolint:forbidigo // a mistake in the program
	case !e.Keeps(http.StatusOK):
		panic("lambda: WrapEach: Options.Stored doesn't keep 200, so no record would ever count as done") //nolint:forbidigo // a mistake in the program
	case !b.valid():
		panic("lambda: WrapEach: the batch lacks a function, or its Concurrency is negative") //nolint:forbidigo // a mistake in the program
	case h == nil:
		panic("lambda: WrapEach: handler is nil") //nolint:forbidigo // a mistake in the program
	}
	err := checkName(b.Name)
	if err == nil {
		err = e.AddOperation(reflect.TypeFor[Rec]().String(), b.Name)
	}
	if err != nil {
		panic(fmt.Sprintf("lambda: WrapEach: %v", err)) //nolint:forbidigo // a mistake in the program
	}
	e.AddSource(reflect.TypeFor[Rec]().String(), b.Keeps)
	if b.Failed == nil {
		b.Failed = func(ctx context.Context, rec Rec, err error) { logFailure(ctx, b.ID(rec), err) }
	}
	return &EachHandler[Ev, Rec, Re]{engine: e, batch: b, fn: h}
}

// EachHandler is a wrapped handler of single records. It is safe for concurrent
// use.
type EachHandler[Ev, Rec, Re any] struct {
	engine *idem.Engine
	batch  Batch[Ev, Rec, Re]
	fn     func(context.Context, Rec) error
	warned sync.Once // logs the warning about ReportBatchItemFailures once
}

var _ awslambda.Handler = (*EachHandler[any, any, any])(nil)

// Handle works on all records of an event, and returns when each record is done or has failed. If
// some have failed, the result names them for the source.
//
// Handle returns an error if no record was done, if records failed and the source takes
// no report of single records, or if ev isn't the batch's kind of event ([ErrEvent];
// nothing was done). If records failed, the error is a [*BatchError], or for an event
// of one record the record's error.
//
// If a handler has not returned in its time, its record fails ([ErrOverdue]), and
// Handle returns without waiting. The handler still runs, and still holds its key
// ([idem.Options.Lease]). But in Lambda, except on Managed Instances, Handle doesn't
// return but panics, so that the process ends. Otherwise Lambda would freeze the
// process, and the handler would continue later, when another invocation may hold the
// key.
func (h *EachHandler[Ev, Rec, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	re, overdue, err := h.each(ctx, ev)
	if overdue > 0 && freezes() {
		panic(ErrOverdue) //nolint:forbidigo // the process must not be frozen with a handler in it
	}
	return re, err
}

// Invoke is Handle for the runtime: payload and result are JSON. If the payload is
// another kind of event, the error says which kind. If the event has one record, errors
// of the engine have the errorTypes that [Direct] lists. If it has several, the
// errorType is BatchError.
//
// If a handler has not returned in its time, Invoke doesn't panic where Handle does.
// Instead, Invoke posts the answer to the runtime's API, and then restarts the program
// in the same process, so that the handler ends.
func (h *EachHandler[Ev, Rec, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	re, overdue, err := h.each(ctx, ev)
	var out []byte
	switch {
	case errors.Is(err, ErrEvent):
		err = fmt.Errorf("%w; the payload is %s", err, kind(payload))
	case err != nil:
		err = reported(err)
	default:
		out, err = encode(re)
	}
	if overdue > 0 && freezes() {
		startAnew(ctx, out, err)
	}
	return out, err
}

// EachHandler.each handles the records of an event. overdue is the number of handlers that are
// still running.
func (h *EachHandler[Ev, Rec, Re]) each(ctx context.Context, ev Ev) (re Re, overdue int, err error) {
	recs, err := h.batch.Records(ev)
	if err != nil {
		return re, 0, err
	}
	failed := []string{} // not nil: some emulators don't accept null as an empty list
	failure := &BatchError{Total: len(recs)}
	errs, overdue := h.all(ctx, recs)
	for i, err := range errs {
		if err != nil {
			id := h.batch.ID(recs[i])
			failed = append(failed, id)
			failure.Records = append(failure.Records, RecordError{ID: id, Err: err})
		}
	}
	switch {
	case len(failed) == 0 && h.batch.Reply == nil:
		return re, overdue, nil
	case len(failed) > 0 && len(recs) == 1:
		return re, overdue, failure.Records[0].Err
	case len(failed) > 0 && (h.batch.Reply == nil || len(failed) == len(recs)):
		return re, overdue, failure
	}
	if len(failed) > 0 {
		h.warned.Do(func() { // warn always, because a function can't learn whether the source reads the report
			slog.WarnContext(ctx, "records must be delivered again, which needs ReportBatchItemFailures on the event source mapping: "+
				"without it, Lambda counts them as done")
		})
	}
	return h.batch.Reply(failed), overdue, nil
}
