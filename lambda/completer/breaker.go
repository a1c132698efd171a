package completer

import (
	"sync"
	"time"

	"github.com/samekey/samekey/internal/base/lru"
)

const (
	// failures in a row open a breaker: one may be its operation's fault.
	failures = 3
	// probePause is the time until the first probe, if the grace is no shorter. It doubles with
	// each probe that fails, up to 16 times.
	probePause = time.Minute
	doublings  = 4
	// mostBreakers is how many functions are remembered: their names are in the records.
	mostBreakers = 1000
)

// breakers are the functions whose last tries have failed, as this process saw it.
type breakers struct {
	pause time.Duration // until the first probe

	mu  sync.Mutex
	all *lru.Map[string, *breaker]
}

func newBreakers(pause time.Duration) breakers {
	return breakers{pause: pause, all: lru.New[string, *breaker](mostBreakers)}
}

type breaker struct {
	failed  int       // tries in a row
	until   time.Time // of the pause
	probing bool      // a ticket tries
}

// enter reports whether a ticket may try a function, or until when it waits.
func (b *breakers) enter(function string, now time.Time) (until time.Time, may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, known := b.all.Get(function)
	switch {
	case !known || one.failed < failures:
		return time.Time{}, true
	case now.Before(one.until):
		return one.until, false
	case one.probing:
		return now.Add(b.pause), false
	}
	one.probing = true
	return time.Time{}, true
}

// leave notes how a try has ended.
func (b *breakers) leave(function string, now time.Time, how TicketOutcomeKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if how == TicketDone {
		b.all.Drop(function)
		return
	}
	one, known := b.all.Get(function)
	if !known {
		one = &breaker{}
		b.all.Put(function, one)
	}
	one.probing = false
	if how == TicketFailed {
		one.failed++
		one.until = now.Add(b.pause << min(max(one.failed-failures, 0), doublings))
	}
}
