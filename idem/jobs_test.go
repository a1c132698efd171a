package idem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A job's time is kept with the job, in milliseconds and never earlier. A time that is past is
// none. One beyond the record's life fails the commit, and says by how much: nothing of the
// phase is committed.
func TestTimeOfAJob(t *testing.T) {
	t.Parallel()
	const life = 48 * time.Hour
	for name, tt := range map[string]struct {
		in   time.Duration
		want time.Duration // 0: none
		err  string
	}{
		"none":                 {in: 0},
		"past":                 {in: -time.Nanosecond},
		"long past":            {in: -1e6 * time.Hour},
		"a nanosecond":         {in: 1, want: time.Millisecond},
		"a day":                {in: 24 * time.Hour, want: 24 * time.Hour},
		"a day, and a bit":     {in: 24*time.Hour + 1, want: 24*time.Hour + time.Millisecond},
		"at the end of life":   {in: life, want: life},
		"behind the life":      {in: life + 1, err: "48h0m0s"},
		"a year":               {in: 365 * 24 * time.Hour, err: `job "remind" is for 2000-12-31T00:00:00Z, 8760h0m0s from now: its record is kept for 48h0m0s (Options.Retention)`},
		"as far as time goes":  {in: 1<<63 - 1, err: "Options.Retention"},
		"at the end, by a bit": {in: life - 1, want: life},
	} {
		for way, stage := range map[string]func(context.Context, idem.Job) (idem.Response, error){
			"in a phase": func(ctx context.Context, j idem.Job) (idem.Response, error) {
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(note("order"))
					tx.Stage(j)
					return idem.Response{Status: 201}, nil
				})
			},
			"between phases": func(ctx context.Context, j idem.Job) (idem.Response, error) {
				if err := idem.Stage(ctx, j); err != nil {
					return idem.Response{}, err
				}
				return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(note("order"))
					return idem.Response{Status: 201}, nil
				})
			},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					mem := new(idem.MemoryStore)
					log := idemtest.Watch(mem)
					now := time.Now()
					e := idem.New(log, func(o *idem.Options) { o.Retention = life })
					var failed error
					_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
						j := idem.NewJob("remind", 1)
						if tt.in != 0 {
							j.At = now.Add(tt.in)
						}
						re, err := stage(ctx, j)
						failed = err
						return re, err
					})
					if tt.err != "" {
						if !errors.Is(failed, idem.ErrWrite) || !strings.Contains(failed.Error(), tt.err) || len(written(mem)) != 0 {
							t.Errorf("got %v, %d writes", failed, len(written(mem)))
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					got := lastJob(log)
					if want := now.Add(tt.want); tt.want == 0 && !got.At.IsZero() || tt.want != 0 && !got.At.Equal(want) {
						t.Errorf("its time is %v, want %v", got.At, want)
					}
				})
			})
		}
	}
}

// lastJob is the last job of all commits.
func lastJob(log idemtest.Log) (last store.Job) {
	for _, c := range log.Commits() {
		for _, j := range c.Next.Jobs {
			last = j
		}
	}
	return last
}

// A phase that runs again stages its job once, for the time that it says then: a client that comes
// back after that time has the job delivered at once.
func TestTimeOfAJobWhosePhaseRunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := idemtest.Watch(new(idem.MemoryStore))
		e := idem.New(log, func(o *idem.Options) { o.Retention = 48 * time.Hour })
		ordered := time.Now()
		crash := errors.New("crash")
		for _, fails := range []bool{true, false} {
			_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				at, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (time.Time, error) { return ordered.UTC(), nil })
				if err != nil || fails {
					return idem.Response{}, errors.Join(crash, err)
				}
				j := idem.NewJob("remind", 1)
				j.At = at.Add(time.Hour)
				return idem.Response{Status: 201}, idem.Stage(ctx, j)
			})
			if (err != nil) != fails {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour) //nolint:forbidigo // virtual
		}
		if got := lastJob(log); got.Kind != "remind" || !got.At.IsZero() {
			t.Errorf("got %+v", got)
		}
	})
}

