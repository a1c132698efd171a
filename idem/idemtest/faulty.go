package idemtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// verbs are the names of the methods of [store.Store], [store.BodyLoader] and
// [store.Taker].
var verbs = []string{"Claim", "Commit", "Load", "LoadBody", "Take"}

// Call is a call that is about to reach a store.
type Call struct {
	Verb  string // the store's method: "Claim", "Commit", "Load", "LoadBody" or "Take"
	N     int    // number of this call among the calls with the same Verb, from 1
	Total int    // number of this call among all calls, from 1
	PK    string

	// If Verb is "Claim", "Commit" or "Take", the field of this name is the call's
	// argument. A Plan must not change the argument, but may keep it to make the call
	// again later.
	Claim  store.Claim
	Commit store.Commit
	Take   store.Take
}

// Fault says what happens to a call. The zero Fault lets the call pass.
type Fault struct {
	// Err is returned in place of the store's answer. For a write whose answer is lost,
	// set store.ErrUnknown, because the contract of store.Store demands this error.
	Err error
	// Applied lets the call reach the store although Err or Crash is set. Only the
	// answer is lost.
	Applied bool
	// Crash takes the process down before the call, or after the call if Applied is set.
	Crash bool
}

// Plan decides what happens to each call. A Plan runs on the goroutine that calls the
// store. A Plan may block to delay the call, but should return when ctx ends. If the
// store is used concurrently, its Plan must be safe for concurrent use.
type Plan func(ctx context.Context, c Call) Fault

// At returns a plan that applies f to the n-th call of a verb (Call.Verb), or to every
// call of the verb if n is 0. All other calls pass. At panics if there is no such verb.
func At(verb string, n int, f Fault) Plan {
	if !slices.Contains(verbs, verb) {
		panic(fmt.Sprintf("idemtest: At: no call has the verb %q: write one of %q", verb, verbs)) //nolint:forbidigo // a mistake in the test
	}
	return func(_ context.Context, c Call) Fault {
		if c.Verb == verb && (n == 0 || c.N == n) {
			return f
		}
		return Fault{}
	}
}

// CrashAt returns a plan that takes the process down at the process's n-th call of any
// verb. If applied is false, the process crashes before the call reaches the store. If
// applied is true, the process crashes after the store has applied the call, and before
// the answer arrives.
func CrashAt(n int, applied bool) Plan {
	return func(_ context.Context, c Call) Fault {
		return Fault{Crash: c.Total == n, Applied: applied}
	}
}

// ErrCrashed is the error of every call once the process is down.
var ErrCrashed = errors.New("idemtest: the process has crashed")

// FaultyStore is a store that fails as planned, and counts its calls. A FaultyStore is
// the store of one process. In a test with several processes, give each process its own
// FaultyStore, and let each FaultyStore wrap the same store.
//
// After a crash no call reaches the store any more, so the engine can have no more
// effect. Go can't stop the engine and the handlers, so they run until they return. A
// test must ignore their results, since a crashed process sends no answer.
//
// FaultyStore also implements the optional interfaces of package store. If the wrapped
// store has no LoadBody, the FaultyStore's LoadBody returns idem.ErrNotKept. If the
// wrapped store has no Take, the FaultyStore's Take makes a Load and a Commit, as an
// engine does. A FaultyStore is safe for concurrent use if its plan is.
type FaultyStore struct {
	store store.Store

	mu      sync.Mutex
	plan    Plan
	total   int
	calls   map[string]int
	crashed bool
	down    func() // called at a crash if not nil
	commits []store.Commit
}

var (
	_ store.Store      = (*FaultyStore)(nil)
	_ store.BodyLoader = (*FaultyStore)(nil)
	_ store.Taker      = (*FaultyStore)(nil)
	_ store.Sizer      = (*FaultyStore)(nil)
)

// Faulty returns a FaultyStore that wraps s and fails as plan says. If plan is nil, all
// calls pass and are counted.
func Faulty(s store.Store, plan Plan) *FaultyStore {
	f := &FaultyStore{store: s}
	f.Reset(plan)
	return f
}

// Reset sets another plan, forgets the calls counted so far, and restarts a
// crashed process.
func (f *FaultyStore) Reset(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.total, f.calls, f.crashed = plan, 0, make(map[string]int), false
}

// Crash takes the process down now, for instance in the middle of a handler.
func (f *FaultyStore) Crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = true
	if f.down != nil {
		f.down()
	}
}

// Crashed reports whether the process is down.
func (f *FaultyStore) Crashed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

