package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// trace is a source that notes the time of each call.
type trace struct {
	Source
	local   bool
	began   time.Time
	follow  func(ctx context.Context, started func(), changed func([]string)) error
	waiting func() ([]Row, error)
	browse  func(ctx context.Context, see func([]Row, Progress)) error
	row     func(pk string) (Row, bool, error)

	mu    sync.Mutex
	calls []string
}

func (s *trace) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprint(time.Since(s.began), " ", call))
}

func (s *trace) About() About { return About{Local: s.local} }

func (s *trace) Follow(ctx context.Context, started func(), changed func([]string)) error {
	s.note("follow")
	return s.follow(ctx, started, changed)
}

func (s *trace) Waiting(_ context.Context, most int) ([]Row, error) {
	s.note(fmt.Sprint("waiting ", most))
	return s.waiting()
}

func (s *trace) Browse(ctx context.Context, see func([]Row, Progress)) error {
	s.note("browse")
	return s.browse(ctx, see)
}

func (s *trace) Row(_ context.Context, pk string) (Row, bool, error) {
	s.note("row " + pk)
	return s.row(pk)
}

// The loader reads a local table at once, and repeatedly if the table has no stream
// and a page is connected. Of other tables it reads only the waiting operations.
func TestLoads(t *testing.T) {
	t.Parallel()
	none := func(context.Context, func(), func([]string)) error { return ErrNoStream }
	stream := func(ctx context.Context, started func(), changed func([]string)) error {
		started()
		<-time.After(time.Second)
		changed([]string{"a", "b", "broken"})
		<-ctx.Done()
		return ctx.Err()
	}
	breaks := func(context.Context, func(), func([]string)) error { return errors.New("no right to follow") }
	noQuery := func() ([]Row, error) { return nil, ErrNoQuery }
	row := func(pk string) (Row, bool, error) {
		if pk == "broken" {
			return Row{}, true, errors.New("throttled")
		}
		return Row{PK: pk + "!"}, pk == "a", nil
	}
	waits := func() ([]Row, error) { return []Row{{PK: "w"}}, nil }
	asked := false
	once := func() ([]Row, error) {
		if asked {
			return nil, nil
		}
		asked = true
		return []Row{{PK: "w", Reasons: []string{"stuck"}}}, nil
	}
	whole := func(_ context.Context, see func([]Row, Progress)) error {
		see([]Row{{PK: "b"}}, Progress{Scanned: 1, Units: 2})
		<-time.After(time.Second)
		see([]Row{{PK: "c"}}, Progress{Scanned: 2, Units: 3})
		return nil
	}
	for name, tt := range map[string]struct {
		src    *trace
		unseen bool // no page is connected
		watch  time.Duration
		calls  []string
		rows   string
		state  scanState
	}{
		"local": {
			src: &trace{local: true, follow: none, waiting: noQuery, browse: whole}, watch: 15 * time.Second, calls: []string{"0s follow", "0s waiting 10", "0s browse", "2s browse", "13s browse"},
			rows: "b c", state: scanState{Complete: true, Live: true, Ended: 14_000, Progress: Progress{2, 3}},
		},
		"local, with a stream": {
			src: &trace{local: true, follow: stream, waiting: noQuery, browse: whole, row: row}, watch: 15 * time.Second,
			calls: []string{"0s follow", "0s waiting 10", "0s browse", "1s row a", "1s row b", "1s row broken"},
			rows:  "a! c", state: scanState{Complete: true, Live: true, Ended: 1000, Progress: Progress{2, 3}},
		},
		"far away": {
			src: &trace{follow: none, waiting: waits}, watch: 46 * time.Second, calls: []string{"0s follow", "0s waiting 10", "15s waiting 10", "30s waiting 10", "45s waiting 10"},
			rows: "w", state: scanState{Query: true},
		},
		"settled elsewhere": {
			src: &trace{follow: none, waiting: once, row: row}, watch: 16 * time.Second, calls: []string{"0s follow", "0s waiting 10", "15s waiting 10", "15s row w"},
			state: scanState{Query: true},
		},
		"far away, nobody looks": {src: &trace{follow: none, waiting: waits}, watch: time.Minute, unseen: true, calls: []string{"0s follow", "0s waiting 10"}, rows: "w", state: scanState{Query: true}},
		"far away, with a stream": {
			src: &trace{follow: stream, waiting: waits, row: row}, watch: time.Minute, calls: []string{"0s follow", "0s waiting 10", "1s row a", "1s row b", "1s row broken"}, rows: "a! w",
			state: scanState{Query: true, Live: true},
		},
		"no right": {src: &trace{follow: breaks, waiting: noQuery}, watch: time.Second, calls: []string{"0s follow", "0s waiting 10"}, state: scanState{Error: "no right to follow"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				src := tt.src
				src.began = time.Now()
				l := &loader{src: src, view: newView(10), hub: &hub{}}
				if !tt.unseen {
					l.hub.join()
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); l.run(ctx) }()
				<-time.After(tt.watch - time.Millisecond)
				got := l.state()
				if got.Ended > 0 {
					got.Ended -= src.began.UnixMilli()
				}
				if diff := cmp.Diff(tt.state, got); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
				cancel()
				<-ended
				if after := l.state(); after.Error != tt.state.Error {
					t.Errorf("its end is an error: %+v", after)
				}
				if diff := cmp.Diff(tt.calls, src.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				rows, _, _ := l.view.snapshot()
				var names []string
				for _, r := range rows {
					names = append(names, r.PK)
				}
				if strings.Join(names, " ") != tt.rows {
					t.Errorf("rows %q, want %s", names, tt.rows)
				}
			})
		})
	}
}

// A page gets the keys of written records, up to a maximum, in one event
// for each burst, and a sign of life from the server.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{hub: &hub{}, loader: &loader{}}
		heard := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			s.events(heard, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events", http.NoBody))
		}()
		hears := func(d time.Duration, want string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if got := heard.Body.String(); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
			heard.Body.Reset()
		}
		change := func(more string) string {
			return `event: change` + "\n" + `data: {"scan":{"running":false,"complete":false,"live":false,"query":false,"scanned":0,"units":0}` + more + "}\n\n"
		}
		many := make([]string, 201)
		for n := range many {
			many[n] = fmt.Sprint(n)
		}
		hears(0, change(""))
		s.hub.tell("b", "a")
		s.hub.tell("a")
		hears(249*time.Millisecond, "")
		hears(time.Millisecond, change(`,"pks":["a","b"]`))
		<-time.After(time.Second)
		s.hub.tell(many...)
		hears(time.Second, change(`,"many":true`))
		s.hub.tell("a")
		hears(time.Second, change(`,"pks":["a"]`))
		hears(15*time.Second, ": still here\n\n")
		cancel()
		<-left
		if s.hub.watched() {
			t.Error("the page has left, and is told on")
		}
	})
}
