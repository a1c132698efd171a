package idem_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/chance"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

var update = flag.Bool("update", false, "write testdata/situations.txt as they are now")

// TestSituations plays programs in which something happens at a call to the store: the
// call or its answer is lost, is late, is refused, or somebody else has written the
// record. testdata/situations.txt has a paragraph for each: what the client gets, which
// hooks are told, which calls are made, and which record is left. A new one is a heading
// there: "# a program: call 2 lost; call 3 denied", and then -update.
func TestSituations(t *testing.T) {
	t.Parallel()
	const file = "testdata/situations.txt"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			b.WriteString(line + played(t, strings.TrimSpace(heading)))
		}
	}
	got := b.String()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(strings.Split(string(raw), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got); -update writes it:\n%s", file, diff)
	}
}

// played plays what a heading says.
func played(t *testing.T, heading string) string {
	t.Helper()
	name, at, _ := strings.Cut(heading, ": ")
	p := programs[name]
	if p == nil {
		t.Fatalf("there is no program %q", name)
	}
	var strikes map[int]*mishap
	for part := range strings.SplitSeq(at, "; ") {
		if part == "" {
			continue
		}
		var n int
		_, err := fmt.Sscanf(part, "call %d", &n)
		i := slices.IndexFunc(mishaps, func(m *mishap) bool { return part == fmt.Sprintf("call %d %s", n, m.name) })
		if err != nil || i < 0 {
			t.Fatalf("%s: nothing is called %q", name, part)
		}
		if strikes == nil {
			strikes = make(map[int]*mishap)
		}
		strikes[n] = mishaps[i]
	}
	_, end := p.once(t, strikes)
	if end == "" {
		t.Errorf("%s: there is no such call", heading)
	}
	return end
}

// situation is what one client, completer or operator does.
type situation struct {
	opts   []func(*idem.Options)
	before func(*stage) // what has happened to the record before
	act    func(*stage) string
}

// stage is the place of one play.
type stage struct {
	t     *testing.T
	ctx   context.Context
	table *bodied
	store *idemtest.FaultyStore
	opts  []func(*idem.Options)
	e     *idem.Engine

	mishaps map[int]*mishap // by the call, from 1
	calls   []string
	struck  bool      // all mishaps have struck
	first   time.Time // when the first struck
	later   func()
	frozen  atomic.Int64 // how long the process was, in nanoseconds

	mu     sync.Mutex
	told   []string
	spans  []string
	logged []string // of the level of errors
	runs   int      // of handlers
}

// mishap is what happens at a call.
type mishap struct {
	name    string
	verbs   string // "" is any
	fault   idemtest.Fault
	meets   func(*store.Record) // another's write before the call
	gone    bool                // the record has gone before the call
	late    bool                // the call is applied before the next one
	slow    bool                // there is no answer in time
	body    bool                // the answer's body is written all the same
	freezes time.Duration       // of the wall clock, which no timer of the process sees
	stays   bool                // so are all later calls
	brief   bool                // of half a minute
	takes   func(*store.Record) // what changes in the record without a write of its version
}

var errDenied = errors.New("access denied")

const ofWrites = "Claim Commit Take"

