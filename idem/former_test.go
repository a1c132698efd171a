package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// While the route leaves the scope, two routes' operations under one key are two as long as
// keys are claimed under the former scope, also inside of each other.
func TestFormerOperationsInside(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	req := idem.Request{Key: "k", Method: "POST", Route: "POST /a", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
	e := idem.New(&mem, func(o *idem.Options) {
		o.Former = &idem.Former{Scope: func(_ context.Context, r *idem.Request) (string, error) { return "jane " + r.Route, nil }, Claims: true}
	})
	ran := 0
	_, err := e.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		b := req
		b.Route, b.Body = "POST /b", []byte("another request")
		res, err := e.Do(ctx, b, func(context.Context) (idem.Response, error) { ran++; return idem.Response{Status: 201}, nil })
		if err != nil || res.Passed {
			t.Errorf("the other route's operation: passed %t, %v, want one of its own", res.Passed, err)
		}
		return res.Response, err
	})
	if err != nil || ran != 1 || len(mem.Records()) != 2 {
		t.Errorf("got %v, %d runs, %d records, want two operations", err, ran, len(mem.Records()))
	}
}

// The parts of the engine that look for a record find it under both scopes. The rest of a
// change of scope is in enginetest and in TestScopesChangeInTwoReleases.
func TestFormer(t *testing.T) {
	t.Parallel()
	req := idem.Request{Key: "a-random-key-of-an-order", Method: "POST", Route: "POST /charges", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
	release := func(claims bool) func(*idem.Options) {
		return func(o *idem.Options) {
			o.Former, o.StatusURL = &idem.Former{OneScope: true, Claims: claims}, "/operations/"
		}
	}
	never := func(context.Context) (idem.Response, error) {
		t.Error("the handler ran")
		return idem.Response{}, nil
	}
	for name, at := range map[string]struct{ claims, asks bool }{
		"of the first, in the second": {true, false},
		"of the second, in the first": {false, true},
	} {
		t.Run("inside, "+name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			inner := idem.New(&mem, release(at.asks))
			_, err := idem.New(&mem, release(at.claims)).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				res, err := inner.Do(ctx, req, answers(201))
				return res.Response, err
			})
			if err != nil {
				t.Errorf("a wrapper in a wrapper: %v", err)
			}
		})
		t.Run("status, "+name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			if _, err := idem.New(&mem, release(at.claims)).Do(t.Context(), req, answers(201)); err != nil {
				t.Fatal(err)
			}
			for _, asks := range []bool{at.asks, at.claims} { // at the other place, and at its own
				if res, err := idem.New(&mem, release(asks)).Status(t.Context(), req); err != nil || res.Status != 201 {
					t.Errorf("%+v, %v", res, err)
				}
			}
			other := req
			other.Key += "-of-somebody-else"
			if _, err := idem.New(&mem, release(at.asks)).Status(t.Context(), other); !errors.Is(err, idem.ErrKeyUnknown) {
				t.Errorf("a key that nobody used: %v", err)
			}
		})
		t.Run("quota, "+name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			if _, err := idem.New(&mem, release(at.claims)).Do(t.Context(), req, answers(201)); err != nil {
				t.Fatal(err)
			}
			full := &gate{wait: time.Minute}
			if res, err := idem.New(&mem, release(at.asks), full.set).Do(t.Context(), req, never); err != nil || !res.Replayed {
				t.Errorf("who may begin nothing new hears his answer: %+v, %v", res, err)
			}
			other := req
			other.Key += "-of-somebody-else"
			if _, err := idem.New(&mem, release(at.asks), full.set).Do(t.Context(), other, never); !errors.Is(err, idem.ErrQuota) {
				t.Errorf("a new operation: %v", err)
			}
		})
	}
}

