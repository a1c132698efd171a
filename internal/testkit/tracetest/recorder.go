// Package tracetest has a tracer for tests, which records the steps.
package tracetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/samekey/samekey/internal/trace"
)

// Recorder is a tracer that stores its spans and samples all traces. The zero value is
// ready to use.
type Recorder struct {
	mu    sync.Mutex
	begun int
	spans []*Span
}

// Span is a step, and the step's outcome once the step has ended.
type Span struct {
	trace.Step
	trace.Outcome
	Parent *Span // the parent span; nil if this process has none
	Ends   int   // how often the span was ended

	number int
	trace  string
}

var _ trace.Tracer = (*Recorder)(nil)

type key struct{}

// Start implements [trace.Tracer].
func (r *Recorder) Start(ctx context.Context, s trace.Step) (context.Context, func(trace.Outcome)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	one := &Span{Step: s, number: r.begun}
	one.Parent, _ = ctx.Value(key{}).(*Span)
	one.trace = fmt.Sprintf("%032x", one.number)
	if one.Parent != nil {
		one.trace = one.Parent.trace
	}
	if from := s.From.Sound(); from.Parent != "" && (one.Parent == nil || s.Kind != trace.Operation) {
		one.trace = from.Parent[3:35]
	}
	r.spans = append(r.spans, one)
	return context.WithValue(ctx, key{}, one), func(o trace.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		one.Outcome, one.Ends = o, one.Ends+1
	}
}

// Context implements [trace.Tracer].
func (r *Recorder) Context(ctx context.Context) trace.Context {
	one, ok := ctx.Value(key{}).(*Span)
	if !ok {
		return trace.Context{}
	}
	return one.Identity()
}

// Identity returns the trace context by which other processes name s.
func (s *Span) Identity() trace.Context {
	return trace.Context{Parent: fmt.Sprintf("00-%s-%016x-01", s.trace, s.number)}
}

// Spans returns the spans in the order of their starts, and removes them from r.
func (r *Recorder) Spans() []*Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.spans
	r.spans = nil
	return all
}

// Tree returns a line for each span, with its kind, name and outcome. The indent is the
// span's depth.
func Tree(spans []*Span) string {
	var b strings.Builder
	for _, s := range spans {
		for up := s.Parent; up != nil; up = up.Parent {
			b.WriteString("  ")
		}
		words := []string{string(s.Kind), s.Name, s.Result, s.Code}
		if s.Status != 0 {
			words = append(words, strconv.Itoa(s.Status))
		}
		if s.Replayed {
			words = append(words, "replayed")
		}
		if s.Ends != 1 {
			words = append(words, fmt.Sprintf("ended %d times", s.Ends))
		}
		b.WriteString(strings.Join(strings.Fields(strings.Join(words, " ")), " ") + "\n")
	}
	return b.String()
}
