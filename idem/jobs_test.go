package idem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
)

// Jobs are committed once, under the number of the commit that they join: the next one, also
// after a failure.
func TestStagedJobsAreCommittedOnceWithStableNames(t *testing.T) {
	t.Parallel()
	a := begun()
	for _, tt := range []struct {
		fails error
		want  map[string]string
	}{
		{errors.New("later"), map[string]string{"0.0": "before", "0.1": "in"}},
		{nil, map[string]string{"0.0": "before", "0.1": "in", "1.0": "after"}},
	} {
		_, err := a.do(t, answering(func(ctx context.Context) error {
			err := idem.Stage(ctx, idem.NewJob("before", 0))
			_, perr := idem.Atomic(ctx, "a", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Stage(idem.NewJob("in", 1))
				return 1, nil
			})
			return errors.Join(err, perr, idem.Stage(ctx, idem.NewJob("after", 2)), tt.fails)
		}))
		got := make(map[string]string)
		for id, j := range a.record(t).Jobs {
			got[id] = j.Kind
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.fails) {
			t.Errorf("%v, jobs (-want +got):\n%s", err, diff)
		}
	}
	if r := a.record(t); r.Keep != store.KeepJobs || !r.Expires.IsZero() || r.Until.IsZero() {
		t.Errorf("keep %q, expires %v, until %v; want it kept for its jobs", r.Keep, r.Expires, r.Until)
	}
}

// A job that is staged between phases is committed with the next one or with the answer, or
// Stage or the commit says why not: no answer leaves without the jobs that were accepted.
func TestStage(t *testing.T) {
	t.Parallel()
	conflict, condition := []error{idem.ErrConflict, idem.ErrConflict}, []error{idem.ErrCondition}
	staged := func(ctx context.Context, n int) error {
		return idem.Stage(ctx, slices.Repeat([]idem.Job{receipt}, n)...)
	}
	for name, tt := range map[string]struct {
		apply []error // of the store's writes
		fn    handler
		plan  idemtest.Plan
		jobs  int
		want  error
	}{
		"before the answer": {fn: answering(func(ctx context.Context) error { return staged(ctx, 1) }), jobs: 1},
		"50 jobs":           {fn: answering(func(ctx context.Context) error { return staged(ctx, 50) }), jobs: 50},
		"51 jobs":           {fn: answering(func(ctx context.Context) error { return staged(ctx, 51) }), want: idem.ErrWrite},
		"51 jobs, one by one": {fn: answering(func(ctx context.Context) (err error) {
			for range 51 {
				err = errors.Join(err, staged(ctx, 1))
			}
			return err
		}), want: idem.ErrWrite},
		"before a call that is not repeated": {fn: answering(func(ctx context.Context) error {
			if err := staged(ctx, 1); err != nil {
				return err
			}
			return paying(ctx, "transfer", func(*idem.Tx) error { t.Error("it was called"); return nil }, idem.NotIdempotent())
		}), want: idem.ErrWrite}, // settling it could stage none
		"in an Atomic that runs again": {apply: conflict, fn: func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Write(note("ride"))
				return idem.Response{Status: 201}, staged(ctx, 1)
			})
		}, want: idem.ErrPhaseOrder},
		"in a phase that fails": {apply: condition, fn: func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "paid", func(_ context.Context, tx *idem.Tx) (int, error) {
				tx.Write(note("ride"))
				tx.Stage(receipt)
				return 1, nil
			})
			if errors.Is(err, idem.ErrCondition) {
				err = idem.Respond(idem.Response{Status: 402})
			}
			return idem.Response{}, err
		}},
		"after the answer": {fn: func(ctx context.Context) (idem.Response, error) {
			resp, err := finishes(ctx)
			if err := staged(ctx, 1); !errors.Is(err, idem.ErrAnswered) {
				t.Errorf("Stage after the answer: %v, want ErrAnswered", err)
			}
			return resp, err
		}},
		"and the commit is denied": {
			fn:   answering(func(ctx context.Context) error { return staged(ctx, 1) }),
			plan: idemtest.At("Commit", 0, idemtest.Fault{Err: errDown}), want: errDown,
		},
		"and the commit is denied, after a call": {fn: answering(func(ctx context.Context) error {
			return errors.Join(paying(ctx, "charge", func(*idem.Tx) error { return nil }), staged(ctx, 1))
		}), plan: func(_ context.Context, c idemtest.Call) idemtest.Fault {
			if c.Verb == "Commit" && c.N > 2 {
				return idemtest.Fault{Err: errDown}
			}
			return idemtest.Fault{}
		}, want: errDown},
	} {
		writes := 0
		mem := idem.MemoryStore{Apply: func([]idem.Write) error {
			if writes++; writes <= len(tt.apply) {
				return tt.apply[writes-1]
			}
			return nil
		}}
		res, err := do(t, idem.New(idemtest.Faulty(&mem, tt.plan)), tt.fn)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || jobsOf(&mem) != tt.jobs {
			t.Errorf("%s: got %+v, %v and %d jobs, want %v and %d", name, res, err, jobsOf(&mem), tt.want, tt.jobs)
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
			if _, err := begun().do(t, answering(stage)); (err == nil) != tc.fine || !tc.fine && !errors.Is(err, idem.ErrWrite) {
				t.Errorf("%s, by %s: got %v, want it taken: %t", name, by, err, tc.fine)
			}
		}
	}
}