// A key that other requests have used in both scopes is refused for its own scope's record.
func TestFormerTellsItsOwnRecord(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	req := idem.Request{Key: "a-random-key-of-an-order", Method: "POST", Route: "POST /charges", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
	first, second := req, req
	first.Body, second.Body = []byte("1"), []byte("2")
	former := func(o *idem.Options) { o.Former = &idem.Former{OneScope: true} }
	var own idem.Summary
	told := func(o *idem.Options) { o.Hooks.Ended = func(_ context.Context, s idem.Summary) { own = s } }
	claims := func(o *idem.Options) {
		o.Former = &idem.Former{OneScope: true, Claims: true}
		o.Retention = 48 * time.Hour
	}
	if _, err := idem.New(&mem, claims).Do(t.Context(), first, answers(201)); err != nil {
		t.Fatal(err)
	}
	res, err := idem.New(&mem, told).Do(t.Context(), second, answers(201))
	if err != nil {
		t.Fatal(err)
	}
	_, err = idem.New(&mem, former).Do(t.Context(), req, answers(201))
	if e, ok := errors.AsType[*idem.Error](err); !ok || !errors.Is(err, idem.ErrMismatch) || e.Record != own.Record || !e.Expires.Equal(res.Expires) {
		t.Errorf("%+v, want a mismatch with %s until %s", err, own.Record, res.Expires)
	}
}

// An authorizer is added to a public route once the first release is everywhere. Its
// callers are verified from then on, and what they sent before stays theirs.
func TestFormerAddsAnAuthorizer(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	release := func(claims bool) *idem.Engine {
		return idem.New(&mem, func(o *idem.Options) { o.Former = &idem.Former{OneScope: true, Claims: claims} })
	}
	jane := idem.Identity{Kind: "jwt", Subject: "jane"}
	for i, step := range []struct {
		e  *idem.Engine
		by idem.Identity
	}{
		{idem.New(&mem, idem.OneScope), idem.Identity{}}, {release(true), idem.Identity{}}, {release(true), jane}, {release(false), jane}, {release(true), jane},
	} {
		for k := range i + 1 { // the keys of the steps so far
			req := idem.Request{Key: "a-random-key-of-order-" + strconv.Itoa(k), Method: "POST", Identity: step.by}
			if res, err := step.e.Do(t.Context(), req, answers(201)); err != nil || res.Replayed != (k < i) {
				t.Errorf("step %d, key of step %d: %+v, %v", i, k, res, err)
			}
		}
	}
}

// Who has no caller under the other scope has no record there. Who can't be asked for now
// may have one.
func TestFormerKnowsNobody(t *testing.T) {
	t.Parallel()
	down := errors.New("the directory is down")
	finds := func(scope string, err error) func(context.Context, *idem.Request) (string, error) {
		return func(context.Context, *idem.Request) (string, error) { return scope, err }
	}
	for name, tt := range map[string]struct {
		scope func(context.Context, *idem.Request) (string, error)
		want  error
	}{
		"nobody":               {finds("", nil), nil},
		"nobody, and why":      {finds("", fmt.Errorf("%w: no header names an account", idem.ErrScope)), nil},
		"it isn't known who":   {finds("", down), down},
		"somebody":             {finds("account 7", nil), nil},
		"a scope and an error": {finds("account 7", down), down},
	} {
		for _, claims := range []bool{true, false} {
			e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
				if o.Former = (&idem.Former{Scope: tt.scope}); claims { // the new scope is the one beside
					o.Scope, o.Former = tt.scope, &idem.Former{Claims: true}
				}
			})
			req := idem.Request{Key: "k", Method: "POST", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
			if _, err := e.Do(t.Context(), req, answers(201)); !errors.Is(err, tt.want) {
				t.Errorf("%s, in the first release: %t: %v, want %v", name, claims, err, tt.want)
			}
		}
	}
}

// In the first release callers share a scope still, so their keys are random still.
func TestFormerNeedsRandomKeys(t *testing.T) {
	t.Parallel()
	e := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Former = &idem.Former{OneScope: true, Claims: true} })
	req := idem.Request{Method: "POST", Header: http.Header{idem.KeyHeader: {"order-1"}}, Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
	if res, err := e.Serve(t.Context(), req, never(t)); err != nil || res.Status != 400 || !strings.Contains(string(res.Body), "22 to 255") {
		t.Errorf("%d %s, %v", res.Status, res.Body, err)
	}
}

