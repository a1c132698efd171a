package completer

import (
	"cmp"
	"sync"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/lru"
)

const (
	// failures is how many different operations must fail before a breaker opens. A
	// single failure isn't enough, because the operation itself may be the cause.
	failures = 3
	// probePause is the time between two probes of a function whose breaker is open. If
	// Options.Grace is shorter, the pause is Options.Grace. The pause must be short,
	// because many bad operations may fail as probes before a good operation succeeds.
	probePause = time.Minute
	// mostBreakers is how many functions are remembered at most, since records may name any number
	// of functions.
	mostBreakers = 1000
	// mostFailed is how many operations, and how many callers, a breaker remembers.
	mostFailed = 1000
)

// breakers remembers the functions that gave this process no answer: they were
// throttled or out of reach, timed out or crashed. Any answer proves that the function
// works, even the answer that an operation has failed. After a failed operation only
// that operation waits, longer after each try.
type breakers struct {
	pause time.Duration // between two probes

	mu  sync.Mutex
	all *lru.Map[string, *breaker]
}

func newBreakers(pause time.Duration) breakers {
	return breakers{pause: pause, all: lru.New[string, *breaker](mostBreakers)}
}

// breaker is a function that currently gives no answer. The breaker is open once
// several different operations have failed. While the breaker is open, one operation at
// a time probes the function, and the others wait.
type breaker struct {
	failed  *lru.Map[string, bool] // operations without an answer
	callers *lru.Map[string, bool] // the callers of these operations
	until   time.Time              // the end of the pause between probes
	probing string                 // the operation that probes the function now
	next    candidate              // the waiting operation that probes next
}

// candidate is an operation that waits to probe its function.
type candidate struct {
	operation string
	rank      int       // see breaker.rank
	due       time.Time // among operations of the same rank, the one with the earliest due time probes first
	comes     time.Time // when the operation's ticket is visible again
}

func (c *candidate) before(other *candidate) bool {
	return cmp.Or(cmp.Compare(c.rank, other.rank), c.due.Compare(other.due)) < 0
}

// breaker.rank returns 2 for an operation that has been tried before, 1 if another
// operation of the same caller has failed, and 0 otherwise. Operations of a lower rank
// probe first, because their failures say more about the function. In this order, other
// callers don't wait behind one caller's many bad operations.
func (one *breaker) rank(r *store.Record) int {
	if _, failed := one.failed.Get(r.ID); failed || r.Tries > 0 {
		return 2
	}
	if _, failed := one.callers.Get(r.Scope); failed {
		return 1
	}
	return 0
}

// breakers.enter reports whether the operation of r may try its function now. If not,
// the operation waits until the returned time. due is when the operation became due.
func (b *breakers) enter(r *store.Record, due, now time.Time) (until time.Time, may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, known := b.all.Get(r.Handler.Function)
	if !known || one.failed.Len() < failures {
		return time.Time{}, true
	}
	c := candidate{operation: r.ID, rank: one.rank(r), due: due}
	next := &one.next
	waits := next.operation != "" && !now.After(next.comes.Add(b.pause)) // others don't wait for a late candidate, because its ticket is in another process, or has ended
	other := waits && next.operation != r.ID
	c.comes = one.until
	if early := now.Before(c.comes); !early && one.probing == "" && (!other || !next.before(&c)) {
		one.probing, one.next = r.ID, candidate{}
		return time.Time{}, true
	} else if !early {
		c.comes = now.Add(b.pause)
	}
	if !other || c.before(next) {
		one.next = c
	}
	return c.comes, false
}

// breakers.leave records how the try of an operation has ended. A try without an answer
// counts against the function only if no earlier try of the operation is on record.
func (b *breakers) leave(r *store.Record, now time.Time, o TicketOutcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	function := r.Handler.Function
	if !o.Unanswered {
		b.all.Drop(function)
		return
	}
	one, known := b.all.Get(function)
	if !known {
		one = &breaker{failed: lru.New[string, bool](mostFailed), callers: lru.New[string, bool](mostFailed)}
		b.all.Put(function, one)
	}
	if one.probing == r.ID {
		one.probing = ""
	}
	if r.Tries == 0 {
		one.failed.Put(r.ID, true)
		one.callers.Put(r.Scope, true)
	}
	one.until = now.Add(b.pause)
}
