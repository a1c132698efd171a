package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Atomic runs fn and commits, all or nothing: the writes and jobs fn handed to
// its [Tx], and its result as the recovery point name. On a resumed operation
// where that is already committed, fn doesn't run and the stored result is
// returned.
//
// fn has no effect but what it hands to tx, and may run many times: after a
// conflict ([ErrConflict]) it runs again on fresh reads, for a few seconds. So it
// returns its result and assigns nothing outside. A condition of the user's own
// that is false is returned as [ErrCondition] and not tried again.
//
// The result must survive JSON: one with data in fields that JSON leaves out,
// at any depth, is refused before anything commits ([ErrResult]). What is
// returned is what a resumed run would get, also on the first run. Names are stable: a phase that is
// renamed, repeated, reordered, nested or left out, or overlaps another, fails
// with [ErrPhaseOrder] and never restarts anything. After a phase has failed,
// later ones return [ErrPhaseFailed] and what the handler then answers is not
// stored, unless by [Respond].
//
// If fn returns an answer made by [Respond], that is committed together with
// all fn handed to tx, and ends the operation. With [Deferred], nothing is
// written now: the result commits with the next phase.
//
// Outside of an operation (a request without a key, say) it returns
// [ErrNoOperation] and fn doesn't run.
func Atomic[T any](ctx context.Context, name string, fn func(context.Context, *Tx) (T, error), opts ...PhaseOption) (T, error) {
	s := step{kind: atomically, name: name}
	for _, opt := range opts {
		opt(&s)
	}
	return phase(ctx, s, fn)
}

// Foreign is a phase whose fn may call other systems, with the derived key of
// [Tx.Key]. The record is claimed and all results so far are committed before
// fn runs, and where its context is over by then it doesn't run ([ErrNoTime]).
// fn runs once an attempt: a conflict sends its commit again, never fn.
// Where the process dies before the commit, the next attempt calls again, with
// the same key, for as long as the provider remembers it ([Remembers]).
//
// Under a key that names only a delivery, such as the id of a message, it is refused
// ([ErrDeliveryKey]): with the next delivery's key, the call would be another one.
//
// Writes of the user are allowed here, but better in an [Atomic] that follows: a
// condition refused here repeats the call with the next attempt.
//
// An error of fn fails the phase and keeps the key's record; the client is told
// to retry with the same key. See [NotIdempotent] for systems without keys and
// [Deferred] for one call less.
func Foreign[T any](ctx context.Context, name string, fn func(context.Context, *Tx) (T, error), opts ...PhaseOption) (T, error) {
	s := step{kind: foreign, name: name, memory: trusted(DefaultMemory)}
	for _, opt := range opts {
		opt(&s)
	}
	return phase(ctx, s, fn)
}

// Finish is the last phase: its fn returns the handler's own response, which is
// stored whatever its status, in one commit with fn's writes and jobs. It is
// also the whole body of a handler that only writes to DynamoDB. fn may run many
// times, like [Atomic]'s.
//
//	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
//		tx.Write(dynamo.Put(rides, ride))
//		return created(ride), nil
//	})
//
// Re is the response type of the handler's adapter, or [Response]. What is
// stored is what the client gets, also where it isn't what Finish returns: an
// earlier commit of this attempt may have landed after all.
func Finish[Re any](ctx context.Context, fn func(context.Context, *Tx) (Re, error)) (Re, error) {
	var re Re
	f, err := flowOf(ctx)
	if err != nil {
		return re, err
	}
	_, err = f.do(ctx, step{kind: last}, func(ctx context.Context, tx *Tx) ([]byte, error) {
		r, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		re = r
		return nil, Respond(r)
	})
	if _, ok := errors.AsType[*answered](err); ok {
		err = nil
	}
	return re, err
}

// Stage adds jobs to the next commit of the operation in ctx, at the latest the
// one that stores the answer. An answer that isn't stored stages nothing.
// Outside of an operation it returns [ErrNoOperation]; a job that can't be
// staged is [ErrWrite], and then the answer isn't stored either, as after any
// failed phase: nothing is lost where nobody looks at the error.
//
// It belongs to the phase that follows: where that is already committed, the
// jobs were too, and are not staged again. That phase must not be a
// [NotIdempotent] one. Inside of a phase, which may run more than once, it is
// refused ([ErrPhaseOrder]): use [Tx.Stage]. After the answer it is too late
// ([ErrAnswered]).
func Stage(ctx context.Context, jobs ...Job) error {
	f, err := flowOf(ctx)
	if err != nil {
		return err
	}
	return f.stage(jobs)
}

