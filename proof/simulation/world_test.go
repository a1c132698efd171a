package simulation

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// world is one episode. Its actors (clients, and the goroutines of invocations) run in a
// bubble of testing/synctest. What they share they reach by call only, and one goroutine,
// the scheduler, carries out the calls, one at a time: so what happens, and when, follows
// from the seed.
type world struct {
	episode
	begin time.Time
	rng   *rand.Rand // only the scheduler draws from it

	db       *fakedynamo.DB
	provider *provider
	bank     *bank
	ledger   ledger
	queues   map[string]*queue
	states   *machines
	schedule map[string]bool // that wait, by their names

	scheduled int
	feed      *feed
	fleet     *fleet
	rolls     *rollOut // nil: keys mean the same all the time
	business  []*business

	events   agenda
	seq      int
	calm     bool // faults are over
	settled  bool
	limit    time.Time // by when all is settled
	pause    time.Duration
	throttle time.Time // until when DynamoDB throttles
	moved    time.Time // when something happened last that is not the clock's
	steps    int

	counts  map[fault]int
	history []string
	record  bool // keep the history
	wrong   []string

	ctx  context.Context
	stop context.CancelCauseFunc

	mu      sync.Mutex
	arrived []*call
	wake    chan struct{}
	over    bool
	actors  sync.WaitGroup
	left    int // clients that haven't ended
}

var (
	errOver    = errors.New("the episode is over")
	errCrashed = errors.New("the process has crashed")
)

// call is what an actor asks of the world.
type call struct {
	actor, op, about string
	rank             string   // orders the calls of an actor that come at once
	sandbox          *sandbox // nil: a client
	take             func(*call)
	answer           chan answer
	at               time.Time
}

type answer struct {
	v   any
	err error
}

// event happens at a time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// after has do happen in d, in whole microseconds: the clock of an actor may have any.
func (w *world) after(d time.Duration, do func()) {
	w.at(time.Now().Add(d), do)
}

func (w *world) at(t time.Time, do func()) {
	t = t.Truncate(time.Microsecond).Add(time.Microsecond)
	w.seq++
	heap.Push(&w.events, event{t, w.seq, do})
}

// ask makes a call and waits for its answer, or for ctx. take is called by the scheduler.
func (w *world) ask(ctx context.Context, actor, op, about string, sb *sandbox, take func(*call)) (any, error) {
	return w.put(ctx, &call{actor: actor, op: op, about: about, sandbox: sb, take: take})
}

func (w *world) put(ctx context.Context, c *call) (any, error) {
	sb := c.sandbox
	if err := sb.alive(c.actor); err != nil {
		return nil, err
	}
	c.answer = make(chan answer, 1)
	if !w.arrive(c) {
		return nil, errOver
	}
	var a answer
	select {
	case a = <-c.answer:
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	}
	if err := sb.alive(c.actor); err != nil {
		return nil, err
	}
	return a.v, a.err
}

func (w *world) arrive(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.arrived = append(w.arrived, c)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

// give answers a call.
func (c *call) give(v any, err error) {
	select {
	case c.answer <- answer{v, err}:
	default: // it has its answer
	}
}

// run is the scheduler: it ends when the episode has settled, or at its limit.
func (w *world) run() {
	for {
		synctest.Wait() // everybody waits for an answer or for a time
		w.mu.Lock()
		arrived := w.arrived
		w.arrived = nil
		w.mu.Unlock()
		slices.SortStableFunc(arrived, func(a, b *call) int {
			return strings.Compare(w.order(a), w.order(b))
		})
		for _, c := range arrived {
			c.at = time.Now()
			c.take(c)
		}
		if len(arrived) > 0 {
			continue
		}
		if w.ended() {
			return
		}
		if w.steps++; w.steps > maxSteps {
			w.fail("the episode takes more than %d steps", maxSteps)
			return
		}
		wait := time.Until(w.events[0].at)
		if wait <= 0 {
			heap.Pop(&w.events).(event).do()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// order orders calls that come at once, by nothing that was drawn from a source without
// the seed, such as the ids of operations and what is made of them.
func (w *world) order(c *call) string {
	about := c.about
	if strings.HasPrefix(about, "v1#") {
		about = w.ledger.pks[about]
	}
	return c.actor + " " + c.op + " " + about + " " + c.rank
}

const maxSteps = 1_000_000

// close ends everything that still runs.
func (w *world) close() {
	w.mu.Lock()
	w.over = true
	arrived := w.arrived
	w.arrived = nil
	w.mu.Unlock()
	w.stop(errOver)
	for _, c := range arrived {
		c.give(nil, errOver)
	}
	w.fleet.end()
	w.actors.Wait()
	// What has crashed goes on waiting for a while. A goroutine that is still there later
	// is one too many: the bubble panics, with its stack.
	<-time.After(2 * time.Hour)
}

// fail notes a violation.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.wrong, text) {
		w.wrong = append(w.wrong, text)
	}
	w.note("WRONG", "%s", text)
}

// note adds a line to the history.
func (w *world) note(actor, format string, args ...any) {
	if w.record {
		w.history = append(w.history, fmt.Sprintf("%12s  %-14s %s", time.Since(w.begin).Truncate(time.Microsecond), actor, fmt.Sprintf(format, args...)))
	}
}

// drawn returns a context whose waits follow from the seed and who waits: not from a
// sequence, since goroutines of one invocation may draw at the same time.
func (w *world) drawn(ctx context.Context, actor string) context.Context {
	return chance.With(ctx, func(n int64) int64 {
		return int64(w.hash(actor, time.Since(w.begin)) % uint64(n))
	})
}

// hash is a number that follows from the seed and the parts.
func (w *world) hash(parts ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, w.seed)
	for _, p := range parts {
		_, _ = fmt.Fprint(h, "\x00", p)
	}
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// odds reports whether something of a probability happens, by the hash of the parts.
func (w *world) odds(p float64, parts ...any) bool {
	return float64(w.hash(parts...)%1_000_000) < p*1_000_000
}

// between draws a time; the scheduler's.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)/int64(time.Microsecond)))*time.Microsecond
}

func (w *world) likely(p float64) bool { return w.rng.Float64() < p }
