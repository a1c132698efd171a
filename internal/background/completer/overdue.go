package completer

import (
	"cmp"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/base/lru"
	"github.com/samekey/samekey/internal/state"
)

// mostOverdue is how many operations are remembered.
const mostOverdue = 10_000

// An overdue remembers operations that have long been due and can't be tried. Each
// sweep makes another ticket for such an operation. To find the tickets that aren't
// needed, an overdue remembers each operation's oldest ticket that this process saw.
type overdue struct {
	mu  sync.Mutex
	all *lru.Map[string, seen] // by operation
}

type seen struct {
	message string
	sent    int64
	at      time.Time // when the ticket was seen
}

func newOverdue() *overdue { return &overdue{all: lru.New[string, seen](mostOverdue)} }

// overdue.spare reports whether the ticket m isn't needed: a sweep has made m, and an
// older ticket of the operation waits. The parameter due is the due time of m. m counts
// as a sweep's ticket if it was already due when it was sent.
func (w *overdue) spare(m *received, operation string, due, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	this := seen{m.MessageId, m.number("SentTimestamp"), now}
	known, ok := w.all.Get(operation)
	older := ok && now.Sub(known.at) <= state.LeftToSweep && cmp.Or(cmp.Compare(known.sent, this.sent), cmp.Compare(known.message, this.message)) < 0
	if older && due.UnixMilli() <= this.sent {
		return true
	}
	if !older {
		w.all.Put(operation, this)
	}
	return false
}
