package idem

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// The calls of the hooks, and the trail that a request leaves for Hooks.Ended.

// trail collects the events of a request. Its attempt may tell events on several
// goroutines: a phase may outlive its handler.
type trail struct {
	begun time.Time
	meter store.Meter

	mu       sync.Mutex
	happened []Event
}

// tell calls the hook of an event, and keeps the event for Hooks.Ended.
func (a *attempt) tell(ctx context.Context, name happening, ev Event) {
	ev.Name, ev.Resumed = string(name), a.resumed
	if hook := a.hooks[name]; hook != nil {
		hook(ctx, ev)
	}
	if t := a.trail; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.happened = append(t.happened, ev)
	}
}

// refuses tells that r is refused before an attempt.
func (e *Engine) refuses(ctx context.Context, r *Request, err error) {
	a := &attempt{Engine: e, req: r}
	_, _ = a.watched(ctx, func(ctx context.Context) (Result, error) {
		a.tell(ctx, evRefused, Event{Route: r.Route, Err: err})
		return Result{}, err
	})
}

// watched runs the course of a request, and calls Hooks.Ended after it. Without that
// hook it costs nothing.
func (a *attempt) watched(ctx context.Context, course func(context.Context) (Result, error)) (res Result, err error) {
	if a.opt.Hooks.Ended == nil {
		return course(ctx)
	}
	a.trail = &trail{begun: time.Now()}
	ctx = store.WithMeter(ctx, &a.trail.meter)
	err = errPanic // until course returns
	defer func() { a.opt.Hooks.Ended(ctx, a.summary(res, err)) }()
	return course(ctx)
}

func (a *attempt) summary(res Result, err error) Summary {
	t := a.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	s := Summary{
		Record: redact.Record(a.pk), Route: a.req.Route, Resumed: a.resumed, Begun: t.begun, Duration: time.Since(t.begun), Err: err,
		Happened: slices.Clip(t.happened), Cost: t.meter.Cost(),
	}
	if err == nil {
		s.Status = res.Status
	}
	for _, ev := range t.happened {
		if ev.ID != "" {
			s.ID = ev.ID
		}
	}
	return s
}
