package idem_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Thousands of engines fail here, as intended.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

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

type declined struct{}

func (declined) Error() string { return "declined" }

func logsTo(w io.Writer) func(*idem.Options) {
	return func(o *idem.Options) { o.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}

// note is a user's write; the tests' stores remember notes.
type note string

func (n note) Err() error { return nil }

func (n note) String() string { return string(n) }

type brokenWrite struct{}

func (brokenWrite) Err() error { return errors.New("no key") }

func (brokenWrite) String() string { return "broken" }

type ride struct {
	ID string `json:"id"`
}

// outside counts a handler's effects outside of its record.
type outside struct {
	mu    sync.Mutex
	runs  map[string]int // runs of the phases' functions
	calls []string       // derived keys that reached the provider
}

func (w *outside) ran(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[string]int)
	}
	w.runs[name]++
	return w.runs[name]
}

func (w *outside) charge(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, key)
}

func (w *outside) charged() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[string]int)
	for _, k := range w.calls {
		m[k]++
	}
	return m
}

// rides is the handler of Rocket Rides: three phases.
func (w *outside) rides(pay func(key string) error, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		r, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (ride, error) {
			n := w.ran("ride_created")
			tx.Write(note("ride"), note("audit"))
			return ride{ID: fmt.Sprint("r", n)}, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		charge, err := idem.Foreign(ctx, "charge_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			key := tx.Key("payments")
			w.charge(key)
			if pay != nil {
				if err := pay(key); err != nil {
					return "", err
				}
			}
			return "ch_1", nil
		}, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			w.ran("finish")
			tx.Write(note("charged " + r.ID))
			tx.Stage(idem.NewJob("receipt", r))
			return idem.Response{Status: 201, Body: []byte(r.ID + " " + charge)}, nil
		})
	}
}

// ample is the time of a request that must not run out of time on a slow machine.
const ample = 2 * time.Minute

func do(t *testing.T, e *idem.Engine, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	return e.Do(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}, fn)
}

func written(s *idem.MemoryStore) []string {
	var out []string
	for _, w := range s.Writes() {
		out = append(out, w.String())
	}
	return out
}

func finish(ctx context.Context) error {
	_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, nil })
	return err
}

func answering(fn func(context.Context) error) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if err := fn(ctx); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{Status: 200}, nil
	}
}

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

func keyed(key string) idem.Request {
	return idem.Request{
		Method: "POST", Path: "/orders", Route: "POST /orders", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Body: []byte("{}"),
		Header: http.Header{"Idempotency-Key": {key}},
	}
}

func slow(d time.Duration, runs *atomic.Int64) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		runs.Add(1)
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return idem.Response{}, ctx.Err()
		}
		return idem.Response{Status: 201, Body: []byte("made")}, nil
	}
}

type downStore struct{}

var errDown = errors.New("table is gone")

func (downStore) Claim(context.Context, store.Claim) (*store.Record, error) { return nil, errDown }

func (downStore) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errDown }

func (downStore) Load(context.Context, string) (*store.Record, error) { return nil, errDown }

func onlyRecord(t *testing.T, m *idem.MemoryStore) *store.Record {
	t.Helper()
	all := m.Records()
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	for _, r := range all {
		return r
	}
	return nil
}

// operation is an operation whose attempt died in its handler, with a store and a
// clock for what follows.
type operation struct {
	mem    idem.MemoryStore
	clock  *idemtest.Clock
	opts   []func(*idem.Options)
	engine *idem.Engine
}

func (a *operation) record(t *testing.T) *store.Record {
	t.Helper()
	for _, r := range a.mem.Records() {
		return r
	}
	t.Fatal("no record")
	return nil
}

func (a *operation) leaseOver() { a.clock.Advance(time.Hour) }

func (a *operation) resume(t *testing.T, e *idem.Engine, ticket jobs.Ticket, fn func(context.Context, *idem.Request) (idem.Response, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	_, err := e.Resume(ctx, ticket, fn)
	return err
}

func completes(ctx context.Context, _ *idem.Request) (idem.Response, error) {
	_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("again")); return 1, nil })
	return idem.Response{Status: 201}, err
}

