package idem

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Op describes the operation in which a handler runs.
type Op struct {
	run       *run
	takenOver bool
	outer     *Op         // the enclosing operation; nil if there is none
	over      atomic.Bool // whether the handler has returned; its context may still be in use
}

// ID is the operation's server-made id, the same for every attempt. The id is safe to
// log. Once the key is free, the next operation under the key has a new id. A key
// becomes free in three cases: its record expires; a person frees the key
// ([Engine.Forget]); or an attempt ends without a stored answer, and nothing was done
// under the key. If the request is stored ([Options.Resumable]), the third case also
// requires that the handler answered with a 4xx, that the tries are used up
// ([Options.MaxTries]), or that the stored request is lost.
func (o *Op) ID() string { return o.run.record().ID }

// TakenOver reports whether this attempt took over an operation that an earlier attempt
// had left unfinished. This attempt may be a client's or a completer's.
func (o *Op) TakenOver() bool { return o.takenOver }

// Caller returns the operation's caller, the same in every attempt. A completer's attempt
// has the caller too, although the completer's request has no header that names the caller.
// The tenant is not part of the caller.
//
// The Identity's Kind says what its Subject is. If Kind is "program", Subject is the
// value of [Request.Scope] or the result of [Options.Scope]. If Kind is "source", Subject
// is the source of events. If Kind is "one" ([OneScope]), Subject is empty. Any other
// Kind is that of [Request.Identity], and Subject is verified. To compare two callers,
// compare both Kind and Subject.
func (o *Op) Caller() Identity { return o.run.ask.placeOf(o.run.record()).whose }

// opContext is the context of an operation's handler.
type opContext struct {
	context.Context //nolint:containedctx // it is a context
	op              Op
}

type opKey struct{}

// Value implements [context.Context].
func (c *opContext) Value(key any) any {
	switch key.(type) {
	case opKey:
		return &c.op
	case verifiedKey:
		if r := c.op.run.ask.req; r.hasSender() {
			return r.sender()
		}
	}
	return c.Context.Value(key)
}

// FromContext returns the operation of the handler that got ctx. Outside of an
// operation it returns false. A request that runs without a key has no operation.
func FromContext(ctx context.Context) (*Op, bool) {
	op, ok := ctx.Value(opKey{}).(*Op)
	return op, ok
}

func runOf(ctx context.Context) (*run, error) {
	op, ok := FromContext(ctx)
	if !ok || op.run.ask.core.opt.Mode == ModeObserve {
		if err := refusesPhase(ctx); err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, fmt.Errorf("%w: does the route require a key, and is this the handler's context?", ErrNoOperation)
	}
	return op.run, nil
}

// nested(ctx) reports whether ctx belongs to an operation whose handler still runs. If
// so, a value that was given to [Respond] becomes an answer only in the operation's own
// wrapper.
func nested(ctx context.Context) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load()
}