// While a preset changes, what either of the two accepts is accepted, and nothing more.
func TestFormerPresetAcceptsWhatBothDo(t *testing.T) {
	t.Parallel()
	strict := idem.IETF
	few := func(o *idem.Options) { o.MinKey = 3 } // characters
	puts := func(o *idem.Options) { o.Methods = []string{"POST", "PUT"} }
	for name, tt := range map[string]struct {
		was, is     func(*idem.Options)
		method, key string
		status      int
	}{
		"a method of the former":          {puts, asIs, "PUT", "k", 201},
		"without a key, it only passes":   {puts, asIs, "PUT", "", 200},
		"a method of the present":         {asIs, puts, "PUT", "k", 201},
		"which needs its key":             {asIs, puts, "PUT", "", 400},
		"a method of both":                {puts, asIs, "POST", "", 400},
		"a method of neither":             {puts, asIs, "GET", "k", 200},
		"a short key of the former":       {asIs, few, "POST", "k", 201},
		"a key of neither":                {few, few, "POST", "k", 400},
		"a key that the former had plain": {asIs, strict, "POST", "k", 201},
		"a plain key from now on":         {strict, asIs, "POST", "k", 201},
		"a key that both want in quotes":  {strict, strict, "POST", "k", 400},
	} {
		for _, claims := range []bool{true, false} {
			var mem idem.MemoryStore
			e := idem.New(&mem, tt.is, func(o *idem.Options) { o.Former = &idem.Former{Preset: tt.was, Claims: claims} })
			r := idem.Request{Method: tt.method, Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
			if tt.key != "" {
				r.Header = http.Header{idem.KeyHeader: {tt.key}}
			}
			res, err := e.Serve(t.Context(), r, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 200 + len(mem.Records())}, nil // 201 under a key
			})
			if err != nil || res.Status != tt.status {
				t.Errorf("%s, in the first release: %t: %d, want %d; %v", name, claims, res.Status, tt.status, err)
			}
		}
	}
}

// A preset's fingerprint changes with its scope: the first release claims by the former one,
// the second by the present one, and each of the programs knows what its neighbours claim.
func TestFormerPresetChangesTheFingerprint(t *testing.T) {
	t.Parallel()
	was := func(o *idem.Options) { o.Fingerprint.CanonicalJSON = true }
	for name, more := range map[string]func(*idem.Options){
		"": asIs,
		"with a secret": func(o *idem.Options) {
			o.Fingerprint.Secrets = []idem.Secret{{ID: "s", Key: make([]byte, 32)}}
		},
		"known already, like a third": func(o *idem.Options) {
			o.Fingerprint.Known = []idem.Fingerprint{{CanonicalJSON: true}, {Headers: []string{"X-Account"}}}
		},
	} {
		var mem idem.MemoryStore
		release := func(claims bool) func(*idem.Options) {
			return func(o *idem.Options) { more(o); o.Former = &idem.Former{Preset: was, Claims: claims} }
		}
		secret := func(o *idem.Options) { more(o); o.Fingerprint.Known = nil }
		programs := []*idem.Engine{
			idem.New(&mem, secret, was), idem.New(&mem, release(true)), idem.New(&mem, release(false)), idem.New(&mem, secret),
		}
		schemes := make(map[string][]int)
		for i, claims := range programs {
			r := idem.Request{Key: "order-" + strconv.Itoa(i), Method: "POST", Path: "/orders", Query: "a=1", Identity: idem.Identity{Kind: "jwt", Subject: "jane"}}
			before := mem.Records()
			if res, err := claims.Do(t.Context(), r, answers(201)); err != nil || res.Replayed {
				t.Fatalf("program %d, %s: %+v, %v", i, name, res, err)
			}
			for pk, rec := range mem.Records() {
				if before[pk] == nil {
					schemes[rec.Scheme] = append(schemes[rec.Scheme], i)
				}
			}
			for j := max(0, i-1); j <= min(i+1, len(programs)-1); j++ {
				if res, err := programs[j].Do(t.Context(), r, never(t)); err != nil || !res.Replayed {
					t.Errorf("what program %d claims, %s, is for program %d: %+v, %v", i, name, j, res, err)
				}
			}
		}
		for scheme, by := range schemes {
			if len(by) != 2 || by[1] != by[0]+1 {
				t.Errorf("%s: %q is the scheme of the programs %v", name, scheme, by)
			}
		}
	}
	// The same preset before and after: nothing is known twice.
	idem.New(&idem.MemoryStore{}, was, func(o *idem.Options) { o.Former, o.StatusURL = &idem.Former{Preset: was}, "/operations/" })
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

// rolling is a store on which two releases of a change of scope run, for requests of jane.
type rolling struct {
	mem   idem.MemoryStore
	clock *idemtest.Clock
	req   idem.Request
}

func newRolling() *rolling {
	return &rolling{clock: idemtest.NewClock(), req: idem.Request{
		Key: "a-random-key-of-an-order", Method: "POST", Route: "POST /charges", Identity: idem.Identity{Kind: "jwt", Subject: "jane"},
	}}
}

// release returns an engine of the first release, which claims under the former scope, or
// of the second one.
func (r *rolling) release(s store.Store, claims bool, opts ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append(opts, func(o *idem.Options) {
		o.Former, o.Now = &idem.Former{OneScope: true, Claims: claims}, r.clock.Now
	})...)
}

