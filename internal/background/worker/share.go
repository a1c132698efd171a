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
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
)

// leastShare is the shortest share. It is long enough for a working service to answer.
const leastShare = 250 * time.Millisecond

// turns is how many shares [share.use] gives a sink at most, one after another, in a
// context that is marked with [ease].
const turns = 6

// ease marks a context whose work holds up no other work. In such a context, a sink's
// [share] of the time has its full length, even if batches of the stream have halved
// the share, so that a slow job is delivered too. If the sink uses up the full length
// without progress, the sink's next share in this context lasts only leastShare.
type ease struct {
	mu   sync.Mutex
	hung map[*share]bool // shares that were used up without progress in this context
}

type easeKey struct{}

func atEase(ctx context.Context) context.Context {
	return context.WithValue(ctx, easeKey{}, &ease{hung: make(map[*share]bool)})
}

func easeOf(ctx context.Context) *ease {
	e, _ := ctx.Value(easeKey{}).(*ease)
	return e
}

// share is a service's part of a batch's time. If the service uses up the share without
// progress, the length of the share is halved. If the service makes progress or ends in
// time, the length is doubled, up to the full length.
type share struct {
	mu        sync.Mutex
	full, now time.Duration
}

func newShare(full time.Duration) *share { return &share{full: full, now: full} }

// share.use calls fn with a context that ends with the share. If ctx is marked with
// [ease], use repeats the call, each time with a new share, as long as fn makes
// progress and has work left.
func (s *share) use(ctx context.Context, fn func(context.Context) (progress, left bool)) {
	for range turns {
		if more := s.turn(ctx, fn); !more || easeOf(ctx) == nil {
			return
		}
	}
}

// share.turn calls fn with one share. The result more is true if fn made progress and
// has work left, and if ctx has not ended.
func (s *share) turn(ctx context.Context, fn func(context.Context) (progress, left bool)) (more bool) {
	had, eased := s.get(), easeOf(ctx)
	gets := had
	if eased != nil {
		gets = eased.get(s)
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, gets)
	defer cancel()
	progress, left := fn(limited)
	switch {
	case limited.Err() == nil || progress:
		s.set(min(2*had, s.full))
		eased.note(s, false)
	case time.Since(began) < gets-gets/10: // another limit ended ctx earlier: the share keeps its length
	case eased != nil: // no other work was held up: only this context's next share is shorter
		eased.note(s, true)
	default:
		s.set(max(had/2, min(leastShare, s.full)))
	}
	return progress && left && ctx.Err() == nil
}

// ease.get returns the length of the share s in e's context. This is the full length,
// or leastShare if the service last used up s in this context without progress.
func (e *ease) get(s *share) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hung[s] {
		return min(leastShare, s.full)
	}
	return s.full
}

func (e *ease) note(s *share, hung bool) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hung[s] = hung
}

func (s *share) get() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *share) set(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = d
}

type sharedSink struct {
	jobs.Sink
	*share
}

// Deliver implements [jobs.Sink]. A job that fails because its time is up or the sink
// panics gets [jobs.ErrSinkDown], which isn't counted as a failure of the job.
func (s *sharedSink) Deliver(ctx context.Context, batch []jobs.Delivery) (errs []error) {
	errs = make([]error, len(batch))
	left := make([]int, len(batch)) // indexes of the deliveries to be made
	for i := range left {
		left[i] = i
	}
	defer func() {
		if v := recover(); v != nil {
			for _, i := range left {
				errs[i] = fmt.Errorf("%w: %s", jobs.ErrSinkDown, redact.Panic(v))
			}
		}
	}()
	s.use(ctx, func(ctx context.Context) (progress, more bool) {
		part := make([]jobs.Delivery, len(left))
		for n, i := range left {
			part[n] = batch[i]
		}
		for n, err := range errlist.Pad(s.Sink.Deliver(ctx, part), len(part)) {
			if overdue(ctx, err) {
				err = fmt.Errorf("%w: its time is up: %w", jobs.ErrSinkDown, err)
			}
			errs[left[n]] = err
			progress = progress || err == nil
		}
		left = untried(batch, errs, left)
		return progress, len(left) > 0
	})
	return errs
}

// overdue reports whether a delivery was broken off because its time was up.
func overdue(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}

// untried returns, in order, the indexes of the deliveries whose time ran out. It
// leaves out a delivery if an earlier delivery of its group failed for another reason.
func untried(batch []jobs.Delivery, errs []error, of []int) (left []int) {
	failed := make(map[string]bool)
	for _, i := range of {
		switch err := errs[i]; {
		case err == nil || failed[batch[i].Group]:
		case errors.Is(err, context.DeadlineExceeded):
			left = append(left, i)
		default:
			failed[batch[i].Group] = true
		}
	}
	return left
}

// shareOut gives a share to a sink, or to each sink of a route. Kinds with the same sink have one
// share in common.
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

type sharedQueue struct {
	stream.TicketQueue
	*share
}

// Put implements [stream.TicketQueue].
func (q *sharedQueue) Put(ctx context.Context, tickets []jobs.Ticket) (errs []error) {
	q.use(ctx, func(ctx context.Context) (progress, left bool) {
		errs = q.TicketQueue.Put(ctx, tickets)
		return slices.Contains(errlist.Pad(errs, len(tickets)), nil), false
	})
	return errs
}
