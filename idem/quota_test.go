package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestQuotaIsToldWhatItNeeds(t *testing.T) {
	t.Parallel()
	g := &gate{}
	unread := &spoilt{Store: &idem.MemoryStore{}, load: func(context.Context, string) (*store.Record, error) {
		t.Error("a new operation within its quota reads the record")
		return nil, errors.New("down")
	}}
	engine := idem.New(unread, callertest.Anybody, g.set, func(o *idem.Options) { o.Retention = 3 * time.Hour })
	for _, r := range []idem.Request{
		{Key: "k1", Identity: idem.Identity{Kind: "jwt", Subject: "a|b"}, Tenant: "t", Route: "POST /rides", Body: []byte("12345")},
		{Key: "k2", Source: "queue", Operation: "charge|s", DeliveryKey: true},
		{Key: "k3"},
	} {
		if _, err := engine.Do(t.Context(), r, answers(201)); err != nil {
			t.Fatal(err)
		}
	}
	want := []idem.QuotaRequest{
		{Caller: "tenant:t|jwt:a|b", Route: "POST /rides", Bytes: 5, Kept: 3 * time.Hour},
		{Caller: "source:queue", Route: "charge|s", Kept: 3 * time.Hour},
		{Caller: "one:", Kept: 3 * time.Hour},
	}
	if diff := cmp.Diff(want, g.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The place is given up once, with what became of it.
func TestQuotaPlaceIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	large := func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Body: make([]byte, 100_000)}, nil
	}
	half := func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (string, error) { return strings.Repeat("x", 10_000), nil }); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{}, errors.New("down")
	}
	parts := func(ctx context.Context) (idem.Response, error) {
		err := idem.Stage(ctx, idem.NewJob("k", strings.Repeat("x", 10_000)))
		return idem.Response{Header: http.Header{"Location": {strings.Repeat("x", 10_000)}}}, err
	}
	down := func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }
	panics := func(context.Context) (idem.Response, error) { panic("at the disco") }
	for name, tc := range map[string]struct {
		before, fn  func(context.Context) (idem.Response, error)
		opt         func(*idem.Options)
		body        int // of the request
		new         bool
		least, most int64
	}{
		"answered":        {fn: answers(201), new: true, least: 300, most: 800},
		"a large answer":  {fn: large, new: true, least: 100_000, most: 101_000},
		"in many parts":   {fn: parts, new: true, least: 20_300, most: 20_700},
		"failed, in part": {fn: half, new: true, least: 10_300, most: 10_900},
		"failed":          {fn: down, new: true, least: 300, most: 800},
		"panicked":        {fn: panics, new: true, least: 300, most: 800},
		"panicked, in part": {fn: func(ctx context.Context) (idem.Response, error) {
			_, _ = half(ctx)
			panic("at the disco")
		}, new: true, least: 10_300, most: 10_900},
		"its request kept": {fn: down, opt: func(o *idem.Options) {
			resumable(o)
			o.Fingerprint.FuncName = "key"
			o.Fingerprint.Func = func(*idem.Request) ([]byte, error) { return nil, nil }
		}, body: 10_000, new: true, least: 10_300, most: 10_900},
		"replayed":       {before: answers(201), fn: answers(201)},
		"observed":       {fn: answers(201), opt: func(o *idem.Options) { o.Mode = idem.ModeObserve }, new: true, least: 300, most: 800},
		"observed again": {before: answers(201), fn: answers(201), opt: func(o *idem.Options) { o.Mode = idem.ModeObserve }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, mem := &gate{}, elsewhereStore()
			r := request
			if tc.body > 0 {
				r.Body = make([]byte, tc.body)
			}
			if tc.before != nil {
				if _, err := idem.New(mem, callertest.Anybody).Do(t.Context(), request, tc.before); err != nil {
					t.Fatal(err)
				}
			}
			opts := []func(*idem.Options){g.set}
			if tc.opt != nil {
				opts = append(opts, tc.opt)
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = idem.New(mem, append([]func(*idem.Options){callertest.Anybody}, opts...)...).Do(t.Context(), r, tc.fn)
			}()
			if len(g.asked) != 1 || len(g.ended) != 1 {
				t.Fatalf("asked %v, ended %v, want one of each", g.asked, g.ended)
			}
			if use := g.ended[0]; use.New != tc.new || use.Bytes < tc.least || use.Bytes > tc.most {
				t.Errorf("got %+v", use)
			}
		})
	}
}

// A claim without an answer takes no place: the retry asks again.
func TestQuotaPlaceOfAFailedClaim(t *testing.T) {
	t.Parallel()
	g := &gate{}
	down := &spoilt{Store: &idem.MemoryStore{}, claim: func(context.Context, store.Claim) (*store.Record, error) {
		return nil, errors.New("throttled")
	}}
	if _, err := idem.New(down, callertest.Anybody, g.set).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrUnavailable) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]idem.QuotaUse{{}}, g.ended); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A quota that can't be read refuses new operations only; and without the table,