// stops are events that can stop an attempt before its first commit, and whether
// they free the key.
var stops = map[string]struct {
	fn    func(context.Context) (idem.Response, error)
	freed bool
}{
	"an error": {func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("bad deploy") }, false},
	"a panic":  {func(context.Context) (idem.Response, error) { panic("bad deploy") }, false},
	"a 503": {func(context.Context) (idem.Response, error) {
		return idem.Response{Status: http.StatusServiceUnavailable}, nil
	}, false},
	"a phase that fails": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("bad deploy") })
		return idem.Response{}, err
	}, false},
	"a 409 after a phase that failed": {func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("bad deploy") })
		return idem.Response{Status: http.StatusConflict}, nil
	}, false},
	"a refusal, 409": {func(context.Context) (idem.Response, error) { return idem.Response{Status: http.StatusConflict}, nil }, true},
	"a refusal, 429": {func(context.Context) (idem.Response, error) {
		return idem.Response{Status: http.StatusTooManyRequests}, nil
	}, true},
}

// survived calls fn and recovers a panic that fn passes on.
func survived(fn func()) {
	defer func() { _ = recover() }()
	fn()
}

// down is a plan for a table that is unreachable for a while: each call hangs
// until its context ends, or is refused at once.
func down(until time.Time, hangs bool, verbs ...string) idemtest.Plan {
	return func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		struck := len(verbs) == 0
		for _, v := range verbs {
			struck = struck || v == c.Verb
		}
		if !struck || !time.Now().Before(until) {
			return idemtest.Fault{}
		}
		if hangs {
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(until)):
			}
		}
		return idemtest.Fault{Err: store.ErrUnknown}
	}
}

// inTime runs fn under a deadline, like an invocation; 0 means no deadline.
func inTime(t *testing.T, limit time.Duration, e *idem.Engine, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	return requestInTime(t, limit, e, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}}, fn)
}

func requestInTime(t *testing.T, limit time.Duration, e *idem.Engine, r idem.Request, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	t.Helper()
	ctx := t.Context()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return e.Do(ctx, r, fn)
}

func onePhase(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	return idem.Response{Status: 201}, nil
}

func asIs(*idem.Options) {}

// serve sends the request of do over HTTP's contract.
func serve(t *testing.T, e *idem.Engine, fn func(context.Context) (idem.Response, error)) idem.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	res, err := e.Serve(ctx, idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST", Path: "/rides"}, fn)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// reserves commits a phase, and then answers with status.
func reserves(status int) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{Status: status}, nil
	}
}

// swallows hides the failure of a call, and answers with status.
func swallows(status int) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Key("payments")
			return 0, errors.New("timeout")
		})
		return idem.Response{Status: status}, nil
	}
}

func responds(status int) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if _, err := reserves(status)(ctx); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{}, idem.Respond(idem.Response{Status: status})
	}
}

// listening returns hooks that all append their events' names, and a summary's after
// "Ended".
func listening(told *[]string, ended *[]idem.Summary) idem.Hooks {
	var h idem.Hooks
	v := reflect.ValueOf(&h).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if hook, ok := reflect.TypeAssert[*func(context.Context, idem.Event)](v.Field(i).Addr()); ok {
			*hook = func(_ context.Context, ev idem.Event) {
				if *told = append(*told, name); ev.Name != name {
					*told = append(*told, "not "+ev.Name)
				}
			}
		}
	}
	h.Ended = func(_ context.Context, s idem.Summary) {
		*told, *ended = append(*told, "Ended"), append(*ended, s)
	}
	return h
}

func names(s idem.Summary) (list []string) {
	for _, ev := range s.Happened {
		list = append(list, ev.Name)
	}
	return list
}

func finishes(ctx context.Context) (idem.Response, error) {
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
}

// nobodys returns a request whose caller nobody has verified.
func nobodys(key string, presented http.Header) idem.Request {
	return idem.Request{Key: key, Method: http.MethodPost, Path: "/orders", Route: "POST /orders", Body: []byte("1"), Header: presented} // of nobody
}

// known is a caller whom the program knows, and whom its handlers take from the operation.
func known(o *idem.Options) {
	o.Scope = func(context.Context, *idem.Request) (string, error) { return "acct_7", nil }
	o.CallerFromOp = true
}

// ann is a request of a verified caller.
var ann = func() idem.Request {
	r := nobodys("k", nil)
	r.Identity = idem.Identity{Kind: "jwt", Subject: "ann"}
	return r
}()

