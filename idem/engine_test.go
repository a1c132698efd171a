package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

var request = idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/", Body: []byte("{}")}

func answers(status int) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		return idem.Response{Status: status, Body: []byte("x")}, nil
	}
}

func never(t *testing.T) func(context.Context) (idem.Response, error) {
	t.Helper()
	return func(context.Context) (idem.Response, error) {
		t.Error("handler ran")
		return idem.Response{}, nil
	}
}

// spoilt is a store with some methods replaced by a test.
type spoilt struct {
	store.Store
	claim  func(context.Context, store.Claim) (*store.Record, error)
	commit func(context.Context, store.Commit) (*store.Record, error)
	load   func(context.Context, string) (*store.Record, error)
}

func (s *spoilt) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if s.claim != nil {
		return s.claim(ctx, c)
	}
	return s.Store.Claim(ctx, c)
}

func (s *spoilt) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if s.commit != nil {
		return s.commit(ctx, c)
	}
	return s.Store.Commit(ctx, c)
}

func (s *spoilt) Load(ctx context.Context, pk string) (*store.Record, error) {
	if s.load != nil {
		return s.load(ctx, pk)
	}
	return s.Store.Load(ctx, pk)
}

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

// The effect has happened, so an outage of some seconds must not lose the answer.
func TestFinishOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := &idem.MemoryStore{}
		var back time.Time
		st := &spoilt{Store: memory}
		st.commit = func(ctx context.Context, c store.Commit) (*store.Record, error) {
			if time.Now().Before(back) {
				return nil, store.ErrUnknown
			}
			return memory.Commit(ctx, c)
		}
		st.load = func(ctx context.Context, pk string) (*store.Record, error) {
			if time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			return memory.Load(ctx, pk)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 28*time.Second)
		defer cancel()
		engine := idem.New(st, callertest.Anybody)
		_, err := engine.Do(ctx, request, func(context.Context) (idem.Response, error) {
			back = time.Now().Add(5 * time.Second)
			return answers(201)(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		if res, err := engine.Do(ctx, request, never(t)); err != nil || !res.Replayed {
			t.Errorf("a retry got %+v, %v", res, err)
		}
	})
}

// A claim uses up the time, or the sandbox freezes after the claim: the handler
// doesn't begin.
func TestNoTimeLeftAfterTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := &idem.MemoryStore{}
		st := &spoilt{Store: memory, claim: func(ctx context.Context, c store.Claim) (*store.Record, error) {
			held, err := memory.Claim(ctx, c)
			<-time.After(1900 * time.Millisecond)
			return held, err
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var told []string
		listens := func(o *idem.Options) { o.Hooks = listening(&told, new([]idem.Summary)) }
		if _, err := idem.New(st, callertest.Anybody, listens).Do(ctx, request, never(t)); !errors.Is(err, idem.ErrNoTime) {
			t.Errorf("got %v, want no time left", err)
		}
		if want := []string{"Released", "Refused", "Ended"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if res, err := idem.New(memory, callertest.Anybody).Do(t.Context(), request, answers(201)); err != nil || res.Replayed {
			t.Errorf("the key isn't free: %+v, %v", res, err)
		}
	})
}

type declined struct{}

func (declined) Error() string { return "declined" }

func TestHandlersErrorKeepsItsType(t *testing.T) {
	t.Parallel()
	_, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		return idem.Response{}, declined{}
	})
	if err != error(declined{}) { //nolint:errorlint // exactly this value: runtimes report its type
		t.Errorf("got %T", err)
	}
}

// Once the store has shown a record, ModeOpen must not run its request.
func TestModeOpenNotOverAKnownRecord(t *testing.T) {
	t.Parallel()
	memory := &idem.MemoryStore{}
	_, _ = idem.New(&spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) {
		return nil, errors.New("dead")
	}}, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("dead") })
	down := &spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) {
		return nil, errors.New("throttled")
	}}
	later := idem.New(down, callertest.Anybody, func(o *idem.Options) {
		o.Mode = idem.ModeOpen
		o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	})
	if _, err := later.Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

// The same, however the store has shown the record and whatever has happened to
// the record since.
func TestModeOpenNotOverARecordThatWasSeen(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	hour := func(o *idem.Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } }
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		held store.State // the state that the other attempt leaves
	}{
		"abandoned, by a look before the claim":    {hour, store.Open},
		"gone while it was waited for":             {func(o *idem.Options) { o.InFlight, o.WaitMax = idem.InFlightWait, 2*time.Second }, store.None},
		"given back while it was being taken over": {hour, store.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := &idem.MemoryStore{}
			var held *store.Record
			holder := &spoilt{Store: memory, commit: func(context.Context, store.Commit) (*store.Record, error) { return nil, errors.New("dead") }}
			_, _ = idem.New(holder, callertest.Anybody).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("dead") })
			for _, held = range memory.Records() {
			}
			claims := 0
			broken := &spoilt{
				Store: memory,
				claim: func(ctx context.Context, c store.Claim) (*store.Record, error) {
					if claims++; tt.held == store.Open || claims > 1 {
						return nil, down
					}
					return held, nil
				},
				commit: func(context.Context, store.Commit) (*store.Record, error) { return &store.Record{}, nil }, // gone
				load: func(ctx context.Context, pk string) (*store.Record, error) {
					if tt.held == store.Open && claims == 0 {
						return memory.Load(ctx, pk)
					}
					if claims > 1 || claims == 1 && tt.held == store.Open {
						return nil, down
					}
					return nil, nil
				},
			}
			engine := idem.New(broken, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen; tt.opt(o) })
			r := request
			r.ReadFirst = tt.held == store.Open
			if _, err := engine.Do(t.Context(), r, never(t)); !errors.Is(err, idem.ErrUnavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
		})
	}
}