// nobody knows whether a key is new.
func TestQuotaCannotBeRead(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	g := &gate{err: errors.New("the table of quotas is down")}
	if _, err := idem.New(mem, callertest.Anybody).Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	other := request
	other.Key = "new"
	for name, opt := range map[string]func(*idem.Options){
		"default": func(*idem.Options) {}, "open": func(o *idem.Options) { o.Mode = idem.ModeOpen },
	} {
		engine := idem.New(mem, callertest.Anybody, g.set, opt)
		if res, err := engine.Do(t.Context(), request, never(t)); err != nil || !res.Replayed {
			t.Errorf("%s: a known key: %+v, %v", name, res, err)
		}
		if _, err := engine.Do(t.Context(), other, never(t)); !errors.Is(err, idem.ErrUnavailable) || !errors.Is(err, g.err) {
			t.Errorf("%s: a new key: %v", name, err)
		}
	}
	down := &spoilt{Store: mem, load: func(context.Context, string) (*store.Record, error) { return nil, errors.New("down") }}
	if _, err := idem.New(down, callertest.Anybody, (&gate{wait: 1}).set).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrUnavailable) || errors.Is(err, idem.ErrQuota) {
		t.Errorf("over the quota, without the table: %v", err)
	}
	if g.ended != nil || len(mem.Records()) != 1 {
		t.Errorf("ended %v, %d records", g.ended, len(mem.Records()))
	}
}

// An operation within an operation needs no place of its own: its caller's would be full.
func TestQuotaOfANestedOperation(t *testing.T) {
	t.Parallel()
	g := &gate{}
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody, g.set)
	inner := request
	inner.Key = "inner"
	_, err := e.Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Do(ctx, inner, answers(201))
		return res.Response, err
	})
	if err != nil || len(g.asked) != 1 {
		t.Errorf("%v, asked %v", err, g.asked)
	}
}

// single is a quota of one new operation.
type single struct {
	mu    sync.Mutex
	asked int
}

func (q *single) Begin(context.Context, idem.QuotaRequest) (func(idem.QuotaUse), time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked++; q.asked > 1 {
		return nil, time.Minute, nil
	}
	return nil, 0, nil
}

// Requests that have waited ask the quota before they claim the key that their holder has
// freed. To take over the operation of a holder that hangs they need no place.
func TestQuotaOfRequestsThatWaited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hangs               bool
		runs, limited, done int64
	}{"the holder gives up": {runs: 1, limited: 9}, "the holder hangs": {hangs: true, runs: 2, done: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Quota, o.InFlight = &single{}, idem.InFlightWait })
				var runs, limited, done atomic.Int64
				var wg sync.WaitGroup
				for i := range 10 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond) //nolint:forbidigo // virtual
						ctx, cancel := context.WithTimeout(asleep.With(t.Context()), time.Duration(5+20*i)*time.Second)
						defer cancel()
						_, err := e.Do(ctx, request, func(context.Context) (idem.Response, error) {
							switch runs.Add(1); {
							case i == 0 && tc.hangs:
								time.Sleep(time.Minute) //nolint:forbidigo // virtual
							case i == 0:
								time.Sleep(time.Second) //nolint:forbidigo // virtual
								return idem.Response{}, errors.New("down")
							}
							return idem.Response{Status: 201}, nil
						})
						switch {
						case err == nil:
							done.Add(1)
						case errors.Is(err, idem.ErrQuota):
							limited.Add(1)
						}
					})
				}
				wg.Wait()
				if got := [3]int64{runs.Load(), limited.Load(), done.Load()}; got != [3]int64{tc.runs, tc.limited, tc.done} {
					t.Errorf("ran, limited, done: %v, want %v", got, [3]int64{tc.runs, tc.limited, tc.done})
				}
			})
		})
	}
}

// A completer, a request without a key and other methods need no place.
func TestQuotaIsNotAsked(t *testing.T) {
	t.Parallel()
	g, mem := &gate{wait: time.Minute}, &idem.MemoryStore{}
	now := time.Now()
	set := func(o *idem.Options) {
		o.Key, o.Resumable, o.Function, o.Now = idem.KeyOptional, true, "f", func() time.Time { return now }
	}
	_, _ = idem.New(mem, callertest.Anybody, set).Do(t.Context(), request, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") })
	var rec *store.Record
	for _, rec = range mem.Records() {
	}
	engine := idem.New(mem, callertest.Anybody, set, g.set)
	if _, err := engine.Resume(t.Context(), state.TicketFor(rec), func(ctx context.Context, _ *idem.Request) (idem.Response, error) {
		return answers(201)(ctx)
	}); err != nil {
		t.Errorf("a completer: %v", err)
	}
	for _, method := range []string{"POST", "GET"} {
		if res, err := engine.Serve(t.Context(), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Method: method}, answers(201)); err != nil || res.Status != 201 {
			t.Errorf("%s without a key: %+v, %v", method, res, err)
		}
	}
	if g.asked != nil {
		t.Errorf("asked %v", g.asked)
	}
}

// In observe mode the limits can be tried out.
func TestQuotaIsObserved(t *testing.T) {
	t.Parallel()
	var told []error
	mem := &idem.MemoryStore{}
	engine := idem.New(mem, callertest.Anybody, (&gate{wait: time.Second}).set, func(o *idem.Options) {
		o.Mode = idem.ModeObserve
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
	})
	if res, err := engine.Do(t.Context(), request, answers(201)); err != nil || res.Status != 201 {
		t.Errorf("got %+v, %v", res, err)
	}
	if len(told) != 1 || !errors.Is(told[0], idem.ErrQuota) || len(mem.Records()) != 0 {
		t.Errorf("told %v; %d records", told, len(mem.Records()))
	}
}
