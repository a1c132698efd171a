package eventsource_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// A pause holds back what was read before: neither a window that ends nor a retry that is due breaks it.
func TestPauseKeepsTheStreamsPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		opt           eventsource.Stream
		answer        answer
		paused, later string
	}{
		"idle":            {paused: "1", later: "1|2 3"},
		"in the window":   {opt: eventsource.Stream{MaximumBatchingWindow: 10 * time.Second}, later: "1 2 3"},
		"between retries": {opt: eventsource.Stream{MaximumRetryAttempts: new(1)}, answer: failing("1"), paused: "1", later: "1|1|2 3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, f := newFakeStream("a"), &function{answer: tt.answer}
			m := startStream(t, api, f, tt.opt)
			synctest.Wait() // the first read finds nothing
			api.put("a", "1")
			after(110 * time.Millisecond)
			m.Pause()
			m.Pause()
			api.put("a", "2", "3")
			after(time.Minute)
			if got := joined(f.got()); got != tt.paused || !m.Paused() {
				t.Errorf("%s: got %s while it pauses (%t), want %s", name, got, m.Paused(), tt.paused)
			}
			m.Resume()
			after(11 * time.Second)
			if got := joined(f.got()); got != tt.later || m.Paused() {
				t.Errorf("%s: got %s later, want %s", name, got, tt.later)
			}
		})
	}
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
		m := startStream(t, api, f, eventsource.Stream{BatchSize: 1})
		api.put("a", "1", "2")
		after(time.Second)
		m.Pause()
		close(release)
		after(time.Minute)
		wantGot(t, f, "1")
		m.Resume()
		synctest.Wait()
		wantGot(t, f, "1|2")
	})
}

// Whatever it is doing, a source ends at once: in no time of the bubble's. It tells of nothing then.
func TestTheSourceEndsWithItsContext(t *testing.T) {
	hangs := func(ctx context.Context, _ int, _ []string) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tt := range map[string]struct {
		answer answer
		window time.Duration
		paused bool
	}{
		"in an invocation": {answer: hangs}, "between retries": {answer: failing("1")}, "throttled": {answer: refusing(99, lambdarun.ErrThrottled, nil)},
		"in the window": {window: time.Minute}, "paused": {paused: true},
	} {
		for source, start := range map[string]func(context.Context, *function, eventsource.Hooks) (*eventsource.Mapping, error){
			"stream": func(ctx context.Context, f *function, hooks eventsource.Hooks) (*eventsource.Mapping, error) {
				api := newFakeStream("a")
				api.put("a", "1")
				return eventsource.Stream{Function: f, API: api, ARN: streamARN, MaximumBatchingWindow: tt.window, Hooks: hooks}.Start(ctx)
			},
			"queue": func(ctx context.Context, f *function, hooks eventsource.Hooks) (*eventsource.Mapping, error) {
				api := newFakeQueue()
				api.send("1")
				return eventsource.Queue{Function: f, API: api, URL: queueURL, ARN: queueARN, MaximumBatchingWindow: tt.window, Hooks: hooks}.Start(ctx)
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				hooks := eventsource.Hooks{Error: func(err error) { t.Errorf("told %v", err) }, Invoked: func(i eventsource.Invocation) {
					if ctx.Err() != nil {
						t.Errorf("told %+v", i)
					}
				}}
				m, err := start(ctx, &function{answer: tt.answer}, hooks)
				if err != nil {
					t.Fatal(err)
				}
				if tt.paused {
					m.Pause()
				}
				after(10 * time.Second)
				begin := time.Now()
				cancel()
				if err := errors.Join(m.Close(), m.Close()); err != nil || time.Since(begin) != 0 {
					t.Errorf("%s %s: %v after %s, want no time", source, name, err, time.Since(begin))
				}
			})
		}
	}
}
