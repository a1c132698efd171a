package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A deadline so far away that the end of the lease would overflow.
func TestFarDeadlineStillHoldsTheKey(t *testing.T) {
	t.Parallel()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().AddDate(400, 0, 0))
	defer cancel()
	_, err := engine.Do(ctx, request, func(context.Context) (idem.Response, error) {
		if _, err := engine.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrInFlight) {
			t.Errorf("a rival got %v, want in flight", err)
		}
		return idem.Response{}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A freed key is free for hosts whose clocks are behind, too.
func TestFreedKeyUnderSkew(t *testing.T) {
	t.Parallel()
	memory := &idem.MemoryStore{}
	behind := idem.New(memory, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return time.Now().Add(-5 * time.Second) } })
	if _, err := idem.New(memory, callertest.Anybody).Do(t.Context(), request, answers(422)); err != nil {
		t.Fatal(err)
	}
	corrected := request
	corrected.Body = []byte(`{"corrected":true}`)
	if res, err := behind.Do(t.Context(), corrected, answers(201)); err != nil || res.Status != 201 {
		t.Errorf("the corrected request got %+v, %v", res, err)
	}
}

// A record has texts in UTF-8 only: others would be changed, and a sealed record could never be
// read again. A request with others is refused before its claim.
func TestTextsOfARecordAreUTF8(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(r *idem.Request, s string){
		"operation": func(r *idem.Request, s string) { r.Operation = s },
		"tenant":    func(r *idem.Request, s string) { r.Tenant = s },
		"route":     func(r *idem.Request, s string) { r.Route = s },
		"function":  func(r *idem.Request, s string) { r.Handler.Function = s },
		"handler":   func(r *idem.Request, s string) { r.Handler.Name = s },
		"kind":      func(r *idem.Request, s string) { r.Identity.Kind = s },
	} {
		for text, want := range map[string]error{"héllo": nil, "h\xe9llo": idem.ErrRequest} {
			var mem idem.MemoryStore
			r := request
			set(&r, text)
			_, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), r, answers(201))
			if !errors.Is(err, want) || (len(mem.Records()) == 0) != (want != nil) {
				t.Errorf("the %s is %q: got %v and %d records, want %v", name, text, err, len(mem.Records()), want)
			}
		}
	}
}

// A record has the begin of its last attempt, and keeps the begin of its
// first.
func TestEachAttemptNotesItsTime(t *testing.T) {
	t.Parallel()
	begun := time.UnixMilli(1_800_000_000_000)
	now := begun
	store := &idem.MemoryStore{}
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Now = func() time.Time { return now } })
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		now = begun.Add(later)
		_, _ = engine.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
				t.Error(err)
			}
			for _, r := range store.Records() {
				if !r.Run.Equal(now) {
					t.Errorf("while it runs, after %v: run at %v", later, r.Run)
				}
			}
			return idem.Response{}, errors.New("down")
		})
		for _, r := range store.Records() {
			if !r.Run.Equal(now) || !r.Created.Equal(begun) {
				t.Errorf("after %v: run at %v, created at %v", later, r.Run, r.Created)
			}
		}
		if n := len(store.Records()); n != 1 {
			t.Errorf("%d records", n)
		}
	}
}

// A handler may run for any time. A release leaves the operation to its client
// for the whole grace after that, and a freed key differs from an abandoned key.
func TestGivingBackNotesItsTime(t *testing.T) {
	t.Parallel()
	for name, resumable := range map[string]bool{"kept": true, "freed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting(func(o *idem.Options) { o.Resumable = resumable })
			begun := a.clock.Now()
			_, err := do(t, a.engine, func(context.Context) (idem.Response, error) {
				a.clock.Advance(40 * time.Minute)
				return idem.Response{}, errors.New("down")
			})
			if r := a.record(t); err == nil || !r.Run.Equal(a.clock.Now()) || !r.Created.Equal(begun) {
				t.Errorf("%v: run at %v, created at %v; want the time it was given back, and %v", err, r.Run, r.Created, begun)
			}
		})
	}
}

// Jobs wait since the finish that staged them, however long the handler ran.
func TestFinishNotesItsTime(t *testing.T) {
	t.Parallel()
	a := accepting()
	if _, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		a.clock.Advance(40 * time.Minute)
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1))
	}); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.Keep != store.KeepJobs || !r.Run.Equal(a.clock.Now()) {
		t.Errorf("keep %q, run at %v, want the finish", r.Keep, r.Run)
	}
}

