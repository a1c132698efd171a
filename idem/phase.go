package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/shape"
	"github.com/samekey/samekey/internal/state"
)

// Atomic runs fn, and commits fn's result together with the writes and jobs that fn gave to
// its [Tx]: all of them or nothing. The commit is a recovery point, called name. If an
// earlier attempt has committed this phase, Atomic returns the stored result and fn doesn't
// run.
//
// fn must have no effect except through its Tx. After a conflict ([ErrConflict]) Atomic
// repeats fn, with fresh reads, until a few seconds have passed. Since fn may run many
// times or not at all, fn must return its result, and must not assign to variables
// outside of fn. If a condition of one of fn's writes is false, Atomic returns
// [ErrCondition] and doesn't try again.
//
// The result is stored as JSON. If the JSON would lack a field with data, at any depth,
// Atomic refuses the result before anything commits ([ErrResult]). But if a type makes
// its own JSON (MarshalJSON, MarshalText), Atomic doesn't notice what this JSON lacks.
// Atomic always returns the value that it decodes from the JSON, so the first run gets
// the same value as a later attempt.
//
// Every attempt must run the same phases, in the same order and with the same names. If
// phases are renamed, repeated, reordered, nested, overlapping or left out, the attempt
// fails with [ErrPhaseOrder], and no committed phase runs again. After a failed phase,
// later phases return [ErrPhaseFailed], and the handler's answer is not stored unless
// [Respond] made it.
//
// If fn returns an answer made by [Respond], the answer is committed together with
// everything that fn gave to tx, and ends the operation.
//
// Outside of an operation (such as a request without a key) Atomic returns
// [ErrNoOperation] and fn doesn't run. If the request has no protection because of
// [Options.Mode], the error is [ErrUnprotected] instead.
func Atomic[T any](ctx context.Context, name string, fn func(context.Context, *Tx) (T, error)) (T, error) {
	return phase(ctx, phaseSpec{kind: atomically, name: name}, fn)
}

// Foreign is a phase whose fn may call other systems, with derived keys ([Tx.Key]).
// Before fn runs, all earlier phases are committed, and one write records that a call
// follows (see [Options.CallsOut]). From then on the record is kept until the operation
// ends. If the context ends before fn begins, fn doesn't run ([ErrNoTime]). fn runs at
// most once in each attempt: after a temporary conflict, the engine repeats only the
// commit. fn's context ends when fn returns, or as soon as the [Tx] refuses a key, a
// write or a job.
//
// If the process dies before the commit, the next attempt makes the call again, with
// the same key, as long as the provider remembers the key ([Remembers]). If an attempt
// answers without the call, its answer doesn't end the operation, whatever the answer's
// status, because the call's outcome would stay unknown. The engine withholds the
// answer, even one of [Respond]. After [Options.MaxTries] tries the operation is stuck.
//
// Foreign refuses a key that names only a delivery, such as the id of a message
// ([ErrDeliveryKey]), because the same work in a second delivery would call with
// another derived key.
//
// Foreign accepts no writes and no jobs ([ErrWrite]), because fn doesn't always run:
// the provider ([LookUp]) or a person may say how the call ended. Give writes and jobs
// to a following [Atomic] or to [Finish].
//
// If fn returns an error, the phase fails, and the record is kept. If the error is
// marked by [SafeToRetry], the key may become free instead. Either way, if the handler
// returns the error, the client is told to retry with the same key. See [NotIdempotent]
// for systems without keys.
func Foreign[T any](ctx context.Context, name string, fn func(context.Context, *Tx) (T, error), opts ...PhaseOption) (T, error) {
	s := phaseSpec{kind: foreign, name: name, memory: trusted(defaults.Memory)}
	for _, opt := range opts {
		opt(&s)
	}
	return phase(ctx, s, fn)
}