// A record has room for 50 jobs in total, however many attempts stage jobs. Those that a drain
// has delivered meanwhile don't count; if that can't be read, they do.
func TestJobsInTheRecordCountForItsLimit(t *testing.T) {
	t.Parallel()
	stage := func(ctx context.Context, phase string, n int) error {
		_, err := idem.Atomic(ctx, phase, func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(slices.Repeat([]idem.Job{receipt}, n)...)
			return n, nil
		})
		return err
	}
	delivered := func(r *store.Record, err error) (*store.Record, error) { r.Jobs = nil; return r, err }
	unread := func(*store.Record, error) (*store.Record, error) { return nil, errDown }
	for name, tt := range map[string]struct {
		between error // the attempts
		load    func(*store.Record, error) (*store.Record, error)
		second  int
		want    error
	}{
		"50":                   {nil, nil, 20, nil},
		"51":                   {nil, nil, 21, idem.ErrWrite},
		"50, in two attempts":  {errDown, nil, 20, nil},
		"51, in two attempts":  {errDown, nil, 21, idem.ErrWrite},
		"some are delivered":   {nil, delivered, 30, nil},
		"that can't be read":   {nil, unread, 30, idem.ErrWrite},
		"nor does that matter": {nil, unread, 20, nil},
	} {
		var mem idem.MemoryStore
		st := &spoilt{Store: &mem}
		if tt.load != nil {
			st.load = func(ctx context.Context, pk string) (*store.Record, error) { return tt.load(mem.Load(ctx, pk)) }
		}
		fails := tt.between
		handler := answering(func(ctx context.Context) error {
			if err := stage(ctx, "one", 30); err != nil || fails != nil {
				return errors.Join(err, fails)
			}
			return stage(ctx, "two", tt.second)
		})
		_, err := do(t, idem.New(st), handler)
		if fails = nil; tt.between != nil {
			_, err = do(t, idem.New(st), handler)
		}
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %v with %d jobs, want %v", name, err, jobsOf(&mem), tt.want)
		}
	}
}

// A job's time is kept with the job, in milliseconds and never earlier. A time that is past is
// none. One beyond the record's life fails the commit, and says by how much: nothing of the
// phase is committed.
func TestTimeOfAJob(t *testing.T) {
	t.Parallel()
	const life = 48 * time.Hour
	finish := func(ctx context.Context, jobs ...idem.Job) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(note("order"))
			tx.Stage(jobs...)
			return idem.Response{Status: 201}, nil
		})
	}
	between := func(ctx context.Context, jobs ...idem.Job) (idem.Response, error) {
		if err := idem.Stage(ctx, jobs...); err != nil {
			return idem.Response{}, err
		}
		return finish(ctx)
	}
	for name, tt := range map[string]struct {
		in, want time.Duration // 0: none
		err      string
	}{
		"none":                 {},
		"past":                 {in: -time.Nanosecond},
		"long past":            {in: -1e6 * time.Hour},
		"a nanosecond":         {in: 1, want: time.Millisecond},
		"a day, and a bit":     {in: 24*time.Hour + 1, want: 24*time.Hour + time.Millisecond},
		"at the end of life":   {in: life, want: life},
		"at the end, by a bit": {in: life - 1, want: life},
		"behind the life":      {in: life + 1, err: "48h0m0s"},
		"a year": {in: 365 * 24 * time.Hour, err: `job "remind" is for 2000-12-31T00:00:00Z, 8760h0m0s from now: ` +
			`its record is kept for 48h0m0s (Options.Retention)`},
		"as far as time goes": {in: 1<<63 - 1, err: "Options.Retention"},
	} {
		for way, stage := range map[string]func(context.Context, ...idem.Job) (idem.Response, error){"in a phase": finish, "between phases": between} {
			synctest.Test(t, func(t *testing.T) {
				var mem idem.MemoryStore
				log, now := idemtest.Watch(&mem), time.Now()
				_, err := do(t, idem.New(log, func(o *idem.Options) { o.Retention = life }), func(ctx context.Context) (idem.Response, error) {
					j := idem.NewJob("remind", 1)
					if tt.in != 0 {
						j.At = now.Add(tt.in)
					}
					return stage(ctx, j)
				})
				if tt.err != "" {
					if !errors.Is(err, idem.ErrWrite) || !strings.Contains(err.Error(), tt.err) || len(mem.Writes()) != 0 {
						t.Errorf("%s, %s: got %v and %d writes, want ErrWrite with %q", name, way, err, len(mem.Writes()), tt.err)
					}
					return
				}
				if got, want := lastJob(log), now.Add(tt.want); err != nil || tt.want == 0 != got.At.IsZero() || tt.want != 0 && !got.At.Equal(want) {
					t.Errorf("%s, %s: got %v, its time is %v, want %v", name, way, err, got.At, want)
				}
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

// A phase that runs again stages its job once, for the time that it says then: a client that
// comes back after that time has the job delivered at once.
func TestTimeOfAJobWhosePhaseRunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := idemtest.Watch(new(idem.MemoryStore))
		e, ordered := idem.New(log, func(o *idem.Options) { o.Retention = 48 * time.Hour }), time.Now()
		for _, fails := range []error{errors.New("crash"), nil} {
			if _, err := do(t, e, answering(func(ctx context.Context) error {
				at, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (time.Time, error) { return ordered.UTC(), nil })
				if err != nil || fails != nil {
					return errors.Join(err, fails)
				}
				j := idem.NewJob("remind", 1)
				j.At = at.Add(time.Hour)
				return idem.Stage(ctx, j)
			})); !errors.Is(err, fails) {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour) //nolint:forbidigo // virtual
		}
		if got := lastJob(log); got.Kind != "remind" || !got.At.IsZero() {
			t.Errorf("got %+v, want a job without a time", got)
		}
	})
}