// A claim that conflicts each time has met nobody whose progress a 202 could tell.
func TestConflictIsNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &spoilt{Store: &idem.MemoryStore{}, claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, idem.ErrConflict }}
		e := idem.New(st, callertest.Anybody, func(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" })
		if res, err := e.Serve(t.Context(), request, never(t)); err != nil || res.Status != 409 || res.Header.Get("Retry-After") != "1" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// lateStore reports a failure for the first commit of a phase, but applies the
// commit just before the next write.
type lateStore struct {
	*idem.MemoryStore
	tell  error
	after int // writes that pass before

	land func()
}

func (s *lateStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	return s.write(ctx, func(ctx context.Context) (*store.Record, error) { return s.MemoryStore.Claim(ctx, c) })
}

func (s *lateStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	return s.write(ctx, func(ctx context.Context) (*store.Record, error) { return s.MemoryStore.Commit(ctx, c) })
}

func (s *lateStore) write(ctx context.Context, send func(context.Context) (*store.Record, error)) (*store.Record, error) {
	s.after--
	switch {
	case s.after == -1:
		s.land = func() { _, _ = send(context.WithoutCancel(ctx)) }
		return nil, s.tell
	case s.land != nil:
		s.land()
		s.land = nil
	}
	return send(ctx)
}

// An Atomic runs again after a conflict, on fresh reads, and makes another
// result. If the first commit lands after all, the stored result counts: the
// handler continues with that result, and its answer is given.
func TestWhatWasStoredCounts(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int{"a phase": 1, "a finish": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			var phase, answer int
			handler := func(ctx context.Context) (idem.Response, error) {
				n, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
					phase++
					tx.Write(note(fmt.Sprint("phase ", phase)))
					return phase, nil
				})
				if err != nil {
					return idem.Response{}, err
				}
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					answer++
					tx.Write(note(fmt.Sprint("answer ", answer)))
					return idem.Response{Status: 201, Body: fmt.Appendf(nil, "phase %d, answer %d", n, answer)}, nil
				})
			}
			e := idem.New(&lateStore{MemoryStore: &mem, tell: idem.ErrConflict, after: after}, callertest.Anybody)
			for i := range 2 {
				res, err := do(t, e, handler)
				if err != nil || string(res.Body) != "phase 1, answer 1" || res.Replayed != (i > 0) {
					t.Errorf("got %q, %v, replayed %t; want phase 1, answer 1", res.Body, err, res.Replayed)
				}
				if i == 0 && phase+answer != 3 {
					t.Errorf("%d runs of the phase and %d of the finish: nothing was late", phase, answer)
				}
			}
			if diff := cmp.Diff([]string{"phase 1", "answer 1"}, written(&mem)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// A release that meets the attempt's own later write is decided again: the
// committed work stays, and the next attempt needn't wait for the end of the
// lease.
func TestReleaseAfterALateCommitKeepsIt(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&lateStore{MemoryStore: &mem, tell: errors.New("access denied"), after: 1}, callertest.Anybody)
	handler := answering(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		return err
	})
	if _, err := do(t, e, handler); err == nil {
		t.Fatal("no error")
	}
	for _, r := range mem.Records() {
		if len(r.Phases) != 1 || r.Keep != store.KeepOpen || !r.Expires.IsZero() || !r.Lease.IsZero() {
			t.Errorf("%d phases, keep %q, expires %v, lease until %v; want one that is kept and free", len(r.Phases), r.Keep, r.Expires, r.Lease)
		}
	}
	if res, err := do(t, e, handler); err != nil || res.Status != 200 {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff([]string{"one"}, written(&mem)); diff != "" {
		t.Error(diff)
	}
}

// An attempt that meets its own later write has not lost its lease: no hook
// reports a take-over, and the client may retry at once.
func TestLateCommitOfOnesOwnIsNoTakeOver(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	lost := 0 // or finished: the answer doesn't count as stored
	e := idem.New(&lateStore{MemoryStore: &mem, tell: errors.New("access denied"), after: 1}, callertest.Anybody, func(o *idem.Options) {
		tells := func(context.Context, idem.Event) { lost++ }
		o.Hooks.LeaseLost, o.Hooks.Finished = tells, tells
	})
	_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
		return idem.Response{}, idem.Respond(idem.Response{Status: 402})
	})
	if !errors.Is(err, store.ErrUnknown) || errors.Is(err, idem.ErrLeaseLost) || lost != 0 {
		t.Errorf("got %v, and %d were told of a lost lease", err, lost)
	}
	if r := one(&mem); len(r.Phases) != 1 || r.State != store.Open {
		t.Errorf("%d phases, state %q: nothing was late", len(r.Phases), r.State)
	}
}