// Calls returns how many calls of the given verbs there were. If no verb is given,
// calls of all verbs are counted. The number includes calls that failed because of the
// plan, but no calls after a crash.
func (f *FaultyStore) Calls(verbs ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(verbs) == 0 {
		return f.total
	}
	n := 0
	for _, v := range verbs {
		n += f.calls[v]
	}
	return n
}

// Claim implements [store.Store].
func (f *FaultyStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	return through(ctx, f, Call{Verb: "Claim", PK: c.Next.PK, Claim: c}, func() (*store.Record, error) {
		next := c.Next.Clone()
		held, err := f.store.Claim(ctx, c)
		f.applied(store.Commit{Prev: &store.Record{PK: next.PK}, Next: next}, held, err)
		return held, err
	})
}

// Commit implements [store.Store].
func (f *FaultyStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	return through(ctx, f, Call{Verb: "Commit", PK: c.Prev.PK, Commit: c}, func() (*store.Record, error) {
		done := store.Commit{Prev: c.Prev.Clone(), Next: c.Next.Clone(), Writes: c.Writes}
		held, err := f.store.Commit(ctx, c)
		f.applied(done, held, err)
		return held, err
	})
}

// Load implements [store.Store].
func (f *FaultyStore) Load(ctx context.Context, pk string) (*store.Record, error) {
	return through(ctx, f, Call{Verb: "Load", PK: pk}, func() (*store.Record, error) { return f.store.Load(ctx, pk) })
}

// LoadBody implements [store.BodyLoader].
func (f *FaultyStore) LoadBody(ctx context.Context, r *store.Record) error {
	_, err := through(ctx, f, Call{Verb: "LoadBody", PK: r.PK}, func() (struct{}, error) {
		if b, ok := f.store.(store.BodyLoader); ok {
			return struct{}{}, b.LoadBody(ctx, r)
		}
		return struct{}{}, fmt.Errorf("%w: %T loads no bodies", idem.ErrNotKept, f.store)
	})
	return err
}

// Take implements [store.Taker].
func (f *FaultyStore) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	type answer struct {
		held  *store.Record
		taken bool
	}
	a, err := through(ctx, f, Call{Verb: "Take", PK: t.PK, Take: t}, func() (a answer, err error) {
		a.held, a.taken, err = take(ctx, f.store, t)
		return a, err
	})
	return a.held, a.taken, err
}

// Fits implements [store.Sizer]. Fits doesn't count as a call, and no plan makes it fail.
func (f *FaultyStore) Fits(prev, next *store.Record) error {
	if s, ok := f.store.(store.Sizer); ok {
		return s.Fits(prev, next)
	}
	return nil
}

// take calls Take, or Load and Commit if the store has no Take.
func take(ctx context.Context, s store.Store, t store.Take) (*store.Record, bool, error) {
	if taker, ok := s.(store.Taker); ok {
		return taker.Take(ctx, t)
	}
	prev, err := s.Load(ctx, t.PK)
	if err != nil {
		return nil, false, err
	}
	next := t.From(prev)
	switch {
	case prev == nil:
		return &store.Record{}, false, nil
	case next == nil, prev.Input.Overflow != nil:
		return prev, false, nil // a refusal: by prev, the engine decides what to do
	}
	held, err := s.Commit(ctx, store.Commit{Prev: prev, Next: next})
	if held != nil || err != nil {
		return held, false, err
	}
	return next, true, nil
}

// The function through asks the plan about a call, and then makes the call or lets it fail.
func through[T any](ctx context.Context, f *FaultyStore, c Call, send func() (T, error)) (T, error) {
	var none T
	fault, err := f.next(ctx, c)
	if err != nil {
		return none, err
	}
	if !fault.Applied {
		if fault.Crash {
			f.Crash()
			return none, ErrCrashed
		}
		if fault.Err != nil {
			return none, fault.Err
		}
	}
	v, err := send()
	if fault.Crash {
		f.Crash()
	}
	switch {
	case f.Crashed(): // this call crashed the process, or another call did so in the meantime
		return none, ErrCrashed
	case fault.Err != nil:
		return none, fault.Err
	}
	return v, err
}

// FaultyStore.next counts a call, and asks the plan about the call. The plan runs
// without the lock on f.mu, because the plan may block, or may use the store.
func (f *FaultyStore) next(ctx context.Context, c Call) (Fault, error) {
	f.mu.Lock()
	if f.crashed {
		f.mu.Unlock()
		return Fault{}, ErrCrashed
	}
	f.total++
	f.calls[c.Verb]++
	c.N, c.Total = f.calls[c.Verb], f.total
	plan := f.plan
	f.mu.Unlock()

	var fault Fault
	if plan != nil {
		fault = plan(ctx, c)
	}
	if f.Crashed() { // the process crashed while the plan ran
		return Fault{}, ErrCrashed
	}
	return fault, nil
}
