package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

var receipt = idem.NewJob("receipt", "r1")

func jobsOf(s *idem.MemoryStore) (n int) {
	for _, r := range s.Records() {
		n += len(r.Jobs)
	}
	return n
}

func one(s *idem.MemoryStore) *store.Record {
	for _, r := range s.Records() {
		return r
	}
	return nil
}

// Settling an unknown outcome could not stage jobs, so jobs are refused before
// the call.
func TestStageBeforeANotIdempotentPhase(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	called := false
	_, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		if err := idem.Stage(ctx, receipt); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Foreign(ctx, "transfer", func(context.Context, *idem.Tx) (string, error) {
			called = true
			return "tr_1", nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	})
	if !errors.Is(err, idem.ErrWrite) || called {
		t.Errorf("got %v, called: %v", err, called)
	}
}

// Stage in an Atomic's fn that runs again would stage twice.
func TestStageInAnAtomicThatRunsAgain(t *testing.T) {
	t.Parallel()
	conflicts := 2
	mem := idem.MemoryStore{Apply: func([]idem.Write) error {
		if conflicts--; conflicts >= 0 {
			return idem.ErrConflict
		}
		return nil
	}}
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(note("ride"))
			if err := idem.Stage(ctx, receipt); err != nil {
				return idem.Response{}, err
			}
			return idem.Response{Status: 201}, nil
		})
	})
	t.Log(res.Status, err)
	if n := jobsOf(&mem); n > 1 {
		t.Errorf("%d receipts staged by one operation", n)
	}
}

// Jobs staged in a failed phase are not committed with the refusal.
func TestStageInAnAbortedPhase(t *testing.T) {
	t.Parallel()
	mem := idem.MemoryStore{Apply: func([]idem.Write) error { return idem.ErrCondition }}
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (string, error) {
			tx.Write(note("ride"))
			return "", idem.Stage(ctx, receipt)
		})
		if errors.Is(err, idem.ErrCondition) {
			return idem.Response{}, idem.Respond(idem.Response{Status: 402})
		}
		return idem.Response{Status: 201}, err
	})
	t.Log(res.Status, err)
	if n := jobsOf(&mem); n > 0 {
		t.Errorf("%d jobs of a phase that did not commit, with the stored 402", n)
	}
}

// A4: Stage after the answer is refused.
func TestStageAfterFinish(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	var serr error
	_, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		re, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
		serr = idem.Stage(ctx, receipt)
		return re, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if serr == nil && jobsOf(&mem) == 0 {
		t.Error("Stage said nil, and the job is nowhere")
	}
}

// More jobs than a record may hold: an error, and not a 200 without jobs.
func TestTooManyLooseJobs(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	var serr error
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		for range 51 {
			serr = errors.Join(serr, idem.Stage(ctx, receipt))
		}
		return idem.Response{Status: 200, Body: []byte("51 receipts are on their way")}, serr
	})
	if !errors.Is(serr, idem.ErrWrite) || err == nil && jobsOf(&mem) == 0 {
		t.Errorf("client got %d %q; Stage gave no error; no job is staged; record is %s", res.Status, res.Body, one(&mem).State)
	}
}

// The commit of jobs fails: no answer leaves without them.
func TestAnswerWithoutItsJobs(t *testing.T) {
	t.Parallel()
	charge := func(ctx context.Context) error {
		_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) {
			return tx.Key("pay"), nil
		})
		return err
	}
	for name, before := range map[string]func(context.Context) error{
		"a record that is kept for its call": charge,
		"a record that may expire":           func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			store := idemtest.Faulty(&mem, idemtest.At(idemtest.Commit, 0, idemtest.Fault{Err: errors.New("item too large")}))
			res, err := do(t, idem.New(store, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
				if err := before(ctx); err != nil {
					return idem.Response{}, err
				}
				if err := idem.Stage(ctx, receipt); err != nil {
					return idem.Response{}, err
				}
				return idem.Response{Status: 201}, nil
			})
			if err == nil && res.Status == 201 && jobsOf(&mem) == 0 {
				r := one(&mem)
				t.Errorf("client got 201; record %s keep=%q phases=%d jobs=%d: nobody will come back for the receipt", r.State, r.Keep, len(r.Phases), len(r.Jobs))
			}
		})
	}
}