// TTL deletes late. A record whose lifetime is over needs its secret no more, wherever
// it is read.
func TestExpiredRecordNeedsNoSecret(t *testing.T) {
	t.Parallel()
	older := idem.Secret{ID: "1", Key: bytes.Repeat([]byte{1}, 32)}
	newer := idem.Secret{ID: "2", Key: bytes.Repeat([]byte{2}, 32)}
	mem, now := &idem.MemoryStore{}, time.Now()
	with := func(secret idem.Secret, more ...func(*idem.Options)) *idem.Engine {
		return idem.New(mem, append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) {
			o.Now, o.Fingerprint.Secrets = func() time.Time { return now }, []idem.Secret{secret}
		}}, more...)...)
	}
	if _, err := with(older).Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	if _, err := with(newer).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrIncomparable) {
		t.Errorf("before its end: %v, want ErrIncomparable", err)
	}
	now = now.Add(defaults.Retention + time.Minute)
	if _, err := with(newer).Status(t.Context(), request); !errors.Is(err, idem.ErrKeyUnknown) {
		t.Errorf("its status: %v, want ErrKeyUnknown", err)
	}
	if _, err := with(newer, (&gate{wait: time.Second}).set).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrQuota) {
		t.Errorf("over the quota: %v, want ErrQuota", err)
	}
	if res, err := with(newer).Do(t.Context(), request, answers(201)); err != nil || res.Replayed {
		t.Errorf("a new request: %+v, %v", res, err)
	}
}

// The zero secret holds the first place until all functions know the first secret: records are
// not keyed yet.
func TestZeroSecret(t *testing.T) {
	t.Parallel()
	a := begun(func(o *idem.Options) { o.Fingerprint.Secrets = []idem.Secret{{}, {ID: "1", Key: make([]byte, 32)}} })
	if _, err := a.do(t, answers(201)); err != nil || a.record(t).Secret != "" {
		t.Errorf("got %v, the record is keyed by %q, want no key", err, a.record(t).Secret)
	}
}

// A retry after the retention runs anew.
func TestRetentionOfAnAnswer(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	e := idem.New(new(idem.MemoryStore), callertest.Anybody, func(o *idem.Options) {
		o.Retention = 48 * time.Hour
		o.Now = func() time.Time { return time.Now().Add(ahead) }
	})
	runs := 0
	serve := func() idem.Result {
		res, err := e.Serve(t.Context(), keyed("k"), func(context.Context) (idem.Response, error) {
			runs++
			return idem.Response{Status: 201}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	serve()
	for _, tc := range []struct {
		at     time.Duration
		status int
		runs   int
	}{{47 * time.Hour, 201, 1}, {49 * time.Hour, 201, 2}} {
		ahead = tc.at
		if res := serve(); res.Status != tc.status || runs != tc.runs {
			t.Errorf("after %v: %d, %d runs", tc.at, res.Status, runs)
		}
	}
}

// A request that can't be stored is refused before the claim: its key stays free,
// and no unreadable record remains.
func TestRequestThatCannotBeStoredIsRefused(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), defaults.MaxStoredRequest+1)
	post := func(change func(*idem.Request)) idem.Request {
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/", Header: http.Header{idem.KeyHeader: {"k"}, "Content-Type": {"text/plain"}}}
		change(&r)
		return r
	}
	for name, tt := range map[string]struct {
		req    idem.Request
		status int
	}{
		"a body over the limit":    {post(func(r *idem.Request) { r.Body = large }), 413},
		"a body at the limit":      {post(func(r *idem.Request) { r.Body = large[1:] }), 201},
		"a query over the limit":   {post(func(r *idem.Request) { r.Query = strings.Repeat("x", 100<<10) }), 413},
		"a header over the limit":  {post(func(r *idem.Request) { r.Header["Content-Type"] = []string{strings.Repeat("x", 100<<10)} }), 413},
		"a header that isn't kept": {post(func(r *idem.Request) { r.Header["X-Other"] = []string{strings.Repeat("x", 100<<10)} }), 201},
		"an event over the limit":  {post(func(r *idem.Request) { r.Snapshot = make([]byte, 100<<10) }), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var st idem.MemoryStore
			var refused error
			engine := idem.New(&st, callertest.Anybody, func(o *idem.Options) {
				o.Function, o.Resumable, o.MaxRequest = "f", true, defaults.MaxStoredRequest
				o.Hooks.Refused = func(_ context.Context, ev idem.Event) { refused = ev.Err }
			})
			res, err := engine.Serve(t.Context(), tt.req, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			})
			if err != nil || res.Status != tt.status || (res.Status == 413) == (len(st.Records()) == 1) {
				t.Errorf("got %d, %v, and %d records; want %d", res.Status, err, len(st.Records()), tt.status)
			}
			if (res.Status == 413) != errors.Is(refused, idem.ErrTooLarge) {
				t.Errorf("Hooks.Refused was told %v", refused)
			}
			// A request that isn't stored has no such limit.
			plain := idem.New(new(idem.MemoryStore), callertest.Anybody)
			if res, err := plain.Serve(t.Context(), tt.req, func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			}); err != nil || res.Status != 201 {
				t.Errorf("without Resumable: %d, %v", res.Status, err)
			}
		})
	}
}