// unfit is a write that no commit takes.
type unfit struct{ brokenWrite }

func (unfit) Err() error { return nil }

func (unfit) CheckCommit([]idem.Write) error { return idem.ErrWrite }

// A Foreign whose Tx refuses something makes no call after that: the refusal ends its context,
// and is the phase's error, whatever the call has made of that.
func TestForeignIsRefusedBeforeItsCall(t *testing.T) {
	t.Parallel()
	far, large := idem.NewJob("remind", 1), idem.NewJob("remind", strings.Repeat("x", 200<<10))
	far.At = time.Now().Add(1000 * time.Hour)
	for name, tt := range map[string]struct {
		refused func(*idem.Tx)
		want    error
	}{
		"a time that is too far":  {func(tx *idem.Tx) { tx.Stage(far) }, idem.ErrWrite},
		"a job without a kind":    {func(tx *idem.Tx) { tx.Stage(idem.NewJob("", 1)) }, idem.ErrWrite},
		"51 jobs":                 {func(tx *idem.Tx) { tx.Stage(slices.Repeat([]idem.Job{idem.NewJob("remind", 1)}, 51)...) }, idem.ErrWrite},
		"jobs that don't fit":     {func(tx *idem.Tx) { tx.Stage(large, large) }, store.ErrTooLarge},
		"writes that don't fit":   {func(tx *idem.Tx) { tx.Write(unfit{}) }, idem.ErrWrite},
		"no write":                {func(tx *idem.Tx) { tx.Write(nil) }, idem.ErrWrite},
		"a key that is not new":   {func(tx *idem.Tx) { tx.Key("mail", "twice"); tx.Key("mail", "twice") }, idem.ErrKeyReused},
		"the second of two times": {func(tx *idem.Tx) { tx.Stage(idem.NewJob("remind", 1), far) }, idem.ErrWrite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := idem.New(new(idem.MemoryStore), func(o *idem.Options) { o.Retention = 48 * time.Hour })
			var failed error
			calls := 0
			_, err := do(t, e, func(ctx context.Context) (idem.Response, error) {
				_, failed = idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (int, error) {
					tt.refused(tx)
					if ctx.Err() != nil { // as every client does that is given a context
						return 0, ctx.Err()
					}
					calls++
					return 1, nil
				})
				return idem.Response{Status: 201}, failed
			})
			if calls != 0 || err == nil || !errors.Is(failed, tt.want) {
				t.Errorf("%d calls, %v", calls, failed)
			}
		})
	}
}

// At most 50 jobs wait in a record.
func TestJobsOfARecord(t *testing.T) {
	t.Parallel()
	for n, fine := range map[int]bool{50: true, 51: false} {
		jobs := make([]idem.Job, n)
		for i := range jobs {
			jobs[i] = idem.NewJob("k", i)
		}
		_, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), answering(func(ctx context.Context) error { return idem.Stage(ctx, jobs...) }))
		if (err == nil) != fine || !fine && !errors.Is(err, idem.ErrWrite) {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
}