// A phase whose function ignores that a job or a phase was refused within it doesn't commit: the
// next attempt would skip the function, and answer without them.
func TestPhaseThatIgnoresARefusalDoesNotCommit(t *testing.T) {
	t.Parallel()
	for what, refused := range map[string]func(context.Context) error{
		"a job":   func(ctx context.Context) error { return idem.Stage(ctx, receipt) },
		"a phase": func(ctx context.Context) error { return recordPhase(ctx, "ledger") },
	} {
		ignores := func(ctx context.Context, _ *idem.Tx) (int, error) {
			_ = refused(ctx)
			return 1, nil
		}
		for name, tt := range map[string]struct {
			phase func(context.Context) error
			again error // of the next attempt
		}{
			"an Atomic": {func(ctx context.Context) error { _, err := idem.Atomic(ctx, "one", ignores); return err }, idem.ErrPhaseOrder},
			"a Finish": {func(ctx context.Context) error {
				_, err := idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					_, err := ignores(ctx, tx)
					return idem.Response{Status: 201}, err
				})
				return err
			}, idem.ErrPhaseOrder},
			"a call": {func(ctx context.Context) error { _, err := idem.Foreign(ctx, "one", ignores); return err }, idem.ErrPhaseOrder},
			"a call that is not repeated": {func(ctx context.Context) error {
				_, err := idem.Foreign(ctx, "one", ignores, idem.NotIdempotent())
				return err
			}, idem.ErrStuck},
		} {
			a := begun()
			first, err := a.do(t, answering(tt.phase))
			second, again := a.do(t, answering(tt.phase))
			if err == nil || !errors.Is(again, tt.again) {
				t.Errorf("%s in %s: got %d, %v, and then %d, %v; want errors, the second %v", what, name, first.Status, err, second.Status, again, tt.again)
			}
		}
	}
}

// A Foreign whose Tx refuses something makes no call after that: the refusal ends its context,
// and is the phase's error, whatever the call has made of that.
func TestForeignIsRefusedBeforeItsCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused func(*idem.Tx)
		want    error
	}{
		"a job before it":       {nil, idem.ErrWrite},
		"a job":                 {func(tx *idem.Tx) { tx.Stage(receipt) }, idem.ErrWrite},
		"a write":               {func(tx *idem.Tx) { tx.Write(note("w")) }, idem.ErrWrite},
		"no write":              {func(tx *idem.Tx) { tx.Write(nil) }, idem.ErrWrite},
		"a key that is not new": {func(tx *idem.Tx) { tx.Key("mail", "twice"); tx.Key("mail", "twice") }, idem.ErrKeyReused},
		"two refusals":          {func(tx *idem.Tx) { tx.Write(nil); tx.Key("a"); tx.Key("a") }, idem.ErrWrite},
	} {
		calls := 0
		_, err := begun().do(t, answering(func(ctx context.Context) error {
			if tt.refused == nil {
				if err := idem.Stage(ctx, receipt); err != nil {
					return err
				}
			}
			_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (int, error) {
				if tt.refused != nil {
					tt.refused(tx)
				}
				if ctx.Err() == nil { // as every client looks that is given a context
					calls++
				}
				return 1, ctx.Err()
			})
			return err
		}))
		if calls != 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v after %d calls, want %v without one", name, err, calls, tt.want)
		}
	}
}