// Storing a request costs a write unit for each KB, also if its handler refuses it.
func TestLargeRequestIsRefusedByDefault(t *testing.T) {
	t.Parallel()
	a := accepting()
	_, err := a.engine.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Body: make([]byte, defaults.MaxInput+1)}, answers(201))
	if !errors.Is(err, idem.ErrTooLarge) || len(a.mem.Records()) != 0 {
		t.Errorf("%v, %d records", err, len(a.mem.Records()))
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

// An answer of a phase that was late, though the phase ran again without one, is the answer,
// whatever the handler makes of the phase's error. Its key isn't free.
func TestLateAnswerCounts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(error) (idem.Response, error){
		"a definitive answer": func(error) (idem.Response, error) { return idem.Response{}, idem.Respond(idem.Response{Status: 201}) },
		"an error":            func(err error) (idem.Response, error) { return idem.Response{}, err },
		"a refusal":           func(error) (idem.Response, error) { return idem.Response{Status: 409}, nil },
		"500":                 func(error) (idem.Response, error) { return idem.Response{Status: 500}, nil },
		"a panic":             func(err error) (idem.Response, error) { panic(err) },
	} {
		var mem idem.MemoryStore
		e, runs := idem.New(&lateStore{MemoryStore: &mem, tell: idem.ErrConflict, after: 1}, callertest.Anybody), 0
		for i := range 2 {
			res, err := e.Serve(t.Context(), keyed("k"), func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Atomic(ctx, "order", func(_ context.Context, tx *idem.Tx) (int, error) {
					tx.Write(note("order"))
					if runs++; runs > 1 {
						return 1, nil
					}
					return 0, idem.Respond(idem.Response{Status: 402})
				})
				return end(err)
			})
			if err != nil || res.Status != 402 || runs != 2 || len(mem.Writes()) != 1 {
				t.Errorf("%s, request %d: got %d, %v after %d runs and %d writes, want 402 after two and one", name, i, res.Status, err, runs, len(mem.Writes()))
			}
		}
	}
}

// The mark of a stuck operation that was reported as failed, and landed after all, is no answer
// of the handler's.
func TestLateMarkCounts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(error) (idem.Response, error){
		"an error":  func(err error) (idem.Response, error) { return idem.Response{}, err },
		"a refusal": func(error) (idem.Response, error) { return idem.Response{Status: 402}, nil },
	} {
		var mem idem.MemoryStore
		var stuck, released int
		e := idem.New(&lateStore{MemoryStore: &mem, tell: store.ErrRefused, after: 2}, func(o *idem.Options) {
			o.Hooks.Stuck = func(context.Context, idem.Event) { stuck++ }
			o.Hooks.Released = func(context.Context, idem.Event) { released++ }
		})
		for i := range 2 {
			res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { return 0, errDown }, idem.NotIdempotent())
				return end(err)
			})
			if !errors.Is(err, idem.ErrStuck) || stuck != 1 || released != 0 {
				t.Errorf("%s, request %d: got %+v, %v, Stuck told %d times and Released %d; want ErrStuck, once and never", name, i, res, err, stuck, released)
			}
		}
	}
}