// The first answer has the headers of the stored answer.
func TestFirstAnswerIsTheStoredOne(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	var slow store.Commit
	st := idemtest.Faulty(&mem, func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb != idemtest.Commit {
			return idemtest.Fault{}
		}
		switch c.N {
		case 1: // sent, acknowledgement lost
			slow = c.Commit
			return idemtest.Fault{Err: store.ErrUnknown}
		case 2: // meets the first copy: TransactionConflict; the first copy lands right after
			if held, err := mem.Commit(ctx, slow); held != nil || err != nil {
				t.Error(held, err)
			}
			return idemtest.Fault{Err: idem.ErrConflict}
		}
		return idemtest.Fault{}
	})
	e := idem.New(st, callertest.Anybody)
	n := 0
	handler := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			n++
			id := fmt.Sprint("/rides/", n)
			tx.Write(note("put " + id))
			return idem.Response{Status: 201, Header: http.Header{"Location": {id}}}, nil
		})
	}
	first, err := do(t, e, handler)
	if err != nil {
		t.Fatal(err)
	}
	again, err := do(t, e, handler)
	if err != nil || !again.Replayed {
		t.Fatal(again, err)
	}
	if a, b := first.Header.Get("Location"), again.Header.Get("Location"); a != b {
		t.Errorf("first answer: Location %s; stored, replayed: %s; written: %v", a, b, written(&mem))
	}
}

// A phase of another kind must not pass an unknown outcome.
func TestIntentIsNotPassedByAnAtomic(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	with := func(o *idem.Options) { o.Now = clock.Now }
	dying := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(dying, callertest.Anybody, with), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "transfer", func(context.Context, *idem.Tx) (string, error) { dying.Crash(); return "x", nil }, idem.NotIdempotent())
		return idem.Response{}, err
	})
	clock.Advance(time.Hour)
	_, err := do(t, idem.New(&mem, callertest.Anybody, with), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "transfer", func(_ context.Context, tx *idem.Tx) (string, error) { tx.Write(note("transfer")); return "x", nil })
		return idem.Response{Status: 201}, err
	})
	t.Log(err, one(&mem).Phases)
	if len(written(&mem)) > 0 {
		t.Errorf("a phase whose outcome is unknown ran as Atomic and committed %v; record: %d phases, %s", written(&mem), len(one(&mem).Phases), one(&mem).State)
	}
}

// A10: MarkStuck returns an error if nothing was written.
func TestGiveUpTellsThatItFailed(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	with := func(o *idem.Options) { o.Now = clock.Now }
	dying := idemtest.Faulty(&mem, nil)
	_, _ = do(t, idem.New(dying, callertest.Anybody, with), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (string, error) { return "x", nil })
		dying.Crash()
		return idem.Response{}, err
	})
	clock.Advance(time.Hour)
	st := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == idemtest.Commit && c.N > 1 {
			return idemtest.Fault{Err: errors.New("access denied")}
		}
		return idemtest.Fault{}
	})
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	err := idem.New(st, callertest.Anybody, with).MarkStuck(ctx, jobs.TicketFor(one(&mem)), "nobody")
	if r := one(&mem); err == nil && r.State != store.Stuck {
		t.Errorf("MarkStuck: nil; the record is %s, run %v ago", r.State, clock.Now().Sub(r.Run))
	}
}

// A refusal that is not stored, then a success.
func TestRefusalThatIsNotStored(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	clock := idemtest.NewClock()
	down := false
	store := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == idemtest.Commit && down {
			return idemtest.Fault{Err: errors.New("throttled")}
		}
		return idemtest.Fault{}
	})
	e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", clock.Now, true })
	rate := 3
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "ride", func(_ context.Context, tx *idem.Tx) (string, error) { tx.Write(note("ride")); return "r", nil })
		if err != nil {
			return idem.Response{}, err
		}
		if rate > 2 {
			down = true
			return idem.Response{}, idem.Respond(idem.Response{Status: 402, Body: []byte("too dear, nothing was charged")})
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
	}
	first, err1 := do(t, e, handler)
	down, rate = false, 1
	clock.Advance(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	second, err2 := e.Resume(ctx, jobs.TicketFor(one(&mem)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
	if err1 == nil && first.Status == 402 && second.Status == 201 {
		t.Errorf("the client was told %d %q as definitive; the completer then made it %d (%v)", first.Status, first.Body, second.Status, err2)
	}
}

// A definitive answer is not stored while a Foreign is still running.
func TestRespondWhileAPhaseRuns(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	started, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		go func() {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) {
				close(started)
				<-release
				return "charged", nil
			})
			done <- err
		}()
		<-started
		return idem.Response{}, idem.Respond(idem.Response{Status: 402, Body: []byte("not charged")})
	})
	close(release)
	perr := <-done
	r := one(&mem)
	if r.State == store.Done && r.Keep == store.KeepOpen {
		t.Errorf("the phase (%v) was committed on the finished record: %d phases, ver %d, keep=%q, expires %v: it never expires", perr, len(r.Phases), r.Ver, r.Keep, r.Expires)
	}
	if err == nil && one(&mem).State == store.Done {
		t.Errorf("stored %d %s while the call was under way", res.Status, res.Body)
	}
}

