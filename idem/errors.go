package idem

import (
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Errors of an engine, for use with errors.Is. Their HTTP answers are in problem.go.
var (
	// ErrKeyMissing matches errors from a request that has no key although it needs
	// one.
	ErrKeyMissing = errors.New("idempotency key is missing")
	// ErrKeyInvalid matches errors from a key that is empty, too short, too long, sent
	// twice or not visible ASCII.
	ErrKeyInvalid = errors.New("idempotency key is invalid")
	// ErrScope matches errors from a request without a known caller: see [Options.Scope].
	ErrScope = errors.New("scope is unknown")
	// ErrRequest matches errors from a request that can't be decoded (such as invalid
	// base64) or compared ([Fingerprint.Func]). If the request's key has a record, the
	// error is ErrIncomparable instead.
	ErrRequest = errors.New("request can't be decoded")
	// ErrTooLarge matches errors from a request whose body is over the limit
	// ([Options.MaxRequest]) and whose key has no record.
	ErrTooLarge = errors.New("request body is too large")
	// ErrMismatch matches errors from a key that was first used with another request.
	ErrMismatch = errors.New("idempotency key was first used with another request")
	// ErrInFlight matches errors from a request whose key another attempt holds.
	ErrInFlight = errors.New("a request with this idempotency key is in flight")
	// ErrUnfinished matches errors from an operation that a later attempt has to
	// finish. The engine neither stores nor sends the handler's answer. The engine
	// doesn't free the key either, since a phase has committed, a call may have been
	// made, or the request is stored ([Options.Resumable]). A handler can still end the
	// operation with an answer made by [Respond], unless the handler leaves out a phase
	// or a call of an earlier attempt. ErrUnfinished also matches errors from a request
	// with too little time left to take an operation over (ErrNoTime).
	ErrUnfinished = errors.New("the request is not finished")
	// ErrStuck matches errors from a stuck operation, which waits for an operator.
	ErrStuck = errors.New("the request with this idempotency key is stuck")
	// ErrKeyUnknown matches errors from a status request for an unknown key.
	ErrKeyUnknown = errors.New("idempotency key is unknown")
	// ErrNotKept matches errors from a finished operation whose answer isn't stored, or not
	// whole.
	ErrNotKept = store.ErrNotKept
	// ErrEncoding matches errors from a finished operation whose answer is stored in a
	// content coding that the request doesn't accept.
	ErrEncoding = errors.New("the answer is stored in a content coding that the request doesn't accept")
	// ErrLeaseLost matches errors from an attempt that lost its lease to another attempt.
	// The attempt changed nothing after the loss.
	ErrLeaseLost = errors.New("lease lost to another attempt")
	// ErrNoTime matches errors from a request with too little time left to begin.
	ErrNoTime = errors.New("too little time left to begin")
	// ErrQuota matches errors from a new operation of a caller whose quota is used up.
	// Nothing was stored.
	ErrQuota = errors.New("quota is used up")
	// ErrUnavailable matches errors from a store that is unreachable or refuses a
	// call.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrIncomparable matches errors from a record whose fingerprint can't be compared:
	// this program doesn't know the fingerprint's scheme ([Fingerprint.Known]) or
	// secret ([Fingerprint.Secrets]). ErrIncomparable also matches errors from a
	// request whose key has a record, and whose content can't be read or compared
	// ([Request.Unread], [Fingerprint.Func]). The record may or may not belong to the
	// request. So the request doesn't run, and isn't refused as a mismatch
	// (ErrMismatch).
	ErrIncomparable = errors.New("the record's fingerprint can't be compared")

	// ErrPhaseOrder matches errors from a handler that repeats, nests or overlaps phases,
	// or whose phases differ from the recorded phases.
	ErrPhaseOrder = errors.New("phases out of order")
	// ErrPhaseFailed matches errors from a phase that begins after another phase has
	// failed.
	ErrPhaseFailed = errors.New("an earlier phase has failed")
	// ErrResult matches errors from a result or an answer that can't be stored unchanged or
	// can't be read back.
	ErrResult = errors.New("the result doesn't fit")
	// ErrWrite matches errors from a write or a job that can't be part of a commit; nothing
	// was sent to the store.
	ErrWrite = store.ErrWrite
	// ErrCondition matches errors from a commit whose user-supplied condition was
	// false; nothing was written.
	ErrCondition = store.ErrCondition
	// ErrKeyReused matches errors from a phase that requested the same derived key
	// twice.
	ErrKeyReused = errors.New("derived key is used twice: name the step")
	// ErrLookUp matches errors from a phase whose look-up doesn't fit the phase
	// ([LookUp]). The phase fails before the call.
	ErrLookUp = errors.New("the look-up doesn't fit its phase")
	// ErrContradiction reports that the provider recorded something other than what was
	// sent: another amount, or two charges for one key. Return ErrContradiction from a
	// look-up ([LookUp]): the operation is then stuck.
	ErrContradiction = errors.New("the look-up contradicts what was sent")
	// ErrDeliveryKey matches errors from a phase that must not run under a key that
	// names only a delivery ([Request.DeliveryKey]); nothing was called or written.
	ErrDeliveryKey = errors.New("the key names a delivery and not the work")
	// ErrNoOperation matches errors from a phase outside of an operation.
	ErrNoOperation = errors.New("not in an operation")
	// ErrUnprotected matches errors from a phase in a request that runs without a record
	// ([Options.Mode]). The request then fails with the same error. In [ModeOff],
	// ErrUnprotected also matches errors from [Engine.Status], [Engine.Resume] and the
	// decisions of operators.
	ErrUnprotected = errors.New("a record is needed, and the engine runs without records")
	// ErrAnswered matches errors from a phase of an attempt that a phase has ended:
	// with an answer, or because the operation is stuck, isn't finished, or was taken
	// over. The client gets that outcome regardless of the handler's return value.
	ErrAnswered = errors.New("the operation has its answer")

	// ErrConflict matches errors from a commit that was not applied: another write was
	// in progress, or an item that was read has changed.
	ErrConflict = store.ErrConflict
	// ErrCorrupt matches errors from an unreadable stored record.
	ErrCorrupt = store.ErrCorrupt
)

// Error describes where an operation failed. Use errors.As or
// errors.AsType[*Error] to get an Error.
type Error struct {
	Op         string        // the failed step: "key", "scope", "claim", "finish", …
	Record     string        // short hash that names the record in logs; "" before the key is known
	RetryAfter time.Duration // how long to wait before a retry; 0 = unknown
	Expires    time.Time     // end of the key's lifetime; zero if unknown
	Err        error

	phase bool // the error came from a phase, so the handler may return it
}

func (e *Error) Error() string {
	s := "idem: " + e.Op
	if e.Record != "" {
		s += " " + e.Record
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors for use inside of the engine.

var (
	errPanic  = errors.New("handler panicked")
	errUnread = errors.New("record can't be read")
)

// recordUnread is the error of a request that is refused before its record could be
// read. So the client's answer doesn't say what was done under the key.
type recordUnread struct{ err error }

func (u *recordUnread) Error() string { return u.err.Error() }

func (u *recordUnread) Unwrap() error { return u.err }

// handlerError distinguishes fn's own error from the engine's errors.
type handlerError struct{ err error }

func (h *handlerError) Error() string { return h.err.Error() }

func (h *handlerError) Unwrap() error { return h.err }

// panicked is the error of a handler's panic. It has no Unwrap, so an error in the panic's
// value can't count as the handler's answer. The error's text goes to the log and into the
// record.
type panicked struct{ value any }

func (p *panicked) Error() string { return "handler " + redact.Panic(p.value) }

// answered is the error that Respond returns.
type answered struct{ v any }

func (*answered) Error() string { return "idem: a definitive answer (return it from the handler)" }

// safe is the error that SafeToRetry returns.
type safe struct{ err error }

func (s *safe) Error() string { return s.err.Error() }

func (s *safe) Unwrap() error { return s.err }

// recordError returns the error of the failed step op, for the record with the
// partition key pk.
func recordError(op, pk string, err error) *Error {
	return &Error{Op: op, Record: redact.Record(pk), Err: err}
}

// phaseError returns an error of a phase, which the handler may return as its own
// error.
func phaseError(op, pk string, err error) *Error {
	e := recordError(op, pk, err)
	e.phase = true
	return e
}

// unavailable wraps err, an error of the store. The result matches ErrUnavailable,
// unless err matches ErrCorrupt.
func unavailable(op, pk string, err error) error {
	if errors.Is(err, ErrCorrupt) {
		return recordError(op, pk, err)
	}
	return recordError(op, pk, fmt.Errorf("%w: %w", ErrUnavailable, err))
}