// mishaps are all of them. The first three go before another one.
var mishaps = []*mishap{
	{name: "lost", fault: idemtest.Fault{Err: store.ErrUnknown}},
	{name: "its answer lost", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrUnknown, Applied: true}},
	{name: "conflict", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrConflict}},
	{name: "denied", fault: idemtest.Fault{Err: errDenied}},
	{name: "denied, and late", verbs: ofWrites, fault: idemtest.Fault{Err: errDenied}, late: true},
	{name: "lost, and late", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrUnknown}, late: true},
	{name: "conflict, and late", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrConflict}, late: true},
	{name: "condition", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrCondition}},
	{name: "too large", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrTooLarge}},
	{name: "no write", verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrWrite}},
	{name: "unreadable", fault: idemtest.Fault{Err: store.ErrCorrupt}},
	{name: "body gone", verbs: "LoadBody", fault: idemtest.Fault{Err: store.ErrNotKept}},
	{name: "conflict, its body written", verbs: "Claim Commit", fault: idemtest.Fault{Err: store.ErrConflict}, body: true},
	{name: "denied, its body written", verbs: "Claim Commit", fault: idemtest.Fault{Err: errDenied}, body: true},
	{name: "conflict, and slow", slow: true, verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrConflict}},
	{name: "conflict, and frozen for 61 seconds", verbs: ofWrites, freezes: 61 * time.Second, fault: idemtest.Fault{Err: store.ErrConflict}},
	{name: "slow", slow: true, fault: idemtest.Fault{Err: store.ErrUnknown}},
	{name: "lost for good", stays: true, fault: idemtest.Fault{Err: store.ErrUnknown}},
	{name: "conflict for good", stays: true, verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrConflict}},
	{name: "slow for good", stays: true, slow: true, fault: idemtest.Fault{Err: store.ErrUnknown}},
	{name: "denied for good", stays: true, verbs: ofWrites, fault: idemtest.Fault{Err: errDenied}},
	{name: "condition for good", stays: true, verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrCondition}},
	{name: "too large for good", stays: true, verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrTooLarge}},
	{name: "no answer for a while", stays: true, brief: true, fault: idemtest.Fault{Err: store.ErrUnknown, Applied: true}},
	{name: "lost for good, reads are not", stays: true, verbs: ofWrites, fault: idemtest.Fault{Err: store.ErrUnknown}},
	{name: "after a job was delivered", takes: func(r *store.Record) { r.Jobs = nil }},
	{name: "after a new claim", takes: func(r *store.Record) {
		*r = store.Record{PK: r.PK, Owner: "another", ID: "another's", Ver: r.Ver, State: store.Open, Fingerprint: r.Fingerprint, Scheme: r.Scheme, Lease: time.Now().Add(time.Minute), Expires: time.Now().Add(time.Hour)}
	}},
	{name: "after its holder's write", takes: func(r *store.Record) { r.Ver++ }},
	{name: "after another's take-over", meets: func(r *store.Record) { r.Lease = time.Now().Add(time.Minute) }},
	{name: "after another's answer", meets: func(r *store.Record) {
		*r = *state.Finished(r, store.Response{Status: 202, Body: []byte("another's")}, time.Now())
	}},
	{name: "after another's release", meets: func(r *store.Record) { r.Lease = time.Time{} }},
	{name: "after it was freed", meets: func(r *store.Record) {
		r.Keep, r.Lease, r.Expires, r.Phases = store.KeepFreed, time.Time{}, time.Now().Add(time.Hour), nil
	}},
	{name: "after it stuck", meets: func(r *store.Record) { *r = *state.MadeStuck(r, time.Now(), "test") }},
	{name: "after it has expired", meets: func(r *store.Record) {
		*r = *state.Finished(r, store.Response{Status: 202}, time.Now())
		r.Expires, r.Keep = time.Now().Add(-time.Hour), store.KeepNothing
	}},
	{name: "after another request", meets: func(r *store.Record) { r.Fingerprint, r.Lease = "other", time.Now().Add(time.Minute) }},
	{name: "after a program with another scheme", meets: func(r *store.Record) { r.Scheme, r.Lease = "x", time.Now().Add(time.Minute) }},
	{name: "after it was spoilt", meets: func(r *store.Record) { r.State = "spoilt" }},
	{name: "after it has gone", gone: true},
}

