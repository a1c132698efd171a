package idem

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/meter"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// watch reports everything about an attempt: it calls the hooks, and keeps the trail for
// Hooks.Ended. Logs and metrics use hooks; tracing.go adds spans.
type watch struct {
	core   *core
	ask    *ask
	name   string // the record's name in logs, if the record isn't at the key's home
	trail  *trail // events for Hooks.Ended; nil without that hook
	course course // zero without a tracer
}

// course holds data that only the attempt's trace needs.
type course struct {
	own trace.Context // trace context of the attempt's outermost step, without tracestate; zero if the trace is not recorded

	mu        sync.Mutex    // guards the fields below, since a phase may outlive its handler
	operation string        // id of the operation, once known
	point     string        // name of the most recently committed phase
	origin    trace.Context // trace context of the operation's first attempt; zero if this is the first attempt
}

// trail collects the events of a request. Events may come from several goroutines, since a
// phase may outlive its handler.
type trail struct {
	begun time.Time
	meter meter.Meter

	mu       sync.Mutex
	happened []Event
}

// watch.tell calls the hook of an event, and keeps the event for Hooks.Ended. The event
// is about rec, which may be nil. The parameter more holds functions that add data to
// the event. If no hook needs the event, tell does nothing.
func (w *watch) tell(ctx context.Context, name happening, rec *store.Record, err error, more ...func(*Event)) {
	hook, t := w.core.hooks[name], w.trail
	if hook == nil && t == nil {
		return
	}
	ev := w.event(rec, err)
	ev.Name, ev.Resumed = string(name), w.ask.unattended
	for _, add := range more {
		add(&ev)
	}
	if hook != nil {
		hook(ctx, ev)
	}
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.happened = append(t.happened, ev)
	}
}

func (w *watch) step(ctx context.Context, kind trace.Kind, name string) (context.Context, span) {
	if w.core.opt.Tracer == nil {
		return ctx, span{}
	}
	return w.steps(ctx, trace.Step{Kind: kind, Name: name})
}

// watch.watched calls the function course, which handles a request, and then
// Hooks.Ended, if that hook is set.
func (w *watch) watched(ctx context.Context, course func(context.Context) (Result, error)) (res Result, err error) {
	if w.core.opt.Hooks.Ended == nil {
		return course(ctx)
	}
	w.trail = &trail{begun: time.Now()}
	ctx = meter.With(ctx, &w.trail.meter)
	err = errPanic // until course returns
	defer func() { w.core.opt.Hooks.Ended(ctx, w.summary(res, err)) }()
	return course(ctx)
}

func (w *watch) summary(res Result, err error) Summary {
	t := w.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, ok := errors.AsType[*handlerError](err); ok {
		err = h.err
	}
	s := Summary{
		Record: w.recordName(), Route: w.ask.req.Route, Resumed: w.ask.unattended, Begun: t.begun, Duration: time.Since(t.begun), Err: err,
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

// recordName returns the record's name for logs.
func (w *watch) recordName() string {
	if w.name != "" {
		return w.name
	}
	return redact.Record(w.ask.home.pk)
}

// [watch.finds] sets the record's name in logs. The parameter rec is the record that a
// claim has found, or nil if there was none.
func (w *watch) finds(rec *store.Record) {
	switch {
	case rec == nil:
	case w.ask.away(rec.PK):
		w.name = redact.Record(rec.PK)
	default:
		w.name = ""
	}
}

// watch.event describes what has happened to the record rec, which may be nil.
func (w *watch) event(rec *store.Record, err error) Event {
	ev := Event{Record: w.recordName(), Route: w.ask.req.Route, Err: err}
	if rec == nil || rec.State == store.None {
		return ev
	}
	ev.Record = redact.Record(rec.PK)
	ev.ID, ev.Created, ev.Expires = rec.ID, rec.Created, state.Lifetime(rec)
	if rec.Response != nil {
		ev.Status = rec.Response.Status
	}
	if rec.State == store.Open && !rec.Lease.IsZero() {
		ev.Lease = rec.Lease.Sub(w.core.opt.Now())
	}
	return ev
}
