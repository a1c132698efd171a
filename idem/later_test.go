package idem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
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