// abandon leaves the record of an attempt of the first release that has died, and whose
// lease is over.
func (r *rolling) abandon(t *testing.T, opts ...func(*idem.Options)) *store.Record {
	t.Helper()
	dies := idemtest.Faulty(&r.mem, nil)
	_, _ = r.release(dies, true, opts...).Do(t.Context(), r.req, func(context.Context) (idem.Response, error) {
		dies.Crash()
		return idem.Response{}, nil
	})
	r.clock.Advance(storetest.LeaseOver)
	for _, rec := range r.mem.Records() {
		return rec
	}
	t.Fatal("no record")
	return nil
}

// A record under the other scope, which two attempts take over at once, is continued by
// the second one when the first one gives it back: it has not expired.
func TestFormerContinuesWhatAnotherAttemptGaveBack(t *testing.T) {
	t.Parallel()
	r := newRolling()
	was := r.abandon(t, func(o *idem.Options) { o.CallsOut = true })
	raced := false
	between := &spoilt{Store: &r.mem}
	between.commit = func(ctx context.Context, c store.Commit) (*store.Record, error) {
		if !raced {
			raced = true
			_, _ = r.release(&r.mem, true).Do(ctx, r.req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") })
		}
		return r.mem.Commit(ctx, c)
	}
	_, err := r.release(between, false).Do(t.Context(), r.req, func(ctx context.Context) (idem.Response, error) {
		if op, ok := idem.FromContext(ctx); !ok || op.ID() != was.ID || !op.TakenOver() {
			t.Errorf("operation %s began, beside the open operation %s", op.ID(), was.ID)
		}
		_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return idem.Response{Status: 201}, err
	})
	if err != nil || !raced {
		t.Errorf("%v, raced: %t", err, raced)
	}
}

// A late copy of an attempt's claim doesn't win beside the record that the attempt has
// taken over since, and freed by an answer that its client has heard: a completer would
// run the request again.
func TestFormerRefusesALateClaim(t *testing.T) {
	t.Parallel()
	r := newRolling()
	stores := func(o *idem.Options) { o.Resumable, o.CallerFromOp, o.Function = true, true, "shop" }
	_, _ = r.release(&r.mem, true, stores).Do(t.Context(), r.req, answers(500))
	var late store.Claim
	sends := &spoilt{Store: &r.mem}
	sends.claim = func(ctx context.Context, c store.Claim) (*store.Record, error) {
		late = c
		late.Next = c.Next.Clone()
		return r.mem.Claim(ctx, c)
	}
	if res, err := r.release(sends, false, stores).Do(t.Context(), r.req, answers(409)); err != nil || res.Status != 409 {
		t.Fatalf("%+v, %v", res, err)
	}
	if held, err := r.mem.Claim(t.Context(), late); err != nil || held == nil {
		t.Errorf("a late claim was won, after its attempt has freed the key: %v", err)
	}
}

// A late copy of a claim that names the record that it has fenced doesn't win beside a newer
// record there, though the claim's attempt has taken that one over, with the same version.
func TestFormerRefusesALateClaimBesideATakeOver(t *testing.T) {
	t.Parallel()
	r := newRolling()
	r.abandon(t)
	r.clock.Advance(defaults.Retention + storetest.LeaseOver)
	var late *store.Claim
	sends := &spoilt{Store: &r.mem}
	sends.claim = func(ctx context.Context, c store.Claim) (*store.Record, error) {
		if c.Fenced == nil || late != nil {
			return r.mem.Claim(ctx, c)
		}
		late = &c
		late.Next = c.Next.Clone()
		r.abandon(t)
		return nil, store.ErrUnknown
	}
	res, err := r.release(sends, false).Do(t.Context(), r.req, func(ctx context.Context) (idem.Response, error) {
		if taken, err := r.mem.Load(ctx, late.Beside); err != nil || taken.Ver != late.Fenced.Ver {
			t.Errorf("the record that was taken over has version %d, the fenced one %d: %v", taken.Ver, late.Fenced.Ver, err)
		}
		if held, err := r.mem.Claim(ctx, *late); err != nil || held == nil {
			t.Errorf("a late claim was won, beside the record that its attempt has taken over: %v", err)
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil || res.Status != 201 || late == nil {
		t.Errorf("%+v, %v, a claim was late: %t", res, err, late != nil)
	}
}

// Who gets no answer to his claim reads the record under both scopes: ModeOpen runs no
// request that has an answer.
func TestFormerAnswersAfterALostClaim(t *testing.T) {
	t.Parallel()
	for _, claims := range []bool{true, false} {
		r := newRolling()
		if _, err := r.release(&r.mem, claims).Do(t.Context(), r.req, answers(201)); err != nil {
			t.Fatal(err)
		}
		loses := idemtest.Faulty(&r.mem, idemtest.At("Claim", 1, idemtest.Fault{Err: store.ErrUnknown, Applied: true}))
		open := func(o *idem.Options) { o.Mode = idem.ModeOpen }
		if res, err := r.release(loses, !claims, open).Do(t.Context(), r.req, never(t)); err != nil || !res.Replayed {
			t.Errorf("claimed in the first release: %t: %+v, %v", claims, res, err)
		}
	}
}

// Two callers of one scope use the same key, whose scopes are two before or after: each
// hears his own answer under whichever of the scopes it is, and no advice to take a new
// key.
func TestFormerFindsAnswersBehindAnothersKey(t *testing.T) {
	t.Parallel()
	account := func(context.Context, *idem.Request) (string, error) { return "account 7", nil }
	of := func(name string) idem.Request {
		return idem.Request{Key: "order-1", Method: "POST", Path: "/", Body: []byte(name), Identity: idem.Identity{Kind: "jwt", Subject: name}}
	}
	for name, tt := range map[string]struct{ before, after func(*idem.Options) }{
		"callers of an account are told apart": {
			func(o *idem.Options) { o.Former = &idem.Former{Scope: account} },
			func(o *idem.Options) { o.Former = &idem.Former{Scope: account, Claims: true} },
		},
		"callers become those of an account": {
			func(*idem.Options) {},
			func(o *idem.Options) { o.Scope, o.Former = account, &idem.Former{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			if _, err := idem.New(&mem, tt.before).Do(t.Context(), of("jane"), answers(201)); err != nil {
				t.Fatal(err)
			}
			if _, err := idem.New(&mem, tt.after).Do(t.Context(), of("bob"), answers(202)); err != nil {
				t.Fatal(err)
			}
			full := &gate{wait: time.Minute}
			for name, e := range map[string]*idem.Engine{
				"": idem.New(&mem, tt.after), "over quota": idem.New(&mem, tt.after, full.set),
			} {
				for range 2 {
					for who, want := range map[string]int{"bob": 202, "jane": 201} {
						if res, err := e.Do(t.Context(), of(who), never(t)); err != nil || res.Status != want {
							t.Errorf("%s, %s: %+v, %v", who, name, res, err)
						}
					}
				}
				changed := of("jane")
				changed.Body = []byte("other")
				if _, err := e.Do(t.Context(), changed, never(t)); !errors.Is(err, idem.ErrMismatch) {
					t.Errorf("another request, %s: %v", name, err)
				}
			}
		})
	}
}