// annsRecord returns the record of ann's request: as claimed, and as finished.
func annsRecord(t *testing.T, opts ...func(*idem.Options)) (claimed, finished *store.Record) {
	t.Helper()
	var st idem.MemoryStore
	_, err := idem.New(&st, opts...).Do(t.Context(), ann, func(context.Context) (idem.Response, error) {
		claimed = onlyRecord(t, &st).Clone()
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed, onlyRecord(t, &st).Clone()
}

// keepsCount answers 201 with the number of its runs.
func keepsCount(runs *int) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		*runs++
		return idem.Response{Status: 201, Body: fmt.Append(nil, "secret of run ", *runs)}, nil
	}
}

// elsewhereStore keeps large bodies beside their records.
func elsewhereStore() *bodied {
	b := &bodied{bodies: make(map[string][]byte)}
	b.empty()
	return b
}

var large = bytes.Repeat([]byte("large"), 20)

func answersLargely(context.Context) (idem.Response, error) {
	return idem.Response{Status: 201, Body: bytes.Clone(large)}, nil
}

// bodied is a MemoryStore that keeps bodies of more than eight bytes beside their records.
type bodied struct {
	*idem.MemoryStore
	bodies map[string][]byte
	again  int // bodies that were written although they are there
}

func (b *bodied) empty() { b.MemoryStore = new(idem.MemoryStore) }

// change changes a record in place.
func (b *bodied) change(pk string, change func(*store.Record)) {
	if r := b.Records()[pk]; r != nil {
		change(r)
		others := b.Records()
		delete(others, pk)
		b.MemoryStore = new(idem.MemoryStore)
		others[pk] = r
		for _, r := range others {
			_, _ = b.MemoryStore.Claim(context.Background(), store.Claim{Next: r})
		}
	}
}

// meddle writes the record of a call as another attempt does.
func (b *bodied) meddle(c idemtest.Call, change func(*store.Record)) {
	old := b.Records()[c.PK]
	if old == nil {
		if c.Verb != "Claim" {
			return
		}
		next := c.Claim.Next.Clone()
		next.Owner, next.ID = "another", "another's"
		change(next)
		_, _ = b.MemoryStore.Claim(context.Background(), store.Claim{Next: next, Now: time.Now()})
		return
	}
	next := old.Clone()
	next.Owner, next.Ver = "another", old.Ver+1
	change(next)
	_, _ = b.MemoryStore.Commit(context.Background(), store.Commit{Prev: old, Next: next})
}

func (b *bodied) out(body []byte, o *store.Overflow) *store.Overflow {
	if o != nil && o.Count > 0 && body != nil {
		b.bodies[string(o.SHA256[:])] = bytes.Clone(body)
	}
	if o != nil || len(body) <= 8 {
		return o
	}
	o = &store.Overflow{Count: 1, Length: len(body), SHA256: sha256.Sum256(body)}
	if b.bodies[string(o.SHA256[:])] != nil {
		b.again++
	}
	b.bodies[string(o.SHA256[:])] = bytes.Clone(body)
	return o
}

// put moves the bodies of r out, and returns r as it is stored.
func (b *bodied) put(r *store.Record) *store.Record {
	if r.Response != nil {
		r.Overflow = b.out(r.Response.Body, r.Overflow)
	}
	if r.Input != nil {
		in := *r.Input
		in.Overflow = b.out(in.Body, in.Overflow)
		r.Input = &in
	}
	r = r.Clone()
	if r.Overflow != nil && r.Response != nil {
		r.Response.Body = nil
	}
	if r.Input != nil && r.Input.Overflow != nil {
		r.Input.Body = nil
	}
	return r
}

func (b *bodied) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	c.Next = b.put(c.Next)
	return b.MemoryStore.Claim(ctx, c)
}

func (b *bodied) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	c.Next = b.put(c.Next)
	return b.MemoryStore.Commit(ctx, c)
}

func (b *bodied) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	r, err := b.Load(ctx, t.PK)
	if err != nil || r != nil && r.Input != nil && r.Input.Overflow != nil {
		return r, false, err
	}
	return b.MemoryStore.Take(ctx, t)
}

