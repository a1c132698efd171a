package idem

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/samekey/samekey/idem/store"
)

// Op is the operation a handler runs in.
type Op struct {
	store   store.Store
	pk      string
	resumed bool
	flow    *flow
	outer   *Op         // whose handler this operation runs in; nil outside of any
	over    atomic.Bool // the handler has returned; its context may live on
}

// ID is the operation's server-made id: the same for every attempt, another one
// once the key has expired and is used again. It is safe to log. With
// [Options.MergeClaim] it is known for certain from the first commit on: a handler
// that begins again with an earlier attempt's record gets that one's.
func (o *Op) ID() string { return o.flow.id() }

// Resumed reports whether an earlier attempt began this operation and left it.
func (o *Op) Resumed() bool { return o.resumed }

type opKey struct{}

// FromContext returns the operation of the handler that ctx was given to, and
// false outside of one (also where a request carried no key).
func FromContext(ctx context.Context) (*Op, bool) {
	op, ok := ctx.Value(opKey{}).(*Op)
	return op, ok
}

func flowOf(ctx context.Context) (*flow, error) {
	op, ok := FromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("%w: does the route require a key, and is this the handler's context?", ErrNoOperation)
	}
	return op.flow, nil
}

// inside reports whether ctx already runs in the operation of pk, however deep:
// a wrapper in a wrapper would else answer "in flight" to itself.
func inside(ctx context.Context, store store.Store, pk string) bool {
	for op, _ := FromContext(ctx); op != nil; op = op.outer {
		if !op.over.Load() && op.pk == pk && sameStore(op.store, store) {
			return true
		}
	}
	return false
}

// sameStore compares stores of any type; those that can't be compared differ.
func sameStore(a, b store.Store) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// nested reports whether ctx runs in any operation, whose Respond then is
// another wrapper's to answer.
func nested(ctx context.Context) bool {
	op, ok := FromContext(ctx)
	return ok && !op.over.Load()
}
