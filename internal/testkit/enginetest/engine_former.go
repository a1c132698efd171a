package enginetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// rescoped is a change of scope. The former program has the options old, and the next
// program has the options new. The field former is the next program's Options.Former.
type rescoped struct {
	old, new   func(*idem.Options)
	former     idem.Former
	unverified bool // the former program's requests had no identity
	caller     idem.Identity
}

func (c rescoped) release(claims bool) func(*idem.Options) {
	return func(o *idem.Options) {
		c.new(o)
		f := c.former
		f.Claims, o.Former = claims, &f
	}
}

func (c rescoped) request(key, body string, old bool) idem.Request {
	r := order(strings.ReplaceAll("random enough for all/"+key, " ", "-"), body)
	if old && c.unverified {
		r.Identity = idem.Identity{}
	}
	return r
}

// engineFormer tests a change of scope in two releases.
func engineFormer(s suite) {
	same := func(*idem.Options) {}
	account := func(context.Context, *idem.Request) (string, error) { return "account 7", nil }
	byAccount := func(o *idem.Options) { o.Scope = account }
	routed := func(_ context.Context, r *idem.Request) (string, error) { return "account 7, " + r.Route, nil }
	byRoute := func(o *idem.Options) { o.Scope = routed }
	byACP := func(o *idem.Options) {
		idem.ACP(o)
		o.Stored = nil
	}
	verified := order("", "").Identity
	for name, c := range map[string]rescoped{
		"an authorizer is added":     {idem.OneScope, same, idem.Former{OneScope: true}, true, idem.Identity{Kind: "one"}},
		"Scope is set":               {same, byAccount, idem.Former{}, false, verified},
		"Scope is removed":           {byAccount, same, idem.Former{Scope: account}, false, idem.Identity{Kind: "program", Subject: "account 7"}},
		"the route joins the scope":  {same, byRoute, idem.Former{}, false, verified},
		"the route leaves the scope": {byRoute, same, idem.Former{Scope: routed}, false, idem.Identity{Kind: "program", Subject: "account 7, /rides"}},
		"ACP is set":                 {same, byACP, idem.Former{Preset: same}, false, verified},
		"Scope is set under ACP":     {byACP, func(o *idem.Options) { byACP(o); byAccount(o) }, idem.Former{}, false, verified},
		"ACP is no longer set":       {byACP, same, idem.Former{Preset: byACP}, false, verified},
	} {
		s.run("two releases, "+name+": an operation is one in all of them", func(t *testing.T, e *env) { oneOperation(t, e, c) })
		if strings.Contains(name, "route") {
			s.run("two releases, "+name+": an operation is found beside another one of the same key", func(t *testing.T, e *env) { twoKeys(t, e, c) })
		}
		s.run("two releases, "+name+": what has expired is claimed anew, and nobody writes there", func(t *testing.T, e *env) { claimedAnew(t, e, c) })
		s.run("two releases, "+name+": what was released meanwhile goes on", func(t *testing.T, e *env) { releasedMeanwhile(t, e, c) })
		s.run("two releases, "+name+": who slept through a lifetime fences under a new nonce", func(t *testing.T, e *env) { asleepInTakeOver(t, e, c) })
	}
}

// full is a quota that is used up.
type full struct{}

func (full) Begin(context.Context, idem.QuotaRequest) (func(idem.QuotaUse), time.Duration, error) {
	return nil, time.Minute, nil
}