func (b *bodied) LoadBody(_ context.Context, r *store.Record) error {
	load := func(o *store.Overflow, into *[]byte) error {
		body, ok := b.bodies[string(o.SHA256[:])]
		if !ok {
			return idem.ErrNotKept
		}
		*into = bytes.Clone(body)
		return nil
	}
	if r.Overflow != nil && r.Response != nil {
		return load(r.Overflow, &r.Response.Body)
	}
	if r.Input != nil && r.Input.Overflow != nil {
		return load(r.Input.Overflow, &r.Input.Body)
	}
	return nil
}

// gate is a quota that a test opens and closes.
type gate struct {
	wait  time.Duration
	err   error
	asked []idem.QuotaRequest
	ended []idem.QuotaUse
}

func (g *gate) Begin(_ context.Context, r idem.QuotaRequest) (func(idem.QuotaUse), time.Duration, error) {
	g.asked = append(g.asked, r)
	return func(use idem.QuotaUse) { g.ended = append(g.ended, use) }, g.wait, g.err
}

func (g *gate) set(o *idem.Options) { o.Quota = g }

func refuses(t *testing.T) func(context.Context, *idem.Request) (idem.Response, error) {
	t.Helper()
	return func(context.Context, *idem.Request) (idem.Response, error) {
		t.Error("the handler ran")
		return idem.Response{Status: 404}, nil
	}
}

// plain is a store without optional parts.
type plain struct{ store.Store }

func failsWith(err error) func(context.Context, store.Claim) (*store.Record, error) {
	return func(context.Context, store.Claim) (*store.Record, error) { return nil, err }
}

func unread(context.Context, string) (*store.Record, error) { return nil, errors.New("down") }

// ask sends a request through the middleware and returns what a client gets.
func ask(t *testing.T, h http.Handler, method, key, body string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/orders?a=1", strings.NewReader(body))
	if key != "" {
		r.Header.Set("idempotency-key", key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// begun returns an engine with a store and a clock of its own.
func begun(optFns ...func(*idem.Options)) *operation {
	a := &operation{clock: idemtest.NewClock()}
	a.opts = append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) { o.Now = a.clock.Now }}, optFns...)
	a.engine = idem.New(&a.mem, a.opts...)
	return a
}

// accepting is begun with an engine that stores requests with their claims.
func accepting(optFns ...func(*idem.Options)) *operation {
	return begun(append([]func(*idem.Options){resumable}, optFns...)...)
}

func resumable(o *idem.Options) { o.Resumable, o.Function = true, "f" }

func callsOut(o *idem.Options) { o.CallsOut = true }

// do sends the request.
func (a *operation) do(t *testing.T, fn handler) (idem.Result, error) {
	t.Helper()
	return do(t, a.engine, fn)
}

// dies sends the request to a process that dies when fn calls die.
func (a *operation) dies(t *testing.T, fn func(die func()) handler) {
	t.Helper()
	st := idemtest.Faulty(&a.mem, nil)
	if _, err := do(t, idem.New(st, a.opts...), fn(st.Crash)); !st.Crashed() {
		t.Errorf("the process didn't die: %v", err)
	}
}

// completes has a completer take the operation up.
func (a *operation) completes(t *testing.T, fn handler) error {
	t.Helper()
	return a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return fn(ctx) })
}

// abandon lets one attempt die after the phase "one".
func abandon(t *testing.T, optFns ...func(*idem.Options)) *operation {
	t.Helper()
	a := accepting(optFns...)
	a.dies(t, func(die func()) handler {
		return func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil })
			die()
			return idem.Response{}, err
		}
	})
	return a
}

// recordPhase commits a phase of nothing but its name.
func recordPhase(ctx context.Context, name string) error {
	_, err := idem.Atomic(ctx, name, func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note(name)); return 1, nil })
	return err
}

// charging returns a handler that calls a provider under a derived key, and finishes.
func charging(name string, charge func(key string), opts ...idem.PhaseOption) handler {
	return func(ctx context.Context) (idem.Response, error) {
		id, err := idem.Foreign(ctx, name, func(_ context.Context, tx *idem.Tx) (string, error) {
			key := tx.Key("payments")
			charge(key)
			return key, nil
		}, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte(id)}, nil
		})
	}
}

// paying calls a provider; what ends the call.
func paying(ctx context.Context, phase string, what func(tx *idem.Tx) error, opts ...idem.PhaseOption) error {
	_, err := idem.Foreign(ctx, phase, func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Key("payments", phase)
		return 1, what(tx)
	}, opts...)
	return err
}

type handler = func(context.Context) (idem.Response, error)
