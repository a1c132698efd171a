package mix

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/state"
)

// fleet are the processes of the program. They last until they crash or a deploy
// replaces them; a process works on several invocations at once, as a container does.
type fleet struct {
	version int
	all     []*process
	now     *process // new invocations go to it; nil: to a new process
	n       int      // of invocations
}

// process has an engine, a store and a clock of its own. When it has crashed, nothing
// that it still does reaches anything.
type process struct {
	w      *world
	name   string
	script *script
	skew   time.Duration
	engine *idem.Engine
	store  *dynamo.Store
	drain  *stream.Drain
	dead   atomic.Bool
	work   map[int]*invocation
}

// invocation is one call of a process.
type invocation struct {
	n    int
	stop context.CancelFunc
	lost func() // the process has died
}

var quiet = slog.New(slog.DiscardHandler)

func (w *world) start(version int) *process {
	f := &w.fleet
	p := &process{w: w, name: fmt.Sprint("process ", len(f.all)), script: w.scripts[version-1], work: make(map[int]*invocation)}
	if !w.calm.Load() && w.odds(0.3, skewed, p.name) {
		w.fired[skewed]++
		p.skew = w.between(-5*time.Second, 5*time.Second, "skew", p.name)
		w.note(p.name, "its clock is wrong by %s", p.skew)
	}
	now := func() time.Time { return time.Now().Add(p.skew) }
	p.store = w.open(link{p})
	p.engine = idem.New(p.store, w.engine, func(o *idem.Options) {
		o.Logger, o.Now = quiet, now
		if o.Former != nil {
			o.Former.Claims = version == 1
		}
		if w.alter != nil {
			w.alter(o)
		}
	})
	p.drain = stream.NewDrain(p.store, sink{w, p}, func(o *stream.DrainOptions) { o.Logger = quiet })
	f.all = append(f.all, p)
	return p
}

// open opens the store by api.
func (w *world) open(api dynamo.API) *dynamo.Store {
	s, err := dynamo.New(api, records, func(o *dynamo.Options) {
		o.Inline = w.inline
		if w.sealed {
			o.Seal = w.sealer
		}
	})
	if err != nil {
		panic(err)
	}
	return s
}

// serving is the process that gets the next invocation.
func (w *world) serving() *process {
	f := &w.fleet
	if f.now == nil || f.now.dead.Load() || w.hash("fresh", f.n)%3 == 0 {
		f.now = w.start(f.version)
	}
	return f.now
}

// invoke runs something in a process, with a time limit. told gets what do returns, in
// the scheduler; lost is called if the process dies before.
func (w *world) invoke(p *process, what string, limit time.Duration, do func(context.Context) func(), lost func()) {
	w.fleet.n++
	inv := &invocation{n: w.fleet.n, lost: lost}
	name := fmt.Sprintf("%s %d", what, inv.n)
	ctx := w.acting(w.ctx, name)
	if !w.renews {
		ctx = asleep.With(ctx)
	}
	if ctx, inv.stop = context.WithCancel(ctx); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		stop := inv.stop
		inv.stop = func() { cancel(); stop() }
		if w.kills {
			w.after(limit+w.between(time.Millisecond, 500*time.Millisecond, "kill", name), func() {
				if p.work[inv.n] != nil {
					w.note(name, "is killed at its time limit")
					w.crash(p)
				}
			})
		}
	}
	p.work[inv.n] = inv
	w.actors.Go(func() {
		var told func()
		defer func() {
			if told == nil {
				if v := recover(); v != errPanic { //nolint:errorlint // a value of a panic
					panic(v)
				}
				told = func() { // an adapter ends the process
					w.crash(p)
					lost()
				}
			}
			w.returns(p, inv, name, told)
		}()
		told = do(ctx)
	})
}

// returns is the end of an invocation.
func (w *world) returns(p *process, inv *invocation, name string, told func()) {
	w.arrive(&call{actor: name, op: "returns", take: func(*call) {
		inv.stop()
		if p.work[inv.n] == nil {
			return // its process has died
		}
		delete(p.work, inv.n)
		told()
	}})
}

