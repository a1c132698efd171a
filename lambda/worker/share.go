package worker

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/jobs"
)

// leastShare lets a service that has come back show it.
const leastShare = 250 * time.Millisecond

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
	mine, cancel := context.WithTimeout(ctx, had)
	defer cancel()
	fn(mine)
	switch {
	case ctx.Err() != nil: // the time of others was up
	case mine.Err() != nil:
		s.set(max(had/2, min(leastShare, s.full)))
	default:
		s.set(min(2*had, s.full))
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

// Deliver implements [jobs.Sink].
func (s *sharedSink) Deliver(ctx context.Context, batch []jobs.Delivery) (errs []error) {
	s.use(ctx, func(ctx context.Context) { errs = s.Sink.Deliver(ctx, batch) })
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