// A status that no record can hold is refused before the commit.
func TestStatusOutOfRange(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	res, err := do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(note("charge"))
			return idem.Response{Status: 20}, nil
		})
	})
	if !errors.Is(err, idem.ErrResult) || len(written(&mem)) != 0 {
		t.Errorf("got %d, %v; written: %v", res.Status, err, written(&mem))
	}
}

// No answer that ends an operation hides a phase that is recorded and that the handler
// passed by. One that says "later" ends nothing.
func TestAnswerPastARecordedPhase(t *testing.T) {
	t.Parallel()
	another := func(status int) func(context.Context) (idem.Response, error) { // than the recorded phase, whose failure is hidden
		return func(ctx context.Context) (idem.Response, error) {
			_, _ = idem.Atomic(ctx, "another", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{Status: status}, nil
		}
	}
	all := func(o *idem.Options) { o.Stored = func(idem.Response) bool { return true } }
	for name, tt := range map[string]struct {
		opt    func(*idem.Options)
		fn     func(context.Context) (idem.Response, error)
		status int
		want   error
	}{
		"an answer that is kept":         {asIs, answers(201), 0, idem.ErrPhaseOrder},
		"a failure that is kept":         {all, answers(500), 0, idem.ErrPhaseOrder},
		"a refusal that isn't kept":      {asIs, answers(409), 0, idem.ErrPhaseOrder},
		"a failure that isn't kept":      {asIs, answers(503), 503, nil},
		"a refusal after a failed phase": {asIs, another(404), 0, idem.ErrUnfinished},
		"a refusal for good": {asIs, func(ctx context.Context) (idem.Response, error) {
			_, _ = another(0)(ctx)
			return responds(402)(ctx)
		}, 0, idem.ErrPhaseOrder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mem idem.MemoryStore
			_, _ = do(t, idem.New(&mem, callertest.Anybody), answering(func(ctx context.Context) error { return errors.Join(reserve(ctx), errors.New("later")) }))
			res, err := do(t, idem.New(&mem, callertest.Anybody, tt.opt), tt.fn)
			if res.Status != tt.status || !errors.Is(err, tt.want) || errors.Is(err, idem.ErrUnavailable) || one(&mem).State != store.Open {
				t.Errorf("%+v, %v; the record is %s", res, err, one(&mem).State)
			}
		})
	}
}

// The text of net/http's error for a failed call contains the whole URL.
func TestLastErrorHasNoQuery(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, _ = do(t, idem.New(&mem, callertest.Anybody), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "transfer", func(context.Context, *idem.Tx) (string, error) {
			return "", fmt.Errorf("pay: %w", &url.Error{Op: "Post", URL: "https://bank.example/pay?token=sk_live_123", Err: io.EOF})
		}, idem.NotIdempotent())
		return idem.Response{}, err
	})
	if r := one(&mem); strings.Contains(r.LastErr, "sk_live") || !strings.Contains(r.LastErr, "https://bank.example/pay?…") {
		t.Errorf("last error: %s", r.LastErr)
	}
}

// A NotIdempotent call whose context is over would certainly fail: it isn't begun
// and doesn't get stuck.
func TestCallBegunWithoutTimeIsNotStuck(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	ctx, leave := context.WithTimeout(t.Context(), ample)
	calls := 0
	st := idemtest.Faulty(&mem, nil)
	_, err := idem.New(st, callertest.Anybody).Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "ride", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("ride")); return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		leave() // the client goes away, or the time is up
		_, err := idem.Foreign(ctx, "transfer", func(ctx context.Context, _ *idem.Tx) (string, error) {
			if err := ctx.Err(); err != nil {
				return "", err // like every client, before it sends anything
			}
			calls++
			return "tr", nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	})
	for _, r := range mem.Records() {
		if r.State == store.Stuck && calls == 0 {
			t.Errorf("stuck (%v), though nothing was sent: %s", errors.Is(err, idem.ErrStuck), r.LastErr)
		}
	}
	if !errors.Is(err, idem.ErrNoTime) || st.Calls(idemtest.Commit) != 2 { // the ride and the release: no call has begun
		t.Errorf("%v after %d commits", err, st.Calls(idemtest.Commit))
	}
}