// crash ends a process: the scheduler's.
func (w *world) crash(p *process) {
	p.dead.Store(true)
	w.note(p.name, "dies")
	for n := 1; n <= w.fleet.n; n++ {
		if inv := p.work[n]; inv != nil {
			delete(p.work, n)
			inv.stop()
			inv.lost()
		}
	}
}

// takeUp has the completer act on a ticket.
func (w *world) takeUp(t jobs.Ticket) {
	if rec := w.load(t.PK); rec == nil || rec.Owner != t.Owner || rec.Ver != t.Ver {
		w.waitsOn(t)
		return
	}
	p := w.serving()
	w.note("completer", "brings a ticket of %s to %s", w.name(t.PK), p.name)
	w.invoke(p, "completer", w.limit, func(ctx context.Context) func() {
		res, err := p.engine.Resume(ctx, t, func(ctx context.Context, r *idem.Request) (idem.Response, error) {
			return p.handle(ctx, string(r.Body))
		})
		return func() {
			switch {
			case err != nil:
				w.note("completer", "%s", outcome(err)[2:])
			default:
				w.note("completer", "completes it: %d", res.Status)
			}
			w.waitsOn(t)
		}
	}, func() { w.waitsOn(t) })
}

// waitsOn has a ticket come again until its operation has ended. With the stream, a change
// of the record has made the next ticket.
func (w *world) waitsOn(t jobs.Ticket) {
	rec := w.load(t.PK)
	switch {
	case rec == nil || rec.ID != t.Operation || !state.Completable(rec):
	case rec.Owner == t.Owner && rec.Ver == t.Ver:
		w.after(time.Minute, func() { w.takeUp(t) })
	case !w.on(completer):
		t := state.TicketFor(rec)
		w.after(time.Until(state.Due(rec, time.Now(), grace)), func() { w.takeUp(t) })
	}
}

// sink is where jobs go.
type sink struct {
	w *world
	p *process
}

func (s sink) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	_, err := s.w.ask(ctx, s.p, "deliver", "", func(c *call) {
		for _, d := range batch {
			s.w.ledger.delivered[d.JobID]++
		}
		s.w.note(c.actor, "%d jobs are delivered", len(batch))
		s.w.after(5*time.Millisecond, func() { c.give(nil, nil) })
	})
	if err == nil {
		return nil
	}
	errs := make([]error, len(batch))
	for i := range errs {
		errs[i] = fmt.Errorf("%w: %w", jobs.ErrSinkDown, err)
	}
	return errs
}

// deliver has the drain deliver the jobs of an operation.
func (w *world) deliver(pk, id string) {
	p := w.serving()
	w.invoke(p, "drain", 20*time.Second, func(ctx context.Context) func() {
		err := p.drain.Retry(ctx, jobs.Ticket{PK: pk, Operation: id, Jobs: true})
		return func() {
			if err != nil {
				w.after(10*time.Second, func() { w.deliver(pk, id) })
			}
		}
	}, func() { w.after(10*time.Second, func() { w.deliver(pk, id) }) })
}

// tickets is the queue that the sweep fills.
type tickets struct {
	w *world
	p *process
}

func (q tickets) Put(ctx context.Context, all []jobs.Ticket) []error {
	for _, t := range all {
		q.w.say(ctx, q.p, "ticket", t.PK, func() {
			if t.Jobs {
				q.w.deliver(t.PK, t.Operation)
				return
			}
			q.w.after(max(time.Until(t.Due), 0), func() { q.w.takeUp(t) })
		})
	}
	return nil
}

// sweep runs the sweep, and then does next.
func (w *world) sweep(next func()) {
	p := w.start(w.fleet.version)
	sweep := stream.NewSweep(link{p}, p.store, func(o *stream.SweepOptions) {
		o.Drain, o.Queue, o.Grace, o.Logger = p.drain, tickets{w, p}, grace, quiet
		o.MarkStuck, o.Segments, o.PagesPerSecond = p.engine.MarkStuck, 1, 100
	})
	w.invoke(p, "sweep", 0, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := sweep.Run(ctx)
		return func() {
			if err != nil {
				w.note("sweep", "%v", err)
			}
			next()
		}
	}, next)
}
