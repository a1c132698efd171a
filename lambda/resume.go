package lambda

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem"
)

// errNoInverse says that requests of an adapter are not run again.
var errNoInverse = errors.New("lambda: the adapter has no Event function: its requests can't be run again from their records")

// resume is Invoke for a completer's envelope: the handler gets an event made of
// the stored request. The answer goes into the record, for whoever asks next;
// the completer learns only what became of its ticket.
func (h *Handler[Ev, Re]) resume(ctx context.Context, t idem.Ticket, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, err
	case h.adapter.Event == nil:
		return EncodeOutcome(OutcomeOf(errNoInverse)), nil
	}
	return EncodeOutcome(OutcomeOf(h.run(ctx, t))), nil
}

// run brings t's operation to an end. A panic is a failed try like any other: the
// engine has released the record, and nobody waits for a crash.
func (h *Handler[Ev, Re]) run(ctx context.Context, t idem.Ticket) error {
	return resume(ctx, h.engine, t, h.names(), h.again)
}

func resume(ctx context.Context, e *idem.Engine, t idem.Ticket, names []idem.HandlerID, again func(context.Context, *idem.Request) (idem.Response, error)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	_, err = e.Resume(ctx, t, again, func(o *idem.ResumeOptions) { o.Handlers, o.Tenant = names, tenantOf(ctx) })
	return err
}

// names are all that this handler's records may name.
func (h *Handler[Ev, Re]) names() []idem.HandlerID {
	return append([]idem.HandlerID{{Name: h.opt.Name}}, h.opt.Accepts...)
}

// again runs the handler with an event made of a stored request.
func (h *Handler[Ev, Re]) again(ctx context.Context, req *idem.Request) (idem.Response, error) {
	req.Answer = h.answer
	ev, err := h.adapter.Event(*req)
	if err != nil {
		return idem.Response{}, fmt.Errorf("the stored request: %w", err)
	}
	own, err := h.fn(ctx, ev)
	if err != nil {
		return idem.Response{}, err
	}
	if h.adapter.typed {
		return h.neutral(own), nil
	}
	return h.adapter.Response(own)
}