// The intent's own commit may use up the remaining time. Then nothing is sent,
// and the intent is removed: otherwise people would have to look for a call that
// was never made.
func TestContextThatEndsInTheIntentsCommit(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	called := 0
	ctx, cancel := context.WithCancel(t.Context())
	slow := idemtest.Faulty(&mem, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Total == 2 {
			cancel()
		}
		return idemtest.Fault{}
	})
	fax := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { called++; return 1, nil }, idem.NotIdempotent())
		return idem.Response{Status: 201}, err
	}
	req := idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}
	if _, err := idem.New(slow, callertest.Anybody).Do(ctx, req, fax); !errors.Is(err, idem.ErrNoTime) || called != 0 {
		t.Errorf("got %v after %d calls", err, called)
	}
	if r := one(&mem); r.State != store.Open || len(r.Phases) != 0 {
		t.Errorf("%s with phases %v", r.State, r.Phases)
	}
	if res, err := idem.New(&mem, callertest.Anybody).Do(t.Context(), req, fax); err != nil || res.Status != 201 || called != 1 {
		t.Errorf("the retry: %+v, %v, %d calls", res, err, called)
	}
}

// A record has room for 50 jobs in total, however many attempts stage jobs.
func TestJobsInTheRecordCountForItsLimit(t *testing.T) {
	t.Parallel()
	stage := func(n int) func(context.Context, *idem.Tx) (int, error) {
		return func(_ context.Context, tx *idem.Tx) (int, error) {
			for i := range n {
				tx.Stage(idem.NewJob("mail", i))
			}
			return n, nil
		}
	}
	for name, between := range map[string]error{"one attempt": nil, "two attempts": errors.New("down")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for second, want := range map[int]error{20: nil, 21: idem.ErrWrite} {
				var mem idem.MemoryStore
				down := between
				handler := answering(func(ctx context.Context) error {
					if _, err := idem.Atomic(ctx, "one", stage(30)); err != nil {
						return err
					}
					if err := down; err != nil {
						down = nil
						return err
					}
					_, err := idem.Atomic(ctx, "two", stage(second))
					return err
				})
				_, err := do(t, idem.New(&mem, callertest.Anybody), handler)
				if between != nil {
					_, err = do(t, idem.New(&mem, callertest.Anybody), handler)
				}
				if !errors.Is(err, want) || want == nil && jobsOf(&mem) != 50 || want != nil && jobsOf(&mem) != 30 {
					t.Errorf("30 and %d jobs: %v, %d are staged", second, err, jobsOf(&mem))
				}
			}
		})
	}
}

// A phase that others' writes conflict with again and again runs again for a while;
// then the client gets 409, is told to retry with its key, and its retry succeeds.
func TestConflictsThatLastAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, runs := true, 0
		mem := idem.MemoryStore{Apply: func([]idem.Write) error {
			if busy {
				return idem.ErrConflict
			}
			return nil
		}}
		e := idem.New(&mem, callertest.Anybody, idem.OneScope)
		serve := func() idem.Result {
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			defer cancel()
			res, err := e.Serve(ctx, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Path: "/rides", Header: http.Header{idem.KeyHeader: {"k"}}},
				func(ctx context.Context) (idem.Response, error) {
					_, err := idem.Atomic(ctx, "count", func(_ context.Context, tx *idem.Tx) (int, error) {
						runs++
						tx.Write(note("n"))
						return runs, nil
					})
					return idem.Response{Status: 201}, err
				})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := serve()
		if res.Status != 409 || !strings.Contains(string(res.Body), `"conflict"`) || res.Header.Get("Retry-After") == "" || runs < 2 || len(mem.Writes()) != 0 {
			t.Errorf("%d %v %s after %d runs, %d writes; want 409 conflict", res.Status, res.Header, res.Body, runs, len(mem.Writes()))
		}
		busy = false
		if res := serve(); res.Status != 201 || res.Replayed || len(mem.Writes()) != 1 {
			t.Errorf("the retry: %+v, %d writes", res, len(mem.Writes()))
		}
	})
}

// A derived key is made of the id that the server gave the operation, and of nothing
// that the client sent: each operation has keys of its own, though client, key and
// request are the same, and an attempt at the same operation has the same keys.
func TestDerivedKeysAreOfTheServersID(t *testing.T) {
	t.Parallel()
	keys := make(map[string]bool)
	for range 3 {
		e := idem.New(new(idem.MemoryStore), callertest.Anybody)
		var id, first string
		for _, fail := range []error{errors.New("down"), nil} {
			res, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				op, _ := idem.FromContext(ctx)
				_, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
					key := tx.Key("payments")
					if first == "" {
						id, first = op.ID(), key
					}
					if op.ID() != id || key != first {
						t.Errorf("a second attempt is %s with %s, the first was %s with %s", op.ID(), key, id, first)
					}
					return 1, fail
				})
				return idem.Response{Status: 201}, err
			})
			if (err == nil) != (fail == nil) {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if keys[first] || keys[id] {
			t.Errorf("another operation has %s or %s, too", first, id)
		}
		keys[first], keys[id] = true, true
	}
}