// plan strikes the calls.
func (s *stage) plan(ctx context.Context, c idemtest.Call) idemtest.Fault {
	s.calls = append(s.calls, string(c.Verb))
	if late := s.later; late != nil {
		s.later = nil
		late()
	}
	var f *mishap
	for n := 1; n <= c.Total; n++ {
		if is := s.mishaps[n]; is != nil && (n == c.Total || is.stays && (!is.brief || time.Since(s.first) < 30*time.Second)) {
			f = is
		}
	}
	if f == nil || f.verbs != "" && !strings.Contains(f.verbs, string(c.Verb)) {
		return idemtest.Fault{}
	}
	if s.first.IsZero() {
		s.first = time.Now()
	}
	s.struck = c.Total >= slices.Max(slices.Collect(maps.Keys(s.mishaps)))
	s.frozen.Add(int64(f.freezes))
	switch {
	case f.slow:
		<-ctx.Done()
	case f.body && c.Verb == idemtest.Claim:
		s.table.put(c.Claim.Next)
	case f.body:
		s.table.put(c.Commit.Next)
	case f.late && c.Verb == idemtest.Claim:
		again := c.Claim
		again.Next = again.Next.Clone()
		s.later = func() { _, _ = s.table.Claim(context.Background(), again) }
	case f.late && c.Verb == idemtest.Commit:
		again := store.Commit{Prev: c.Commit.Prev.Clone(), Next: c.Commit.Next.Clone(), Writes: c.Commit.Writes}
		s.later = func() { _, _ = s.table.Commit(context.Background(), again) }
	case f.late:
		s.later = func() { _, _, _ = s.table.Take(context.Background(), c.Take) }
	case f.gone:
		s.table.empty()
	case f.takes != nil:
		s.table.change(c.PK, f.takes)
	case f.meets != nil:
		s.table.meddle(c, f.meets)
	}
	return f.fault
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
		if c.Verb != idemtest.Claim {
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

// once plays p once, under some mishaps, and returns the calls and how it ended; "" if the
// mishaps don't fit.
func (p *situation) once(t *testing.T, strikes map[int]*mishap) (calls []string, end string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, table: &bodied{MemoryStore: new(idem.MemoryStore), bodies: make(map[string][]byte)}, mishaps: strikes}
		s.ctx = chance.With(t.Context(), func(n int64) int64 { return n / 2 })
		s.store = idemtest.Faulty(s.table, nil)
		s.opts = append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) {
			o.Function, o.Logger, o.Tracer = "f", slog.New(s), s
			o.Now = func() time.Time { return time.Now().Add(time.Duration(s.frozen.Load())) }
			o.Hooks.Ended = func(_ context.Context, sum idem.Summary) {
				for _, ev := range sum.Happened {
					s.told = append(s.told, happened(ev))
				}
			}
		}}, p.opts...)
		s.e = idem.New(s.store, s.opts...)
		if p.before != nil {
			p.before(s)
		}
		s.told, s.spans, s.logged, s.runs, s.table.again = nil, nil, nil, 0, 0
		s.store.Reset(s.plan)
		begun := time.Now()
		got := p.act(s)
		took := time.Since(begun).Round(time.Millisecond)
		calls = s.calls
		if strikes != nil && !s.struck {
			return
		}
		s.store.Reset(nil)
		if s.later != nil {
			s.later()
		}
		end = fmt.Sprintf("\t%s\n\ttold: %s; handler runs: %d\n\tcalls: %s; took %s\n", got, strings.Join(s.told, ", "), s.runs, counted(s.calls), took)
		if strikes == nil {
			end += "\tsteps: " + strings.Join(s.spans, " ") + "\n"
		}
		for _, line := range s.logged {
			end += "\tlogged: " + line + "\n"
		}
		for _, pk := range slices.Sorted(maps.Keys(s.table.Records())) {
			end += "\trecord: " + described(s.table.Records()[pk]) + "\n"
		}
		if n := len(s.table.bodies); n > 0 {
			end += fmt.Sprintf("\tbodies: %d", n)
			if again := s.table.again; again > 0 {
				end += fmt.Sprintf(", written again: %d", again)
			}
			end += "\n"
		}
		if w := written(s.table.MemoryStore); len(w) > 0 {
			end += "\twritten: " + strings.Join(w, ", ") + "\n"
		}
	})
	return calls, end
}

// counted joins names, and counts those that follow each other.
func counted(names []string) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		if b.WriteString(" " + names[i]); n > 1 {
			fmt.Fprintf(&b, "×%d", n)
		}
		i += n
	}
	return strings.TrimSpace(b.String())
}

