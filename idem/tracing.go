package idem

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The steps of an attempt, for Options.Tracer. If there is no tracer, [watch.step] returns
// at once, and nothing is allocated or stored.

// span is a step that has begun. The zero span, for engines without a tracer, does nothing.
type span struct {
	end func(trace.Outcome)
}

func (s span) done(err error) {
	if s.end != nil {
		s.end(spanOutcome(err))
	}
}

// spanOutcome describes how a step ended. err may be nil. A definitive answer is not an
// error.
func spanOutcome(err error) trace.Outcome {
	if end, ok := errors.AsType[*attemptOver](err); ok {
		err = end.toPhase
	}
	if _, answer := errors.AsType[*answered](err); err == nil || answer || errors.Is(err, ErrAnswered) {
		return trace.Outcome{}
	}
	return trace.Outcome{Err: err, Code: codeOf(err), Panicked: errors.Is(err, errPanic)}
}

// codeOf returns the Problem.Code for err. If the error comes from the handler and not
// from a phase, codeOf returns failed.Code, because such an error may wrap an error of
// a nested operation.
func codeOf(err error) string {
	if h, ok := errors.AsType[*handlerError](err); ok {
		if ours, _ := errors.AsType[*Error](h.err); ours == nil || !ours.phase {
			return failed.Code
		}
	}
	return problemOf(err).Code
}

// [watch.steps] begins the attempt's step s. It needs a tracer; [watch.step] works without
// a tracer.
func (w *watch) steps(ctx context.Context, s trace.Step) (context.Context, span) {
	s.Record, s.Operation, s.Route = w.recordName(), w.told(trace.Outcome{}).Operation, w.ask.req.Route
	ctx, end := w.core.opt.Tracer.Start(ctx, s)
	return ctx, span{end}
}

// watch.met stores data of the operation's record for the following spans.
func (w *watch) met(rec *store.Record) {
	if rec == nil || rec.State == store.None {
		return
	}
	w.course.mu.Lock()
	defer w.course.mu.Unlock()
	w.course.operation, w.course.point = rec.ID, ""
	if n := len(rec.Phases); n > 0 {
		w.course.point = rec.Phases[n-1].Name
	}
	if rec.Trace != w.course.own {
		w.course.origin = rec.Trace
	}
}

// watch.operate runs fn as the outermost step of a request. A new operation's record
// stores the trace context of this step, so that later traces can link to it. If the
// trace is not recorded, the context is not stored, since a link would lead nowhere.
func (w *watch) operate(ctx context.Context, fn func(context.Context) (Result, error)) (Result, error) {
	s := trace.Step{Kind: trace.Operation, From: w.ask.req.Trace}
	if w.ask.req.Redelivered || w.ask.req.Trace != (trace.Context{}) {
		s.Kind = trace.Process
	} else {
		s.From = sender(w.ask.req.Header)
	}
	return w.outermost(ctx, s, func(ctx context.Context) (Result, error) {
		if own := contextOf(ctx, w.core.opt.Tracer); own.Sampled() {
			w.course.own.Parent = own.Parent
		}
		return fn(ctx)
	})
}

// sender returns the trace context in a request's headers.
func sender(h http.Header) trace.Context {
	if len(h["Traceparent"]) != 1 {
		return trace.Context{} // if there are two such headers, neither is used
	}
	return trace.Context{Parent: h["Traceparent"][0], State: strings.Join(h["Tracestate"], ",")}
}

// watch.resume runs fn as the outermost step of a completer's attempt. began is the
// time at which the take-over of the record began.
func (w *watch) resume(ctx context.Context, rec *store.Record, began time.Time, fn func(context.Context) (Result, error)) (Result, error) {
	if w.core.opt.Tracer == nil {
		return fn(ctx)
	}
	w.met(rec)
	return w.outermost(ctx, trace.Step{Kind: trace.Resume, Origin: rec.Trace, Began: began}, fn)
}

// watch.outermost runs fn as a step, and ends the step even if fn doesn't return.
func (w *watch) outermost(ctx context.Context, s trace.Step, fn func(context.Context) (Result, error)) (res Result, err error) {
	ctx, sp := w.steps(ctx, s)
	back := false
	defer func() {
		end := err
		if !back {
			end = errPanic
		}
		o := w.told(spanOutcome(end))
		if end == nil {
			o.Status, o.Replayed = res.Status, res.Replayed
		}
		sp.end(o)
	}()
	res, err = fn(ctx)
	back = true
	return res, err
}

// watch.told adds data from the operation's record to o.
func (w *watch) told(o trace.Outcome) trace.Outcome {
	w.course.mu.Lock()
	defer w.course.mu.Unlock()
	o.Operation, o.Point, o.Origin = w.course.operation, w.course.point, w.course.origin
	return o
}

func (w *watch) claimEnds(s span, rec *store.Record, v state.Verdict, err error) {
	w.met(rec)
	o := w.told(spanOutcome(err))
	if err == nil {
		o.Result = results[v]
	}
	s.end(o)
}

// results are the names of verdicts in traces.
var results = [...]string{
	state.Own: "new", state.TakeOver: "take_over", state.Replay: "replay", state.Mismatch: "mismatch",
	state.Stuck: "stuck", state.InFlight: "in_flight", state.Claimable: "in_flight", state.TooSoon: "withheld",
}

// contextOf returns the trace context of the span in ctx, in the form to store.
func contextOf(ctx context.Context, t trace.Tracer) trace.Context {
	if t == nil {
		return trace.Context{}
	}
	return t.Context(ctx).Sound()
}

// giveTrace gives each job without a trace context the context of the span in ctx. It
// changes jobs, so the caller must pass its own copy.
func (w *watch) giveTrace(ctx context.Context, jobs []Job) {
	own := contextOf(ctx, w.core.opt.Tracer)
	for i := range jobs {
		if jobs[i].Trace = jobs[i].Trace.Sound(); jobs[i].Trace == (trace.Context{}) {
			jobs[i].Trace = own
		}
	}
}