// twoKeys sends requests with the same key to two routes. If the scope includes the
// route, the key names two operations. Under the other scope, the key names one
// operation.
func twoKeys(t *testing.T, e *env, c rescoped) {
	t.Helper()
	var a app
	limited := func(o *idem.Options) { o.Quota = full{} }
	on := func(route string) idem.Request {
		r := c.request("of two routes", "1", false)
		r.Path, r.Route = route, route
		return r
	}
	first, second := e.engine(c.release(true)), e.engine(c.release(false))
	byFirst, bySecond := first, second // byFirst must claim under the scope that includes the route
	if c.former.Scope == nil {
		byFirst, bySecond = second, first
	}
	one := do(t, byFirst, on("/rides"), a.run).first(t)
	two := do(t, bySecond, on("/notes"), a.run).first(t)
	a.ran(t, 2)
	for _, next := range []*idem.Engine{first, second, first, second, e.engine(c.release(true), limited), e.engine(c.release(false), limited)} {
		do(t, next, on("/rides"), a.run).replays(t, one)
		do(t, next, on("/notes"), a.run).replays(t, two)
		do(t, next, on("/others"), a.run).refused(t, idem.ErrMismatch)
	}
	a.ran(t, 2)
}

// In releasedMeanwhile, an attempt of the second release takes over an operation of the
// former scope. Just before that, another attempt takes the operation over and releases
// it. The attempt of the second release must then continue the same operation.
func releasedMeanwhile(t *testing.T, e *env, c rescoped) {
	t.Helper()
	var a app
	e.abandon(t, c.request("open", "1", false), c.release(true), callsOut)
	old := e.record(t, c.request("open", "1", false), c.release(true))
	e.clock.Advance(storetest.LeaseOver)
	other := e.engineOn(e.inner, c.release(true))
	meanwhile := func() { do(t, other, c.request("open", "1", false), a.fail(errors.New("the handler fails"))) }
	before := func(_ context.Context, call idemtest.Call) idemtest.Fault {
		if call.Verb == "Commit" && call.N == 1 {
			meanwhile()
		}
		return idemtest.Fault{}
	}
	second := e.engineOn(idemtest.Faulty(e.inner, before), c.release(false))
	of := do(t, second, c.request("open", "1", false), func(ctx context.Context) (idem.Response, error) {
		if op, ok := idem.FromContext(ctx); !ok || op.ID() != old.ID {
			t.Errorf("the handler works on operation %s, want %s: no attempt has given that up", op.ID(), old.ID)
		}
		return a.calls(ctx)
	}).first(t)
	do(t, other, c.request("open", "1", false), a.run).replays(t, of)
	a.ran(t, 2)
}

// In asleepInTakeOver, an attempt sleeps in a take-over until the record has expired
// and a second operation of the key has finished and expired, too. After the sleep, the
// attempt must fence the second operation's record under a new nonce. The old nonce
// isn't safe, because another attempt that slept may remember the old nonce as the
// owner of the first operation's record.
func asleepInTakeOver(t *testing.T, e *env, c rescoped) {
	t.Helper()
	var a app
	first := e.engineOn(e.inner, c.release(true))
	e.abandon(t, c.request("open", "1", false), c.release(true))
	e.clock.Advance(storetest.LeaseOver)
	used := ""
	meanwhile := func() {
		e.clock.Advance(2 * defaults.Retention)
		do(t, first, c.request("open", "1", false), a.run).first(t)
		e.clock.Advance(2 * defaults.Retention)
	}
	sleeps := func(_ context.Context, call idemtest.Call) idemtest.Fault {
		if call.Verb == "Commit" && call.N == 1 {
			used = call.Commit.Next.Owner
			meanwhile()
		} else if call.Verb == "Commit" && call.Commit.Next.Owner == used {
			t.Error("the expired record is fenced under the nonce of a take-over from before its time")
		}
		return idemtest.Fault{}
	}
	do(t, e.engineOn(idemtest.Faulty(e.inner, sleeps), c.release(false)), c.request("open", "1", false), a.run).first(t)
	a.ran(t, 2)
}

