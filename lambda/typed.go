package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samekey/samekey/idem"
)

// Handlers of adapters whose answers are values and errors instead of HTTP.

// handleTyped is Handle for them.
func (h *Handler[Ev, Re]) handleTyped(ctx context.Context, ev Ev) (Re, error) {
	req, reqErr := h.adapter.request(ctx, ev)
	res, own, err := h.do(ctx, ev, req, reqErr)
	if o, ok := err.(*ownError); ok { //nolint:errorlint // as do returns it
		return own, o.err
	}
	if err != nil {
		return own, err
	}
	// What is stored counts, also the first time: a phase may have answered.
	re, err := decodeResult[Re](res.Body)
	if err != nil && !res.Replayed {
		return own, nil // a type that JSON can't give back: it is done, and Invoke doesn't decode it
	}
	return re, err
}

// invokeTyped is Invoke for them. First and later results are the same bytes.
func (h *Handler[Ev, Re]) invokeTyped(ctx context.Context, payload []byte, ev Ev) ([]byte, error) {
	req, reqErr := h.adapter.request(withPayload(ctx, payload), ev)
	res, _, err := h.do(ctx, ev, req, reqErr)
	if own, ok := err.(*ownError); ok { //nolint:errorlint // its text and type are the handler's, also where it is another engine's
		return nil, own.err
	}
	switch {
	case err != nil:
		return nil, reported(err)
	case len(res.Body) == 0:
		return []byte("null"), nil // a phase answered without a result
	}
	return res.Body, nil
}

// noForm begins what is stored for a result that can't be, which is no JSON.
const noForm = "\x00"

// neutral is a handler's own result as it is stored. What has no JSON form was done
// all the same: an error would only make the caller repeat it.
func (h *Handler[Ev, Re]) neutral(own Re) idem.Response {
	resp, err := h.adapter.Response(own)
	if err != nil {
		return idem.Response{Body: []byte(noForm + err.Error())}
	}
	return resp
}

// unreadable is the key of what can't be read. The engine refuses it, whatever
// becomes of requests without a key ([idem.Options.Key]); one that is disabled, or
// observes, runs the handler all the same.
const unreadable = "\x00"

// do carries out a request. own is the handler's own result where it ran, and
// the error an *ownError where the handler's is the reason.
func (h *Handler[Ev, Re]) do(ctx context.Context, ev Ev, req idem.Request, reqErr error) (res idem.Result, own Re, err error) {
	if errors.Is(reqErr, ErrEvent) {
		return res, own, reqErr
	}
	if reqErr != nil {
		req.Key = unreadable
	}
	if req.Answer == nil {
		req.Answer = h.answer
	}
	req.Handler.Name, req.Operation = h.opt.Name, h.opt.operation()
	ran := false
	res, err = h.engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		ran = true
		var err error
		if own, err = h.fn(ctx, ev); err != nil {
			return idem.Response{}, &ownError{err}
		}
		return h.neutral(own), nil
	})
	if o, ok := errors.AsType[*ownError](err); ok {
		return res, own, o
	}
	if err == nil && strings.HasPrefix(string(res.Body), noForm) {
		err = &idem.Error{Op: "result", Err: fmt.Errorf("%w: %s", idem.ErrNotKept, res.Body[len(noForm):])}
	}
	if err != nil {
		own = *new(Re) // not what is stored
	}
	if err != nil && reqErr != nil && !ran {
		err = reqErr
	}
	return res, own, engineError(err)
}