// Nor may it run over a record that is there but can't be read: it is corrupt, or its
// contents are sealed and their key can't be had.
func TestModeOpenNotOverAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ claim, load, want error }{
		"corrupt, after a claim without an answer": {store.ErrUnknown, store.ErrCorrupt, idem.ErrCorrupt},
		"sealed, after a refused claim":            {errors.Join(store.ErrUnknown, store.ErrSealed), store.ErrSealed, idem.ErrUnavailable},
		"sealed, and then the store is down":       {errors.Join(store.ErrUnknown, store.ErrSealed), errors.New("throttled"), idem.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := idem.New(&spoilt{
				Store: &idem.MemoryStore{},
				claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, tt.claim },
				load:  func(context.Context, string) (*store.Record, error) { return nil, tt.load },
			}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen })
			if _, err := engine.Do(t.Context(), request, never(t)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Nor over one that a look before the claim has found and could not open.
func TestModeOpenNotOverARecordThatALookCannotOpen(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	for name, tt := range map[string]struct {
		rec  *store.Record
		err  error
		runs bool
	}{
		"corrupt":               {nil, store.ErrCorrupt, false},
		"sealed":                {&store.Record{}, store.ErrSealed, false},
		"the look itself fails": {nil, down, true},
	} {
		looks, runs := 0, 0
		engine := idem.New(&spoilt{
			Store: &idem.MemoryStore{},
			claim: func(context.Context, store.Claim) (*store.Record, error) { return nil, down },
			load: func(context.Context, string) (*store.Record, error) {
				if looks++; looks == 1 {
					return tt.rec, tt.err
				}
				return nil, down
			},
		}, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOpen })
		_, err := engine.Do(t.Context(), repeated(request), func(ctx context.Context) (idem.Response, error) { runs++; return answers(201)(ctx) })
		if (runs == 1) != tt.runs || !tt.runs && !errors.Is(err, idem.ErrUnavailable) {
			t.Errorf("%s: %d runs, %v", name, runs, err)
		}
	}
}

// A handler's context that is used after the handler has returned is not a nested
// call.
func TestContextThatOutlivesItsHandler(t *testing.T) {
	t.Parallel()
	engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	var kept context.Context
	_, err := engine.Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
		kept = context.WithoutCancel(ctx)
		return answers(201)(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := engine.Do(kept, request, never(t)); err != nil || !res.Replayed {
		t.Errorf("got %+v, %v; want a replay", res, err)
	}
}

// Inside of an operation the same request passes, and another request under the key is
// refused: it would run unprotected at every attempt.
func TestOperationInsideItself(t *testing.T) {
	t.Parallel()
	other, between := request, request
	other.Body, between.Key = []byte("another"), "between"
	observe := func(o *idem.Options) { callertest.Anybody(o); o.Mode = idem.ModeObserve }
	for name, tc := range map[string]struct {
		inner   idem.Request
		between bool // another operation is in between
		opt     func(*idem.Options)
		want    error
		runs    int
	}{
		"the same":              {request, false, callertest.Anybody, nil, 1},
		"another":               {other, false, callertest.Anybody, idem.ErrMismatch, 0},
		"another, deeper":       {other, true, callertest.Anybody, idem.ErrMismatch, 0},
		"another, and observed": {other, false, observe, nil, 1},
	} {
		e, runs := idem.New(&idem.MemoryStore{}, callertest.Anybody, tc.opt), 0
		var got error
		do := func(ctx context.Context) (idem.Response, error) {
			_, got = e.Do(ctx, tc.inner, func(context.Context) (idem.Response, error) { runs++; return idem.Response{}, nil })
			return idem.Response{Status: 201}, nil
		}
		if _, err := e.Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			if !tc.between {
				return do(ctx)
			}
			res, err := e.Do(ctx, between, do)
			return res.Response, err
		}); err != nil || !errors.Is(got, tc.want) || runs != tc.runs {
			t.Errorf("%s: %v; inside %v and %d runs, want %v and %d", name, err, got, runs, tc.want, tc.runs)
		}
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

func TestEchoIsTheKeyAlone(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"\tabc":  "abc",
		`"abc"`:  `"abc"`,
		`"a\"b"`: `"a\"b"`,
		`"abc";a="` + strings.Repeat("x", 900) + `"`: `"abc"`,
	} {
		r := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: "POST", Header: http.Header{idem.KeyHeader: {sent}}}
		res, err := idem.New(&idem.MemoryStore{}, callertest.Anybody).Serve(t.Context(), r, answers(201))
		if got := res.Header.Get(idem.KeyHeader); err != nil || got != want {
			t.Errorf("%.20s: echoed %.30s, %v; want %s", sent, got, err, want)
		}
	}
}

// A body that another middleware has read looks like no body: two different
// requests would count as the same.
func TestMiddlewareRefusesABodyAlreadyRead(t *testing.T) {
	t.Parallel()
	h := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.FormValue("amount"))
	}))
	for _, amount := range []string{"10", "1000"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/charge", strings.NewReader(url.Values{"amount": {amount}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(idem.KeyHeader, "k")
		_ = r.FormValue("csrf")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 400 {
			t.Errorf("amount %s got %d %s, want 400", amount, w.Code, w.Body)
		}
	}
}

// Whoever calls without a deadline hears of it once, and not with each request.
func TestNoDeadlineIsToldOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, logsTo(&log))
	for _, key := range []string{"one", "two"} {
		r := request
		r.Key = key
		if _, err := e.Do(context.WithoutCancel(t.Context()), r, answers(201)); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "no deadline"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
}

func logsTo(w io.Writer) func(*idem.Options) {
	return func(o *idem.Options) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}