func oneOperation(t *testing.T, e *env, c rescoped) {
	t.Helper()
	var a app
	old, first, second := e.engine(c.old), e.engine(c.release(true)), e.engine(c.release(false))

	// Both releases find the operations of the former program.
	done := do(t, old, c.request("done", "1", true), a.run).first(t)
	e.abandon(t, c.request("open", "1", true), c.old)
	for _, next := range []*idem.Engine{first, second} {
		do(t, next, c.request("done", "1", false), a.run).replays(t, done)
		do(t, next, c.request("done", "2", false), a.run).refused(t, idem.ErrMismatch)
		do(t, next, c.request("open", "1", false), a.run).refused(t, idem.ErrInFlight)
	}
	e.clock.Advance(storetest.LeaseOver)
	again := do(t, second, c.request("open", "1", false), func(ctx context.Context) (idem.Response, error) {
		if op, ok := idem.FromContext(ctx); !ok || op.Caller() != c.caller {
			t.Errorf("the caller is %+v, want the record's, %+v", op.Caller(), c.caller)
		}
		return a.run(ctx)
	}).first(t)
	for _, engine := range []*idem.Engine{first, second} {
		do(t, engine, c.request("open", "1", false), a.run).replays(t, again)
	}
	do(t, old, c.request("open", "1", true), a.run).replays(t, again)
	a.ran(t, 2)

	// Neighbouring releases replay each other's operations.
	of := do(t, first, c.request("of the first", "1", false), a.run).first(t)
	do(t, old, c.request("of the first", "1", true), a.run).replays(t, of)
	do(t, second, c.request("of the first", "1", false), a.run).replays(t, of)
	of = do(t, second, c.request("of the second", "1", false), a.run).first(t)
	do(t, first, c.request("of the second", "1", false), a.run).replays(t, of)
	do(t, e.engine(c.new), c.request("of the second", "1", false), a.run).replays(t, of)
	e.abandon(t, c.request("open in the second", "1", false), c.release(false))
	do(t, first, c.request("open in the second", "1", false), a.run).refused(t, idem.ErrInFlight)
	e.clock.Advance(storetest.LeaseOver)
	of = do(t, first, c.request("open in the second", "1", false), a.run).first(t)
	do(t, second, c.request("open in the second", "1", false), a.run).replays(t, of)
	a.ran(t, 5)

	// If the two releases are skipped, the retry is a new operation.
	do(t, e.engine(c.new), c.request("done", "1", false), a.run).first(t)
	a.ran(t, 6)
}

func claimedAnew(t *testing.T, e *env, c rescoped) {
	t.Helper()
	var a app
	first, second := e.engine(c.release(true)), e.engine(c.release(false))
	freed := app{status: 400}
	do(t, first, c.request("freed", "1", false), freed.run).first(t)
	of := do(t, second, c.request("freed", "2", false), a.run).first(t)
	do(t, first, c.request("freed", "2", false), a.run).replays(t, of)
	do(t, e.engine(c.new), c.request("freed", "2", false), a.run).replays(t, of) // this engine has no Former and finds the record, so the record is under the new scope
	a.ran(t, 1)

	// An attempt sleeps. Meanwhile its record expires, and the other release claims the
	// key again.
	for name, order := range map[string][2]func(*idem.Options){
		"in the former scope": {c.release(true), c.release(false)},
		"in the new scope":    {c.release(false), c.release(true)},
	} {
		g := storetest.NewGate()
		late := beginIn(asleep.With(storetest.Limited(t)), e.engine(order[0]), c.request(name, "1", false), a.held(g))
		g.Reached(t)
		e.clock.Advance(2 * defaults.Retention)
		of := do(t, e.engine(order[1]), c.request(name, "1", false), a.run).first(t)
		g.Open()
		if r := <-late; r.err == nil && !r.Replayed {
			t.Errorf("%s: the attempt that slept got %v", name, r)
		}
		for _, by := range order {
			do(t, e.engine(by), c.request(name, "1", false), a.run).replays(t, of)
		}
		live := 0
		for _, by := range order {
			r := e.record(t, c.request(name, "1", false), by)
			if r != nil && r.State != store.None && r.Expires.After(e.clock.Now().Add(-time.Minute)) {
				live++
			}
		}
		if live != 1 {
			t.Errorf("%s: %d live records of one key", name, live)
		}
	}
}
