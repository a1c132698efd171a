package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

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
		if op, ok := idem.FromContext(ctx); !ok || op.ID() != was.ID || !op.Resumed() {
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
		loses := idemtest.Faulty(&r.mem, idemtest.At(idemtest.Claim, 1, idemtest.Fault{Err: store.ErrUnknown, Applied: true}))
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