// A job is refused before it is staged, if no destination could take it or if it has been
// delivered before.
func TestJobsThatCannotBeStaged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  idem.Job
		fine bool
	}{
		"a job":              {idem.NewJob(strings.Repeat("k", 128), 1), true},
		"a kind too long":    {idem.NewJob(strings.Repeat("k", 129), 1), false},
		"no kind":            {idem.NewJob("", 1), false},
		"no JSON":            {idem.NewJob("k", make(chan int)), false},
		"JSON that is cut":   {idem.Job{Kind: "k", Args: []byte("{")}, false},
		"JSON but not UTF-8": {idem.Job{Kind: "k", Args: []byte("\"\xff\"")}, false},
		"a group, no UTF-8":  {idem.Job{Kind: "k", Args: []byte("1"), Group: "a\xff"}, false},
		"a kind, no UTF-8":   {idem.Job{Kind: "k\xff", Args: []byte("1")}, false},
		"what SNS takes":     {idem.NewJob("k", strings.Repeat("x", 250<<10-2)), true},
		"what SNS refuses":   {idem.NewJob("k", strings.Repeat("x", 250<<10-1)), false},
		"large if escaped":   {idem.Job{Kind: "k", Args: []byte(`"` + strings.Repeat("<", 50<<10) + `"`)}, false},
		"tried before":       {idem.Job{Kind: "k", Args: []byte("1"), Tries: 1}, false},
		"failed before":      {idem.Job{Kind: "k", Args: []byte("1"), Failed: "down"}, false},
		"begun before":       {idem.Job{Kind: "k", Args: []byte("1"), Begun: time.Unix(1, 0)}, false},
	} {
		for by, stage := range map[string]func(context.Context) error{
			"Stage": func(ctx context.Context) error { return idem.Stage(ctx, tc.job) },
			"Tx.Stage": func(ctx context.Context) error {
				_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Stage(tc.job); return 1, nil })
				return err
			},
		} {
			_, err := do(t, idem.New(&idem.MemoryStore{}, callertest.Anybody), answering(stage))
			if (err == nil) != tc.fine || !tc.fine && !errors.Is(err, idem.ErrWrite) {
				t.Errorf("%s, by %s: %v", name, by, err)
			}
		}
	}
}

func TestStagedJobsAreCommittedOnceWithStableNames(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	fail := true
	fn := func(ctx context.Context) (idem.Response, error) {
		if err := idem.Stage(ctx, idem.NewJob("before", 0)); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("in", 1))
			return 1, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		if err := idem.Stage(ctx, idem.NewJob("after", 2)); err != nil {
			return idem.Response{}, err
		}
		if fail {
			return idem.Response{}, errors.New("later")
		}
		return idem.Response{Status: 201}, nil
	}
	names := func() map[string]string {
		m := make(map[string]string)
		for _, r := range mem.Records() {
			for id, j := range r.Jobs {
				m[id] = j.Kind
			}
		}
		return m
	}
	if _, err := do(t, e, fn); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(map[string]string{"0.0": "before", "0.1": "in"}, names()); diff != "" {
		t.Error(diff)
	}
	fail = false
	if _, err := do(t, e, fn); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"0.0": "before", "0.1": "in", "1.0": "after"}, names()); diff != "" {
		t.Error(diff)
	}
	for _, r := range mem.Records() {
		if r.Keep != store.KeepJobs || !r.Expires.IsZero() || r.Until.IsZero() {
			t.Errorf("keep %q, expires %v, until %v", r.Keep, r.Expires, r.Until)
		}
	}
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

// Jobs that a drain has delivered meanwhile don't count as waiting.
func TestDeliveredJobsDoNotCount(t *testing.T) {
	t.Parallel()
	mem := &emptied{}
	_, err := do(t, idem.New(mem), func(ctx context.Context) (idem.Response, error) {
		for n := range 3 {
			if _, err := idem.Atomic(ctx, fmt.Sprint("phase", n), func(_ context.Context, tx *idem.Tx) (int, error) {
				for range 30 {
					tx.Stage(idem.NewJob("mail", n))
				}
				return n, nil
			}); err != nil {
				return idem.Response{}, err
			}
			mem.deliver = true
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// emptied is a store whose jobs are delivered as soon as it is told so.
type emptied struct {
	idem.MemoryStore
	deliver bool
}

func (s *emptied) Load(ctx context.Context, pk string) (*store.Record, error) {
	r, err := s.MemoryStore.Load(ctx, pk)
	if r != nil && s.deliver {
		r.Jobs = nil
	}
	return r, err
}
