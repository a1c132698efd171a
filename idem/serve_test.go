package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A request that passes and fails is its handler's alone: nothing is said of its key.
func TestPassThatFailsIsPassed(t *testing.T) {
	t.Parallel()
	res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Pass(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) {
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) || !res.Passed || res.Header != nil { //nolint:errorlint // exactly this value
		t.Errorf("%+v, %v", res, err)
	}
}

// The inner one of two wrappers leaves the key to the outer one, and says nothing of it.
func TestInnerWrapperSaysNothingOfTheKey(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	_, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, keyed("k"), answers(201))
		if !res.Passed || res.Status != 201 || res.Header != nil {
			t.Errorf("the inner wrapper answers %+v, %v", res, err)
		}
		return res.Response, err
	})
	if err != nil {
		t.Error(err)
	}
}

// A handler that a completer runs may have the same wrapper: its request has no key of its
// own, since the completer has it.
func TestCompleterRunsAWrappedHandler(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	err := a.resume(t, a.engine, jobs.TicketFor(a.record(t)), func(ctx context.Context, r *idem.Request) (idem.Response, error) {
		inner := *r
		inner.Key, inner.Header = "", nil
		res, err := a.engine.Serve(ctx, inner, func(ctx context.Context) (idem.Response, error) { return completes(ctx, r) })
		return res.Response, err
	})
	if rec := a.record(t); err != nil || rec.State != store.Done || rec.Response.Status != 201 {
		t.Errorf("%v, the record is %s with %+v", err, rec.State, rec.Response)
	}
}

// Whom nobody names has no operation: neither an empty scope nor an authorizer without a
// subject nor a kind that is the engine's own is a caller.
func TestCallerWithoutAName(t *testing.T) {
	t.Parallel()
	finds := func(scope string, err error) func(*idem.Options) {
		return func(o *idem.Options) {
			o.Scope = func(context.Context, *idem.Request) (string, error) { return scope, err }
		}
	}
	session := idem.Request{Facts: idem.Facts{Session: "build"}}
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		r    idem.Request
		why  string // a word of the reason
		want error
	}{
		"an empty scope":              {finds("", nil), idem.Request{}, "empty", nil},
		"no scope":                    {finds("", idem.ErrScope), idem.Request{}, "", nil},
		"a scope that can't be had":   {finds("jane", errDown), idem.Request{}, "", errDown},
		"no identity":                 {asIs, idem.Request{}, "nobody has verified", nil},
		"no subject":                  {asIs, idem.Request{Identity: idem.Identity{Kind: "jwt"}}, "the jwt authorizer names no subject", nil},
		"no kind":                     {asIs, idem.Request{Identity: idem.Identity{Subject: "jane"}}, `kind ""`, nil},
		"a kind of the engine's":      {asIs, idem.Request{Identity: idem.Identity{Kind: "program", Subject: "jane"}}, `kind "program"`, nil},
		"a kind with the separator":   {asIs, idem.Request{Identity: idem.Identity{Kind: "jwt:x", Subject: "jane"}}, `kind "jwt:x"`, nil},
		"a session of a role":         {asIs, session, "lambda.RoleScope", nil},
		"a session, and a wrong kind": {asIs, idem.Request{Facts: session.Facts, Identity: idem.Identity{Kind: "program", Subject: "jane"}}, `kind "program"`, nil},
	} {
		var mem idem.MemoryStore
		r := tt.r
		r.Key, r.Method = "k", "POST"
		_, err := idem.New(&mem, tt.opt).Do(t.Context(), r, never(t))
		if !errors.Is(err, idem.ErrScope) || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.why) || len(mem.Records()) != 0 {
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
	}
}

// A change of scope that doesn't concern a request costs it nothing: it has one place.
func TestFormerThatDoesNotConcernARequest(t *testing.T) {
	t.Parallel()
	var claims []store.Claim
	st := &spoilt{Store: &idem.MemoryStore{}}
	st.claim = func(ctx context.Context, c store.Claim) (*store.Record, error) {
		claims = append(claims, c)
		return st.Store.Claim(ctx, c)
	}
	e := idem.New(st, func(o *idem.Options) { o.Former = &idem.Former{} })
	if _, err := e.Do(t.Context(), request, answers(201)); err != nil || len(claims) != 1 || claims[0].Beside != "" {
		t.Errorf("%v, claims: %+v", err, claims)
	}
}

// A request whose fingerprint fails costs a read: its record may be of another scheme.
func TestFingerprintThatFails(t *testing.T) {
	t.Parallel()
	fails := func(o *idem.Options) {
		o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, errDown }, "f"
	}
	knows := func(o *idem.Options) {
		fails(o)
		o.Fingerprint.Known = []idem.Fingerprint{{}}
	}
	for name, tt := range map[string]struct {
		opt      func(*idem.Options)
		before   bool
		replayed bool
		calls    int
	}{
		"nothing is known":              {fails, false, false, 1},
		"another scheme":                {knows, true, true, 1},
		"another scheme, and a new key": {knows, false, false, 1},
	} {
		var mem idem.MemoryStore
		if tt.before {
			if _, err := idem.New(&mem).Do(t.Context(), request, answers(201)); err != nil {
				t.Fatal(err)
			}
		}
		st := idemtest.Faulty(&mem, nil)
		res, err := idem.New(st, tt.opt).Do(t.Context(), request, never(t))
		e, refused := errors.AsType[*idem.Error](err)
		if res.Replayed != tt.replayed || st.Calls() != tt.calls || !tt.replayed && (!refused || e.Op != "fingerprint" || !errors.Is(err, errDown)) {
			t.Errorf("%s: %+v, %v after %d calls", name, res, err, st.Calls())
		}
	}
}

// An attempt's names are drawn anew, each as long as crypto/rand.Text makes them.
func TestNamesOfAnAttempt(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	if _, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	if r := one(&mem); len(r.Owner) != 26 || len(r.ID) != 26 || r.Owner == r.ID {
		t.Errorf("owner %q, operation %q", r.Owner, r.ID)
	}
}