func happened(ev idem.Event) string {
	text := ev.Name
	if ev.Phase != "" {
		text += " " + ev.Phase
	}
	if ev.Jobs > 0 {
		text += fmt.Sprintf(" with %d jobs", ev.Jobs)
	}
	if ev.Err != nil {
		text += " (" + unnamed(ev.Err) + ")"
	}
	return text
}

// name is of a record, in the text of an error.
var name = regexp.MustCompile(`(idem: [a-z -]+(?: [a-z]+)?) [A-Za-z0-9_-]{8}:`)

// unnamed is an error without the record's name.
func unnamed(err error) string {
	return name.ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", " "), "$1 R:")
}

// received describes what a client gets.
func received(res idem.Result, err error) string {
	if err != nil {
		text := "error " + unnamed(err)
		if e, ok := errors.AsType[*idem.Error](err); ok {
			text += fmt.Sprintf(" [%s, retry after %s, key known to expire: %t]", e.Op, e.RetryAfter.Round(time.Second), !e.Expires.IsZero())
		}
		return text
	}
	text := fmt.Sprintf("%d %q", res.Status, res.Body)
	for i, is := range []bool{res.Replayed, res.Unstored, res.Passed, !res.Expires.IsZero()} {
		if is {
			text += " " + []string{"replayed", "unstored", "passed", "kept"}[i]
		}
	}
	return text
}

var ids = regexp.MustCompile(`[A-Z2-7]{26}`)

// described describes a record: times as from now.
func described(r *store.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, version %d", r.State, r.Ver)
	if r.Owner == "another" {
		b.WriteString(", another's")
	}
	if r.Keep != "" {
		fmt.Fprintf(&b, ", keep %s", r.Keep)
	}
	since := func(name string, at time.Time) {
		if !at.IsZero() {
			fmt.Fprintf(&b, ", %s %s", name, time.Until(at).Round(10*time.Second))
		}
	}
	since("lease", r.Lease)
	since("expires", r.Expires)
	since("until", r.Until)
	since("doubt since", r.DoubtSince)
	for _, p := range r.Phases {
		fmt.Fprintf(&b, ", phase %s=%s", p.Name, p.Result)
		if p.Intent {
			b.WriteString(" begun")
		}
	}
	if len(r.Doubts) > 0 {
		fmt.Fprintf(&b, ", doubts %v", r.Doubts)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
		fmt.Fprintf(&b, ", job %s %s", name, r.Jobs[name].Kind)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(&b, ", call %s×%d", name, r.Calls[name])
	}
	if r.Response != nil {
		fmt.Fprintf(&b, ", answer %d %q", r.Response.Status, r.Response.Body)
	}
	if r.Overflow != nil {
		fmt.Fprintf(&b, ", body beside it: %d %x", r.Overflow.Count, r.Overflow.SHA256[:2])
	}
	if r.Input != nil {
		fmt.Fprintf(&b, ", request %q", r.Input.Body)
	}
	if r.Tries > 0 {
		fmt.Fprintf(&b, ", tries %d", r.Tries)
	}
	if r.Blocked {
		b.WriteString(", blocked")
	}
	for _, d := range r.Settled {
		fmt.Fprintf(&b, ", %s by %s", ids.ReplaceAllString(d.What, "it"), d.By)
	}
	for _, h := range r.Handovers {
		fmt.Fprintf(&b, ", %s", h.Kind)
	}
	if r.LastErr != "" {
		fmt.Fprintf(&b, ", last error %s", unnamed(errors.New(r.LastErr)))
	}
	return b.String()
}

// Start and Context make a stage a tracer, which notes the kinds of steps.
func (s *stage) Start(ctx context.Context, step trace.Step) (context.Context, func(trace.Outcome)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, string(step.Kind))
	return ctx, func(trace.Outcome) {}
}

func (s *stage) Context(context.Context) trace.Context { return trace.Context{} }

// Enabled, Handle, WithAttrs and WithGroup make it a handler of log lines.
func (s *stage) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (s *stage) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged = append(s.logged, r.Message)
	return nil
}

func (s *stage) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *stage) WithGroup(string) slog.Handler      { return s }
