package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// variant is a way to run the three phases of Rocket Rides.
type variant struct {
	opt  func(*idem.Options)
	opts []idem.PhaseOption
	// once means that the call is never repeated; the operation may get stuck
	// instead.
	once bool
}

func variants() map[string]variant {
	resumable := func(o *idem.Options) { o.Function, o.Resumable = "f", true }
	return map[string]variant{
		"claim first":    {opt: func(*idem.Options) {}},
		"resumable":      {opt: resumable},
		"not idempotent": {opt: resumable, opts: []idem.PhaseOption{idem.NotIdempotent()}, once: true},
	}
}

// story is the story of a key: a store, a clock, and the effects outside.
type story struct {
	variant
	mem   idem.MemoryStore
	out   outside
	ahead atomic.Int64 // of the real clock
}

func (p *story) engine(s store.Store) *idem.Engine {
	return idem.New(s, callertest.Anybody, p.opt, func(o *idem.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }
	})
}

func (p *story) do(e *idem.Engine) (idem.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ample)
	defer cancel()
	return e.Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides", Body: []byte("{}")}, p.out.rides(nil, p.opts...))
}

// complete acts as the completer: it takes up the record that is kept open with
// its request, and reports whether there was such a record.
func (p *story) complete(t *testing.T) (did bool) {
	t.Helper()
	for _, r := range p.mem.Records() {
		if r.State != store.Open || r.Keep != store.KeepOpen || r.Input == nil {
			continue
		}
		did = true
		ctx, cancel := context.WithTimeout(t.Context(), ample)
		_, err := p.engine(&p.mem).Resume(ctx, state.TicketFor(r), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
			if string(in.Body) != "{}" || in.Path != "/rides" || in.Key != "" {
				t.Errorf("resumed with %+v", in)
			}
			return p.out.rides(nil, p.opts...)(ctx)
		})
		cancel()
		if err != nil && !errors.Is(err, idem.ErrStuck) {
			t.Errorf("resume: %v", err)
		}
	}
	return did
}

// check checks the end of every story: one ride, one audit record, one charge
// key, one receipt, one answer.
func (p *story) check(t *testing.T, label string) {
	t.Helper()
	for _, r := range p.mem.Records() {
		if p.once && r.State == store.Stuck {
			if len(p.out.calls) > 1 || r.Keep != store.KeepOpen || !r.Expires.IsZero() {
				t.Errorf("%s: stuck after %d calls, kept as %q until %v", label, len(p.out.calls), r.Keep, r.Expires)
			}
			return
		}
	}
	res, err := p.do(p.engine(&p.mem))
	if err != nil || res.Status != 201 || !res.Replayed {
		t.Errorf("%s: the end is %+v, %v", label, res, err)
		return
	}
	id, _, _ := strings.Cut(string(res.Body), " ")
	if diff := cmp.Diff([]string{"ride", "audit", "charged " + id}, written(&p.mem)); diff != "" {
		t.Errorf("%s: writes (-want +got):\n%s", label, diff)
	}
	if keys := p.out.charged(); len(keys) != 1 || p.once && len(p.out.calls) != 1 {
		t.Errorf("%s: charges by derived key %v", label, keys)
	}
	for _, r := range p.mem.Records() {
		if j, ok := r.Jobs["2.0"]; len(r.Jobs) != 1 || !ok || string(j.Args) != fmt.Sprintf(`{"id":%q}`, id) {
			t.Errorf("%s: jobs %v", label, r.Jobs)
		}
		if r.Keep != store.KeepJobs || r.Input != nil {
			t.Errorf("%s: keep %q, input %v", label, r.Keep, r.Input)
		}
	}
}

// The process dies before or after each of its store calls. Then the client
// retries or, if the request was stored, a completer continues alone.
func TestPhasesSurviveACrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for call := 1; ; call++ {
				crashed := false
				for _, applied := range []bool{false, true} {
					for _, byCompleter := range []bool{false, true} {
						label := fmt.Sprintf("crash at call %d, applied %t, completer %t", call, applied, byCompleter)
						p := &story{variant: v}
						store := idemtest.Faulty(&p.mem, idemtest.CrashAt(call, applied))
						_, _ = p.do(p.engine(store))
						crashed = crashed || store.Crashed()
						p.ahead.Store(int64(2 * ample)) // the lease is over
						if !byCompleter || !p.complete(t) {
							_, _ = p.do(p.engine(&p.mem))
						}
						p.check(t, label)
					}
				}
				if !crashed {
					t.Logf("%d calls", call-1)
					return
				}
			}
		})
	}
}

// Every call fails in every way that a store may fail; the same attempt or a
// retry finishes the operation.
func TestPhasesSurviveAFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	faults := map[string]idemtest.Fault{
		"lost before":      {Err: store.ErrUnknown},
		"lost after":       {Err: store.ErrUnknown, Applied: true},
		"conflict":         {Err: idem.ErrConflict},
		"refused for good": {Err: errors.New("access denied")},
	}
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, fault := range faults {
				for call := 1; call <= 6; call++ {
					p := &story{variant: v}
					st := idemtest.Faulty(&p.mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
						if c.Total == call {
							return fault
						}
						return idemtest.Fault{}
					})
					e := p.engine(st)
					_, _ = p.do(e)
					p.ahead.Store(int64(2 * ample))
					_, _ = p.do(e)
					p.check(t, fmt.Sprintf("%s at call %d", kind, call))
				}
			}
		})
	}
}

// A worker sleeps past its lease before or after any of its calls, another worker
// finishes, and the first worker wakes up: it changes nothing any more.
func TestPhasesFenceAWorkerThatWakesUp(t *testing.T) {
	t.Parallel()
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for call := 1; call <= 5; call++ {
				for _, applied := range []bool{false, true} {
					p := &story{variant: v}
					asleep, wake := make(chan struct{}), make(chan struct{})
					var once atomic.Bool
					store := &sleepy{Store: &p.mem, sleep: func(n int, after bool) {
						if n == call && after == applied && once.CompareAndSwap(false, true) {
							close(asleep)
							<-wake
						}
					}}
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_, _ = p.do(p.engine(store))
					}()
					select {
					case <-asleep:
						p.ahead.Store(int64(2 * ample))
						_, _ = p.do(p.engine(&p.mem))
					case <-ended: // this worker makes fewer calls
					}
					close(wake)
					<-ended
					_, _ = p.do(p.engine(&p.mem))
					p.check(t, fmt.Sprintf("asleep at call %d, applied %t", call, applied))
				}
			}
		})
	}
}

// sleepy lets a worker fall asleep around its store calls.
type sleepy struct {
	store.Store
	n     atomic.Int64
	sleep func(n int, after bool)
}

func (s *sleepy) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	n := int(s.n.Add(1))
	s.sleep(n, false)
	held, err := s.Store.Claim(context.WithoutCancel(ctx), c)
	s.sleep(n, true)
	return held, err
}

func (s *sleepy) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	n := int(s.n.Add(1))
	s.sleep(n, false)
	held, err := s.Store.Commit(context.WithoutCancel(ctx), c)
	s.sleep(n, true)
	return held, err
}
