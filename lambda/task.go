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

// read makes a record neutral. What can't be read has no key, which the engine
// refuses; a disabled one runs the handler all the same.
func (h *EachHandler[Ev, Rec, Re]) read(ctx context.Context, rec Rec) (t task) {
	defer func() {
		if v := recover(); v != nil {
			t.req.Key, t.err = "", panicked(v) // a Key function that didn't expect this record
		}
	}()
	if h.batch.Group != nil {
		t.group = h.batch.Group(rec)
	}
	if t.req, t.err = h.batch.Request(ctx, rec); t.err != nil {
		t.req.Key = ""
		return t
	}
	t.req.Redelivered = true
	t.req.Key, t.err = h.batch.Key(rec)
	t.err = keyError(t.req.Key, t.err)
	if t.err != nil {
		t.req.Key = ""
	}
	return t
}

// keyError is what a key function's result means.
func keyError(key string, err error) error {
	switch {
	case err != nil:
		return &idem.Error{Op: "key", Err: fmt.Errorf("%w: %w", idem.ErrKeyInvalid, err)}
	case key == "":
		return &idem.Error{Op: "key", Err: idem.ErrKeyMissing}
	}
	return nil
}
