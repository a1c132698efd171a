package lambda

import (
	"context"
	"fmt"

	"github.com/samekey/samekey/idem"
)

// task is what is known of a record before it is tried.
type task struct {
	req   idem.Request
	group string
	err   error // why it can't be told what the record asks for
}

// read makes a record neutral. What can't be read has a key that the engine
// refuses.
func (h *EachHandler[Ev, Rec, Re]) read(ctx context.Context, rec Rec) (t task) {
	defer func() {
		if v := recover(); v != nil {
			t.req.Key, t.err = unreadable, panicked(v) // a Key function that didn't expect this record
		}
	}()
	if h.batch.Group != nil {
		t.group = h.batch.Group(rec)
	}
	if t.req, t.err = h.batch.Request(ctx, rec); t.err != nil {
		t.req.Key = unreadable
		return t
	}
	t.req.Redelivered, t.req.Operation = true, h.batch.Name
	switch {
	case h.batch.Scope == "":
	case h.batch.shared:
		t.req.Scope = consumerScope(ctx, h.batch.Scope)
	default:
		t.req.Scope = h.batch.Scope
	}
	t.req.Key, t.err = keyOf(h.batch.Key(rec))
	t.req.DeliveryKey = t.req.DeliveryKey && t.req.Key == h.batch.ID(rec) && !h.batch.CallsAgainAfterRedrive
	return t
}

// keyOf is what a key function's result means. One that fails has not found that
// there is no key.
func keyOf(key string, err error) (string, error) {
	if err != nil {
		return unreadable, &idem.Error{Op: "key", Err: fmt.Errorf("%w: %w", idem.ErrKeyInvalid, err)}
	}
	return key, nil
}
