package idemtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// World has the provider, clock, store and clients of a program under
// [CrashEverywhere]. The provider, the clock and the records outlive a crash. The store
// and the clients belong to one process. After this process has crashed, a call through
// its store or its clients has no effect.
type World struct {
	// Provider receives the calls that the program makes with [World.Client] and
	// [World.Call]. A test may make the Provider fail.
	Provider *Provider
	// Clock is the clock of the engine and the provider.
	Clock *Clock

	log       *FaultyStore // wraps the store that outlives crashes
	namespace string       // separates this World from others on the same table
	process   *process
}

// point says where a process crashes: before or after its nth call to the store or to
// another system. If call is 0, the process doesn't crash.
type point struct {
	call  int
	after bool
}

// process counts the calls that one process of the program makes to the store and to
// other systems. The process may crash at one of these calls.
type process struct {
	store *FaultyStore
	at    point
	stop  context.CancelFunc // ends the process's context

	mu    sync.Mutex
	calls []string
}

func newWorld(open func() store.Store) *World {
	clock := NewClock()
	return &World{Provider: &Provider{Now: clock.Now}, Clock: clock, log: Watch(open()), namespace: "crash-" + rand.Text()}
}

// World.start returns a copy of w for a new process, and the process's context.
func (w *World) start(ctx context.Context, at point, plan Plan) (*World, context.Context) {
	p := &process{at: at}
	ctx, p.stop = context.WithTimeout(ctx, patience)
	p.store = Faulty(w.log, func(ctx context.Context, c Call) Fault {
		if p.comesTo(describe(c)) {
			return Fault{Crash: true, Applied: at.after}
		}
		if plan != nil {
			return plan(ctx, c)
		}
		return Fault{}
	})
	p.store.down = p.stop
	mine := *w
	mine.process = p
	return &mine, ctx
}

// comesTo counts a call, and reports whether the process crashes at it.
func (p *process) comesTo(call string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	return len(p.calls) == p.at.call
}

func (p *process) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// process.call makes a call to another system. The process may crash before or after
// the call.
func (p *process) call(name string, fn func() error) error {
	if p.store.Crashed() {
		return ErrCrashed
	}
	here := p.comesTo(name)
	if here && !p.at.after {
		p.store.Crash()
		return ErrCrashed
	}
	err := fn()
	if here {
		p.store.Crash()
	}
	if p.store.Crashed() {
		return ErrCrashed
	}
	return err
}

// Store returns the process's store. The process can crash at each call to this store.
func (w *World) Store() *FaultyStore { return w.process.store }

// Options sets the engine's options for this World: the clock, a namespace, a function
// name, a logger that discards everything, and Resumable, so that a completer can
// continue operations. Because of Resumable, handlers of package lambda need names, and
// a program with Options.Scope or [idem.OneScope] needs Options.CallerFromOp. A program
// that doesn't use [World.Engine] applies Options first, and then its own options.
func (w *World) Options(o *idem.Options) {
	o.Now, o.Namespace, o.Resumable, o.Function = w.Clock.Now, w.namespace, true, "program"
	o.Logger = slog.New(slog.DiscardHandler)
}

// Engine returns a new engine on [World.Store]. It sets the engine's options with
// [World.Options] first, and then with each function in optFns.
func (w *World) Engine(optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(w.Store(), append([]func(*idem.Options){w.Options}, optFns...)...)
}

// Client returns a client whose requests go to the Provider, whatever their host. The
// process can crash at each request.
func (w *World) Client() *http.Client { return &http.Client{Transport: w.Through(w.Provider)} }

// Through returns a transport that hands each request to the transport base. The process
// can crash at each request.
func (w *World) Through(base http.RoundTripper) http.RoundTripper {
	return transport(func(req *http.Request) (resp *http.Response, err error) {
		err = w.process.call(req.Method+" "+req.URL.Path, func() error {
			resp, err = base.RoundTrip(req) //nolint:bodyclose // the caller's
			return err
		})
		if err != nil && resp != nil { // the process crashed after the request, so the caller doesn't get the response
			_ = resp.Body.Close()
			resp = nil
		}
		return resp, err
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// Call makes a call to the Provider, like [Provider.Call]. The process can crash at
// this call. Use Call in a fake of a Go interface through which the program reaches its
// provider.
func (w *World) Call(ctx context.Context, name, key string, args any) (e Effect, err error) {
	err = w.process.call(name, func() error {
		e, err = w.Provider.Call(ctx, name, key, args)
		return err
	})
	return e, err
}

// LookUp calls [Provider.LookUp]. The process can crash at this call.
func (w *World) LookUp(ctx context.Context, key string) (found []Effect, err error) {
	err = w.process.call("a look-up", func() error {
		found, err = w.Provider.LookUp(ctx, key)
		return err
	})
	return found, err
}

// untilNextLook moves the clock to a time at which all look-ups that operations wait
// for are due. It returns false if no operation waits for a look-up.
func (w *World) untilNextLook(ctx context.Context) bool {
	all, err := w.records(ctx)
	if err != nil {
		return false
	}
	until, now := time.Time{}, w.Clock.Now()
	for _, r := range all {
		if at := state.Withheld(r); state.LookedUpInVain(r) && at.After(until) {
			until = at
		}
	}
	if until.IsZero() {
		return false
	}
	w.Clock.Advance(max(until.Sub(now), 0).Truncate(time.Second) + time.Second)
	return true
}

// Commits implements [Log]. It returns the commits of all processes.
func (w *World) Commits() []store.Commit { return w.log.Commits() }

// World.records returns the current records, in the order of their claims.
func (w *World) records(ctx context.Context) (all []*store.Record, err error) {
	seen := make(map[string]bool)
	for _, c := range w.log.Commits() {
		if seen[c.Next.PK] {
			continue
		}
		seen[c.Next.PK] = true
		r, err := w.log.Load(ctx, c.Next.PK)
		if err != nil {
			return nil, err
		}
		if r != nil {
			all = append(all, r)
		}
	}
	return all, nil
}

// leasesEnd moves the clock past the end of all leases.
func (w *World) leasesEnd(ctx context.Context) error {
	all, err := w.records(ctx)
	end := w.Clock.Now()
	for _, r := range all {
		if r.Lease.After(end) {
			end = r.Lease
		}
	}
	w.Clock.Advance(end.Sub(w.Clock.Now()).Truncate(time.Second) + 2*time.Second)
	return err
}

// describe returns a name for a call to a store. The name says what the call writes.
func describe(c Call) string {
	prev, next := &store.Record{}, c.Claim.Next
	switch c.Verb {
	case "Claim":
		if len(next.Phases) == 0 && next.State == store.Open {
			return "the claim"
		}
	case "Commit":
		prev, next = c.Commit.Prev, c.Commit.Next
	case "Take":
		return "the take-over"
	default:
		return "a read"
	}
	switch {
	case next.State == store.Done:
		return "the commit of the answer"
	case next.State == store.Stuck:
		return "the commit that gives up"
	case len(next.Phases) > len(prev.Phases):
		p := next.Phases[len(next.Phases)-1]
		if p.Intent {
			return fmt.Sprintf("the commit of the intent %q", p.Name)
		}
		return fmt.Sprintf("the commit of phase %q", p.Name)
	case next.Owner != prev.Owner:
		return "the take-over"
	case next.Lease.IsZero():
		return "the release"
	case next.Mark != prev.Mark:
		return "the write before a call"
	default:
		return "a commit"
	}
}