// Finish is the last phase. fn returns the handler's response. The response is stored,
// whatever its status, in one commit with fn's writes and jobs. A handler that only
// writes to DynamoDB can consist of Finish alone. fn may run many times, as in
// [Atomic].
//
//	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
//		tx.Write(dynamo.Put(rides, ride))
//		return created(ride), nil
//	})
//
// The type Re is the response type of the handler's adapter, or [Response]. If a commit
// was reported as failed but was applied after all, the stored response may differ from
// the one that Finish returns. The client always gets the stored response.
func Finish[Re any](ctx context.Context, fn func(context.Context, *Tx) (Re, error)) (Re, error) {
	var re Re
	r, err := runOf(ctx)
	if err != nil {
		return re, err
	}
	_, err = r.runPhase(ctx, phaseSpec{kind: last}, func(ctx context.Context, tx *Tx) ([]byte, error) {
		answer, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		re = answer
		return nil, Respond(answer)
	})
	if _, ok := errors.AsType[*answered](err); ok {
		err = nil
	}
	return re, err
}

// Stage adds jobs to the next commit of the operation in ctx: the commit of the next
// phase or, if no phase follows, of the answer. If that answer isn't stored, the jobs
// are not staged. If an earlier attempt has committed the next phase, it has committed
// the jobs too, and Stage doesn't stage them again. If the next phase is a [Foreign],
// that phase fails ([ErrWrite]).
//
// Stage returns [ErrWrite] for an invalid job, and [store.ErrTooLarge] for jobs that
// don't fit into the record (see [Tx.Stage]). Either error counts as a failed phase:
// the handler's answer is not stored unless [Respond] made it. So a handler that
// ignores the error loses no job, unless it answers with Respond.
//
// Inside a phase, Stage returns [ErrPhaseOrder], since a phase may run more than once:
// use [Tx.Stage]. After the answer Stage returns [ErrAnswered]. Outside of an operation
// Stage returns [ErrNoOperation], or [ErrUnprotected] as in [Atomic].
func Stage(ctx context.Context, jobs ...Job) error {
	r, err := runOf(ctx)
	if err != nil {
		return err
	}
	return r.stage(ctx, jobs)
}

// Respond makes a definitive answer of v. Return the answer as the error of a phase's
// function or of the handler. The answer then ends the operation, and is stored
// whatever its status. But if the attempt has left out a phase or a call of an earlier
// attempt, the answer is neither stored nor sent. v must be a [Response], or have the
// response type of the handler's adapter. Any other v fails with [ErrResult], before
// the commit.
func Respond(v any) error { return &answered{v} }

// SafeToRetry marks err, the error of a [Foreign] phase, to say that the phase's calls
// certainly had no effect (for example, the connection was refused). So the calls are not
// in doubt: even a [NotIdempotent] phase may make them again, and the key of the operation
// may become free. Don't mark the error of a library that retries by itself: an earlier
// try of the library may have had an effect. If err is nil, SafeToRetry returns nil.
func SafeToRetry(err error) error {
	if err == nil {
		return nil
	}
	return &safe{err}
}

// PhaseOption is an option of [Foreign].
type PhaseOption func(*phaseSpec)

// NotIdempotent is for a system without idempotency keys. Before the call, the engine
// records that the call begins. If fn then returns a result, the phase commits. If fn
// returns an error marked by [SafeToRetry], the call may be made again. After any other
// error, or if the process dies, the call's outcome is unknown. A [LookUp] of the phase
// then asks for the outcome. Without a LookUp the operation is stuck, and a person
// settles it. Only a SafeToRetry error, the look-up or a person's decision allows
// another call. Like every [Foreign], the phase accepts neither writes nor jobs
// ([ErrWrite]).
func NotIdempotent() PhaseOption { return func(s *phaseSpec) { s.intent = true } }

// Remembers says that the called system remembers a key for the duration d. Default: 24
// hours. As a margin, Samekey subtracts from d an hour, or a quarter of d if that is
// less. The time that remains is counted from the first attempt that may have made the
// call. Within this time, Samekey repeats a call that may have been made. Later the
// provider could carry out the call a second time, so Samekey asks the phase's
// [LookUp], as after a [NotIdempotent] call. Without a LookUp, the operation is stuck
// and waits for people. If d is zero or less, a call that may have been made is never
// repeated.
func Remembers(d time.Duration) PhaseOption {
	return func(s *phaseSpec) { s.memory = trusted(d) }
}

