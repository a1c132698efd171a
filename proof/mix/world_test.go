package mix

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/seal"
)

// world is one episode, in a bubble of testing/synctest. Its actors are the goroutines
// of invocations. They reach what they share by calls, and one goroutine, the scheduler,
// carries out the calls, one at a time: so what happens, and when, follows from the seed.
type world struct {
	*plan
	begin time.Time

	db       *fakedynamo.DB
	spy      *dynamo.Store // reads the table without faults, for the checks
	sealer   *seal.Sealer
	ledger   ledger
	provider provider
	fleet    fleet

	events   agenda
	seq      int
	calm     atomic.Bool // faults are over
	finished bool
	left     int  // clients that have not ended
	probes   int  // clients that still ask after the faults
	swept    bool // nobody asks any more, and no operator decides
	steps    int
	throttle time.Time // until when DynamoDB throttles

	fired   map[choice]int
	history []string
	record  bool
	wrong   []string

	ctx  context.Context
	stop context.CancelCauseFunc

	mu      sync.Mutex
	arrived []*call
	wake    chan struct{}
	over    bool
	actors  sync.WaitGroup
}

var (
	errOver    = errors.New("the episode is over")
	errCrashed = errors.New("the process has crashed")
)

// call is what an actor asks of the world.
type call struct {
	actor, op, about string
	n                int // how-manyth call of its actor
	process          *process
	take             func(*call)
	answer           chan answer
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
	w.seq++
	t := time.Now().Add(d).Truncate(time.Microsecond).Add(time.Microsecond)
	heap.Push(&w.events, event{t, w.seq, do})
}

// ask makes a call and waits for its answer, or for ctx. take is called by the scheduler.
func (w *world) ask(ctx context.Context, p *process, op, about string, take func(*call)) (any, error) {
	a := actorOf(ctx)
	if p.dead.Load() {
		return nil, errCrashed
	}
	c := &call{actor: a.name, op: op, about: about, n: int(a.calls.Add(1)), process: p, take: take, answer: make(chan answer, 1)}
	if !w.arrive(c) {
		return nil, errOver
	}
	var got answer
	select {
	case got = <-c.answer:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	}
	if p.dead.Load() {
		return nil, errCrashed
	}
	return got.v, got.err
}

// say has the scheduler do something for an actor that doesn't wait for it.
func (w *world) say(ctx context.Context, p *process, op, about string, take func()) {
	if p.dead.Load() {
		return
	}
	w.arrive(&call{actor: actorOf(ctx).name, op: op, about: about, process: p, take: func(*call) {
		if !p.dead.Load() {
			take()
		}
	}})
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

// run is the scheduler: it ends when the episode has.
func (w *world) run() {
	for {
		synctest.Wait() // everybody waits for an answer or for a time
		w.mu.Lock()
		arrived := w.arrived
		w.arrived = nil
		w.mu.Unlock()
		slices.SortStableFunc(arrived, func(a, b *call) int {
			return strings.Compare(a.actor+" "+a.op+" "+w.name(a.about), b.actor+" "+b.op+" "+w.name(b.about))
		})
		for _, c := range arrived {
			c.take(c)
		}
		switch {
		case len(arrived) > 0:
			continue
		case w.finished || len(w.wrong) > 0:
			return
		case len(w.events) == 0:
			w.fail(notForEver + ": nothing is left to do, and the episode has no end")
			return
		}
		if w.steps++; w.steps > maxSteps {
			w.fail(notForEver+": the episode takes more than %d steps", maxSteps)
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

const maxSteps = 200_000

// close ends everything that still runs.
func (w *world) close() {
	w.mu.Lock()
	w.over = true
	arrived := w.arrived
	w.arrived = nil
	w.mu.Unlock()
	w.stop(errOver)
	for _, c := range arrived {
		if c.answer != nil {
			c.give(nil, errOver)
		}
	}
	for _, p := range w.fleet.all {
		p.dead.Store(true)
	}
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
		w.history = append(w.history, fmt.Sprintf("%14s  %-12s %s", time.Since(w.begin).Truncate(time.Microsecond), actor, fmt.Sprintf(format, args...)))
	}
}

// fires draws whether a fault happens at a call of an actor, and counts it.
func (w *world) fires(f choice, p float64, c *call) bool {
	if w.calm.Load() || !w.odds(min(1, p*w.rate), f, c.actor, c.n) {
		return false
	}
	w.fired[f]++
	return true
}

// actor is who calls: an invocation. A renewal of its lease calls for it too.
type actor struct {
	name  string
	calls atomic.Int64
}

type actorKey struct{}

func actorOf(ctx context.Context) *actor {
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return &actor{name: "nobody"}
	}
	return a
}

// acting returns a context of an actor, whose waits follow from the seed.
func (w *world) acting(ctx context.Context, name string) context.Context {
	a := &actor{name: name}
	return chance.With(context.WithValue(ctx, actorKey{}, a), func(n int64) int64 {
		return int64(w.hash("chance", name, time.Since(w.begin)) % uint64(n))
	})
}

// rest waits; false if the episode ends before.
func (w *world) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
