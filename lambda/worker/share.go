package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/redact"
)

// leastShare lets a service that has come back show it.
const leastShare = 250 * time.Millisecond

// atEaseKey marks the context of an event that holds up nothing but itself.
type atEaseKey struct{}

// atEase gives each share whole to an event of the queue: a job that takes longer than
// what is left of its sink's share would never be delivered otherwise.
func atEase(ctx context.Context) context.Context { return context.WithValue(ctx, atEaseKey{}, true) }

// share is a part of a batch's time. Whoever uses it up gets half as much the next
// time; who doesn't gets twice as much, up to the whole. So a service that hangs
// takes little of the time in the end, and one that is there again gets it back.
type share struct {
	mu        sync.Mutex
	full, now time.Duration
}

func newShare(full time.Duration) *share { return &share{full: full, now: full} }

// use calls fn with a context that ends with the share.
func (s *share) use(ctx context.Context, fn func(context.Context)) {
	s.mu.Lock()
	had := s.now
	s.mu.Unlock()
	gets, eased := had, ctx.Value(atEaseKey{}) != nil
	if eased {
		gets = s.full
	}
	began := time.Now()
	mine, cancel := context.WithTimeout(ctx, gets)
	defer cancel()
	fn(mine)
	switch {
	case mine.Err() == nil:
		s.set(min(2*had, s.full))
	case eased: // the stream was not held up
	case time.Since(began) < gets-gets/10: // the time of others was up
	default:
		s.set(max(had/2, min(leastShare, s.full)))
	}
}

func (s *share) set(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = d
}

// sharedSink is a sink with a share of the time.
type sharedSink struct {
	jobs.Sink
	*share
}

// Deliver implements [jobs.Sink]. A delivery that the end of the time has broken off
// says nothing of its job, and a panic is the sink's: neither counts against a job.
func (s *sharedSink) Deliver(ctx context.Context, batch []jobs.Delivery) (errs []error) {
	defer func() {
		if v := recover(); v != nil {
			errs = slices.Repeat([]error{fmt.Errorf("%w: %s", jobs.ErrSinkDown, redact.Panic(v))}, len(batch))
		}
	}()
	s.use(ctx, func(ctx context.Context) {
		errs = slices.Clone(s.Sink.Deliver(ctx, batch))
		for i, err := range errs {
			if ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
				errs[i] = fmt.Errorf("%w: its time is up: %w", jobs.ErrSinkDown, err)
			}
		}
	})
	return errs
}

// shareOut gives a sink a share, or each sink of a route one. Kinds with the same
// sink keep it in common.
func shareOut(to jobs.Sink, full time.Duration) jobs.Sink {
	route, ok := to.(jobs.Route)
	if !ok {
		return &sharedSink{to, newShare(full)}
	}
	shared := make(jobs.Route, len(route))
	same := make(map[jobs.Sink]*sharedSink)
	for kind, s := range route {
		if s == nil {
			continue
		}
		simple := reflect.ValueOf(s).Comparable()
		if simple && same[s] != nil {
			shared[kind] = same[s]
			continue
		}
		one := &sharedSink{s, newShare(full)}
		if simple {
			same[s] = one
		}
		shared[kind] = one
	}
	return shared
}

// sharedQueue is a queue with a share of the time.
type sharedQueue struct {
	jobs.TicketQueue
	*share
}

// Put implements [jobs.TicketQueue].
func (q *sharedQueue) Put(ctx context.Context, tickets []jobs.Ticket) (errs []error) {
	q.use(ctx, func(ctx context.Context) { errs = q.TicketQueue.Put(ctx, tickets) })
	return errs
}