// Respond makes a definitive answer of v, to be returned as the error of a
// phase's function or of the handler: it ends the operation and is stored
// whatever its status. v is a [Response] or the response type of the handler's
// adapter; anything else fails before the commit ([ErrResult]).
func Respond(v any) error { return &answered{v} }

// answered is Respond's error.
type answered struct{ v any }

func (*answered) Error() string { return "idem: a definitive answer (return it from the handler)" }

// SafeToRetry marks err as one after which a call that is [NotIdempotent] may be
// made again: it certainly had no effect. It returns nil for nil.
func SafeToRetry(err error) error {
	if err == nil {
		return nil
	}
	return &safe{err}
}

type safe struct{ err error }

func (s *safe) Error() string { return s.err.Error() }

func (s *safe) Unwrap() error { return s.err }

// PhaseOption varies a [Foreign]. An [Atomic] takes [Deferred] only: with any other
// option it fails with [ErrPhaseOrder], and fn doesn't run.
type PhaseOption func(*step)

// NotIdempotent is for a system that has no idempotency keys. That the call
// begins is committed first. From then on only a result, or an error wrapped by
// [SafeToRetry], lets the operation go on: any other error, or a process that
// dies, leaves the outcome unknown, the operation ends as stuck, and a human
// settles it. The call is never repeated otherwise. The phase's Tx takes
// neither writes nor jobs ([ErrWrite]), since the outcome must be recordable
// whatever else is stored.
func NotIdempotent() PhaseOption { return func(s *step) { s.intent, s.calls = true, true } }

// Deferred commits the phase's result with the next commit, which saves one
// call. Until then the phase may run again: if the process dies in between, the
// next attempt of a [Foreign] calls again with the same derived key. The Tx takes no
// writes ([ErrWrite]), and that of an [Atomic] no jobs either. Not together with
// [NotIdempotent].
func Deferred() PhaseOption { return func(s *step) { s.deferred = true } }

// DefaultMemory is for how long a provider is taken to remember a key.
const DefaultMemory = 24 * time.Hour

// Remembers says for how long the system that is called remembers a key.
// Default: [DefaultMemory]. A call that may have been made before is repeated
// only while that has not passed, less an hour (of a short memory, less a
// quarter), since the attempt that may have made it first began. Later the
// provider would take it for a new call, so it counts as one that is
// [NotIdempotent] and whose outcome is unknown: the operation is stuck, and
// waits for people. With zero or less no call is repeated that may have been
// made.
func Remembers(d time.Duration) PhaseOption {
	return func(s *step) { s.memory, s.calls = trusted(d), true }
}

// trusted is how much of a provider's memory is relied on.
func trusted(memory time.Duration) time.Duration { return memory - min(time.Hour, memory/4) }

// Sends says what the call to service (and steps, as of [Tx.Key]) sends: any
// value that JSON can hold, of which a hash is recorded. An attempt that would
// send something else under the key of a call that may have been made sends
// nothing: the operation is stuck, and waits for people.
//
// The hash is recorded where that costs no call of its own: with what is
// committed before the call, such as a merged claim or a pending result, and
// where the attempt fails in the call. After a process that died it may thus be
// missing, so it is no reason to send what isn't committed.
func Sends(service string, v any, steps ...string) PhaseOption {
	return func(s *step) { s.sends, s.calls = append(s.sends, send{service, steps, v}), true }
}

// phase runs a phase with a typed result.
func phase[T any](ctx context.Context, s step, fn func(context.Context, *Tx) (T, error)) (T, error) {
	var out T
	f, err := flowOf(ctx)
	if err != nil {
		return out, err
	}
	raw, err := f.do(ctx, s, func(ctx context.Context, tx *Tx) ([]byte, error) {
		v, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		return encodeResult(v)
	})
	if err != nil {
		return out, err
	}
	var zero T
	if err := json.Unmarshal(raw, &out); err != nil {
		return zero, f.fail(fmt.Errorf("%w: what %q stored is no %T: %w", ErrResult, s.name, zero, err))
	}
	if at := missing(raw, out); at != "" {
		return zero, f.fail(fmt.Errorf("%w: a %T has no place for %s of what %q stored", ErrResult, zero, at, s.name))
	}
	return out, nil
}
