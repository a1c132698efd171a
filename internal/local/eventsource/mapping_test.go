package eventsource_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/eventsource"
)

func TestPauseKeepsTheStreamsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, f := newFakeStream("a"), &function{}
		m := startStream(t, api, f, nil)
		api.put("a", "1")
		after(time.Second)
		m.Pause()
		m.Pause()
		if !m.Paused() {
			t.Error("not paused")
		}
		api.put("a", "2", "3")
		after(time.Minute)
		wantBatches(t, f, []string{"1"})
		m.Resume()
		if m.Paused() {
			t.Error("still paused")
		}
		after(time.Second)
		wantBatches(t, f, []string{"1"}, []string{"2", "3"})
	})
}

// Neither a window that ends nor a retry that is due breaks a pause.
func TestPauseHoldsBackWhatWasReadBefore(t *testing.T) {
	t.Run("in the window", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{}
			m := startStream(t, api, f, func(s *eventsource.Stream) { s.MaximumBatchingWindow = 10 * time.Second })
			api.put("a", "1")
			after(time.Second)
			m.Pause()
			after(time.Minute)
			wantBatches(t, f)
			m.Resume()
			synctest.Wait()
			wantBatches(t, f, []string{"1"})
		})
	})
	t.Run("between retries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api, out := newFakeStream("a"), &failures{}
			f := &function{answer: failing("1")}
			m := startStream(t, api, f, func(s *eventsource.Stream) {
				s.MaximumRetryAttempts = new(1)
				s.OnFailure = out.take
			})
			synctest.Wait() // the first read finds nothing
			api.put("a", "1")
			after(110 * time.Millisecond)
			m.Pause()
			after(time.Minute)
			wantBatches(t, f, []string{"1"})
			m.Resume()
			synctest.Wait()
			wantBatches(t, f, []string{"1"}, []string{"1"})
			if got := out.names(); !cmp.Equal(got, [][]string{{"1"}}) {
				t.Errorf("destination %v", got)
			}
		})
	})
}

func TestPauseLetsTheInvocationUnderWayCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, release := newFakeStream("a"), make(chan struct{})
		f := &function{answer: func(_ context.Context, n int, _ []string) ([]byte, error) {
			if n == 1 {
				<-release
			}
			return nil, nil
		}}
		m := startStream(t, api, f, func(s *eventsource.Stream) { s.BatchSize = 1 })
		api.put("a", "1", "2")
		after(time.Second)
		m.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Idle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Idle while the function runs: %v, want its deadline", err)
		}
		idle := make(chan error, 1)
		go func() { idle <- m.Idle(t.Context()) }()
		synctest.Wait()
		close(release)
		if err := <-idle; err != nil {
			t.Errorf("Idle: %v", err)
		}
		after(time.Minute)
		wantBatches(t, f, []string{"1"})
		if err := m.Idle(t.Context()); err != nil {
			t.Errorf("Idle of an idle source: %v", err)
		}
		m.Resume()
		synctest.Wait()
		wantBatches(t, f, []string{"1"}, []string{"2"})
	})
}

// Whatever it is doing, a source ends at once: in no time of the bubble's.
func TestTheSourceEndsWithItsContext(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(context.Context, int, []string) ([]byte, error)
		change func(*eventsource.Stream)
		paused bool
	}{
		"idle": {},
		"in an invocation": {answer: func(ctx context.Context, _ int, _ []string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"between retries": {answer: failing("1")},
		"in the window":   {change: func(s *eventsource.Stream) { s.MaximumBatchingWindow = time.Minute }},
		"paused":          {paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				api, f := newFakeStream("a"), &function{answer: tt.answer}
				out := &failures{}
				s := eventsource.Stream{Function: f, API: api, ARN: streamARN, OnFailure: out.take}
				s.Hooks.Error = func(err error) { t.Errorf("told %v", err) }
				s.Hooks.Invoked = func(i eventsource.Invocation) {
					if ctx.Err() != nil {
						t.Errorf("told %+v", i)
					}
				}
				if tt.change != nil {
					tt.change(&s)
				}
				m, err := s.Start(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if tt.paused {
					m.Pause()
				}
				api.put("a", "1")
				after(10 * time.Second)
				begin := time.Now()
				cancel()
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took != 0 || len(out.got()) != 0 {
					t.Errorf("took %s, %d given up", took, len(out.got()))
				}
			})
		})
	}
}