// trusted returns the time for which Samekey relies on a provider that remembers keys
// for the duration memory.
func trusted(memory time.Duration) time.Duration { return memory - min(time.Hour, memory/4) }

// Sends declares the data v that a call sends to another system. v may be any value
// that JSON can hold. The parameters service and steps name the call, as in [Tx.Key].
// Only a hash of v is recorded. If an earlier attempt may have made the call with other
// data, the call isn't made again, and the operation is stuck and waits for people.
//
// Sends doesn't always detect a change, so commit the data of a call in an earlier
// phase. The write before the call records the hash. With [Options.CallsOut], the first
// call has no write before it. If the attempt fails in that call, the write that
// releases the record also records the hash. If the process dies in that call, the hash
// is missing. For a [NotIdempotent] call without a [LookUp] no hash is recorded, since
// no retry repeats the call.
func Sends(service string, v any, steps ...string) PhaseOption {
	return func(s *phaseSpec) { s.sends = append(s.sends, send{service, steps, v}) }
}

// phase runs a phase with a typed result.
func phase[T any](ctx context.Context, s phaseSpec, fn func(context.Context, *Tx) (T, error)) (T, error) {
	var out T
	r, err := runOf(ctx)
	if err != nil {
		return out, err
	}
	s.result = reflect.TypeFor[T]()
	raw, err := r.runPhase(ctx, s, func(ctx context.Context, tx *Tx) ([]byte, error) {
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
		return zero, r.gate.fail(fmt.Errorf("%w: the stored result of phase %q can't be read as %T: %w", ErrResult, s.name, zero, redact.Decoding(err)))
	}
	if at := missing(raw, out); at != "" {
		return zero, r.gate.fail(fmt.Errorf("%w: the stored result of phase %q has %s, which %T lacks", ErrResult, s.name, at, zero))
	}
	return out, nil
}

// phaseSpec is a phase as the handler requested it.
type phaseSpec struct {
	kind   phaseKind
	name   string
	intent bool          // NotIdempotent
	memory time.Duration // how long a call may be repeated
	sends  []send
	result reflect.Type // type of the result; nil for the finish
	lookUp *lookUp      // how to ask for the outcome of the phase's call; nil without LookUp
}

type phaseKind int

const (
	atomically phaseKind = iota
	foreign
	last
)

// maxPhaseName is the length of the longest name of a phase, in bytes.
const maxPhaseName = 100

// send is the data that one call of a phase sends.
type send struct {
	service string
	step    []string
	v       any
}

func (s *phaseSpec) check() error {
	switch {
	case s.kind == last:
	case s.name == "" || len(s.name) > maxPhaseName || !utf8.ValidString(s.name):
		return fmt.Errorf("%w: the name %q: 1 to %d bytes of UTF-8", ErrPhaseOrder, s.name, maxPhaseName)
	}
	return nil
}

// recordsBegin reports whether an intent is recorded before the phase's call. A
// NotIdempotent phase without a look-up needs an intent, since only people can end the
// phase if its call's outcome stays unknown. For any other phase with a call, the
// record gets a mark instead.
func (s *phaseSpec) recordsBegin() bool { return s.intent && s.lookUp == nil }

// phaseSpec.doubtful describes the phase for questions about a call in doubt. call is
// the name of the phase's call, or "" if the questions don't need the name.
func (s *phaseSpec) doubtful(call string) state.Doubtful {
	return state.Doubtful{Phase: s.name, Call: call, Keyless: s.intent, Memory: s.memory}
}

// [phaseSpec.begins] returns the stored form of the phase whose call has begun. This form
// includes the shape of the result, since a person may have to supply the result.
func (s *phaseSpec) begins() store.Phase {
	return store.Phase{Name: s.name, Intent: true, Shape: shape.Of(s.result)}
}

// [phaseSpec.only] returns the name of the phase's call if the phase declares exactly one
// call, else "". A phase with a look-up must declare exactly one call.
func (s *phaseSpec) only(made map[string]int) string {
	if len(s.sends) != 1 {
		return ""
	}
	return callName(made, s.sends[0].service, s.sends[0].step)
}
