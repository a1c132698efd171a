package enginetest

import (
	"context"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// A suite that can't fail proves nothing. Each mutant is a store with one flaw;
// the suite must fail on it. A failing subtest would fail this test too, so
// the suite runs in a process of its own, which takes the flaw's name from the
// environment (see TestMemoryStore).
const mutantEnv = "ENGINETEST_MUTANT"

const (
	noFlaw                = "has no flaw"
	commitsForAnyOwner    = "commits for any owner"
	commitsAnyVersion     = "commits any version"
	commitsAnything       = "commits without a condition"
	commitsOntoNothing    = "commits onto nothing"
	commitsEverything     = "commits what does not differ"
	commitRevivesJobs     = "brings delivered jobs back"
	dropsAnyJobs          = "drops jobs that nobody has seen"
	keepsJobs             = "keeps jobs that were given up"
	claimsLive            = "claims over a live record"
	claimsKept            = "claims over a kept record"
	claimsFreed           = "claims over a freed record that it hasn't seen"
	claimsChanged         = "claims over a record that has changed"
	claimsInTheLastSecond = "claims in the second of expiry"
	claimsNothingExpired  = "claims no expired record"
	claimReadsAndWrites   = "reads, then writes a claim"
	besideNothing         = "claims beside any record"
	besideExpired         = "claims beside an expired record that it hasn't fenced"
	besideOwn             = "claims beside a record that has changed"
	besideReadsAndWrites  = "reads the record beside a claim, then writes"
	commitReadsAndWrites  = "reads, then writes a commit"
	refusesWithoutRecord  = "refuses without the record"
	refusesWithOldRecord  = "refuses with an older record"
	loadsOld              = "loads an older record"
	sharesRecords         = "shares records with its callers"
	mergesOnClaim         = "merges a claim into the expired record"
	dropsHeaderValues     = "keeps one value of a header"
	cutsBodies            = "cuts large bodies"
	textBodies            = "takes bodies for text"
	losesSubseconds       = "keeps leases in seconds"
	ignoresContexts       = "ignores that the context is over"
	takesBrokenWrites     = "takes writes that could not be built"
)

// network is the time between a read and a write in which others come, also where many
// tests share a processor.
const network = 20 * time.Millisecond

func TestMutants(t *testing.T) {
	t.Parallel()
	for _, m := range []struct{ flaw, group string }{
		{claimsLive, "store claim"},
		{claimsKept, "store claim"},
		{claimsFreed, "store claim"},
		{claimsChanged, "store claim"},
		{claimsInTheLastSecond, "store claim"},
		{claimsNothingExpired, "store claim"},
		{mergesOnClaim, "store claim"},
		{refusesWithoutRecord, "store claim"},
		{ignoresContexts, "store claim"},
		{commitsForAnyOwner, "store commit"},
		{commitsAnyVersion, "store commit"},
		{commitsOntoNothing, "store commit"},
		{commitsEverything, "store commit"},
		{commitRevivesJobs, "store commit"},
		{dropsAnyJobs, "store commit"},
		{keepsJobs, "store commit"},
		{refusesWithOldRecord, "store commit"},
		{takesBrokenWrites, "store commit"},
		{commitsAnything, "store commit"},
		{loadsOld, "store load"},
		{sharesRecords, "store load"},
		{dropsHeaderValues, "store records"},
		{textBodies, "store records"},
		{losesSubseconds, "store records"},
		{cutsBodies, "store bodies"},
		{besideNothing, "store claim"},
		{besideExpired, "store claim"},
		{besideOwn, "store claim"},
		{besideReadsAndWrites, "store races"},
		{claimReadsAndWrites, "store races"},
		{commitReadsAndWrites, "store races"},
	} {
		t.Run("fails on a store that "+m.flaw+", by "+m.group, func(t *testing.T) {
			t.Parallel()
			if out, failed := runOn(t, m.flaw, m.group); !failed {
				t.Errorf("the suite passed:\n%s", out)
			}
		})
	}
	t.Run("passes on a store that "+noFlaw, func(t *testing.T) {
		t.Parallel()
		if out, failed := runOn(t, noFlaw, "store"); failed {
			t.Errorf("the suite failed:\n%s", out)
		}
	})
}

// runOn runs a part of the suite on a mutant.
func runOn(t *testing.T, flaw, group string) (out string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryStore$/^"+group, "-test.failfast")
	cmd.Env = append(os.Environ(), mutantEnv+"="+flaw)
	b, err := cmd.CombinedOutput()
	failed = strings.Contains(string(b), "--- FAIL: TestMemoryStore")
	if (err != nil) != failed || !failed && !strings.Contains(string(b), "PASS") {
		t.Fatalf("the suite did not run: %v\n%s", err, b)
	}
	return string(b), failed
}

// mutant is a store with a flaw; without one it would pass.
type mutant struct {
	flaw    string
	mu      sync.Mutex
	beside  sync.Mutex // over claims with a Beside
	records map[string]*store.Record
	before  map[string]*store.Record // the versions before these
}

func newMutant(t testing.TB, flaw string) *mutant {
	t.Helper()
	return &mutant{flaw: flaw, records: make(map[string]*store.Record), before: make(map[string]*store.Record)}
}

func (m *mutant) is(flaws ...string) bool { return slices.Contains(flaws, m.flaw) }

func (m *mutant) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if ctx.Err() != nil && !m.is(ignoresContexts) {
		return nil, ctx.Err()
	}
	old := m.get(c.Next.PK)
	over := old != nil && !old.Expires.IsZero() && old.Expires.Unix() < c.Now.Unix() && !state.Freed(old)
	switch {
	case old == nil:
	case c.Seen != nil:
		over = old.Owner == c.Seen.Owner && (old.Ver == c.Seen.Ver || m.is(claimsChanged))
	case m.is(claimsLive):
		over = true
	case m.is(claimsKept):
		over = over || old.Expires.IsZero()
	case m.is(claimsFreed):
		over = over || state.Freed(old)
	case m.is(claimsInTheLastSecond):
		over = over || old.Expires.Before(c.Now) && !old.Expires.IsZero()
	case m.is(claimsNothingExpired):
		over = false
	}
	if old != nil && !over {
		return m.refuse(old)
	}
	if c.Beside != "" && !m.is(besideReadsAndWrites) {
		m.beside.Lock()
		defer m.beside.Unlock()
	}
	if other := m.get(c.Beside); other != nil && !m.is(besideNothing) {
		fenced := c.Fenced != nil && other.Owner == c.Fenced.Owner && (other.Ver == c.Fenced.Ver || m.is(besideOwn))
		if over := !other.Expires.IsZero() && other.Expires.Unix() < c.Now.Unix(); !fenced && (!over || !m.is(besideExpired)) {
			return m.refuse(other)
		}
	}
	if m.is(besideReadsAndWrites) {
		<-time.After(network)
	}
	next := c.Next.Clone()
	if m.is(mergesOnClaim) && old != nil {
		next.Phases, next.Jobs = old.Phases, old.Jobs
	}
	return m.write(m.is(claimReadsAndWrites), old, next, c.Next)
}

func (m *mutant) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if ctx.Err() != nil && !m.is(ignoresContexts) {
		return nil, ctx.Err()
	}
	old := m.get(c.Prev.PK)
	if old == nil {
		if m.is(commitsOntoNothing) {
			return m.write(false, nil, c.Next.Clone(), c.Next)
		}
		return &store.Record{}, nil
	}
	owner := old.Owner == c.Prev.Owner || m.is(commitsForAnyOwner, commitsAnything)
	ver := old.Ver == c.Prev.Ver || m.is(commitsAnyVersion, commitsAnything)
	if !owner || !ver {
		return m.refuse(old)
	}
	if err := m.broken(c.Writes); err != nil {
		return nil, err
	}
	drops := state.DropsJobs(c.Prev, c.Next)
	if drops && !state.SameJobs(old, c.Prev) && !m.is(dropsAnyJobs) {
		return nil, idem.ErrConflict
	}
	next := merged(old, c)
	if drops && !m.is(keepsJobs) {
		next.Jobs = nil
	}
	if m.is(commitRevivesJobs) {
		next.Jobs = c.Next.Jobs
	}
	if m.is(commitsEverything) {
		jobs := next.Jobs
		next = c.Next.Clone()
		next.Jobs = jobs
	}
	return m.write(m.is(commitReadsAndWrites), old, next, c.Next)
}

// broken refuses writes that could not be built.
func (m *mutant) broken(writes []idem.Write) error {
	for _, w := range writes {
		if (w == nil || w.Err() != nil) && !m.is(takesBrokenWrites) {
			return idem.ErrWrite
		}
	}
	return nil
}

// merged is old with what a commit changes.
func merged(old *store.Record, c store.Commit) *store.Record {
	next := old.Clone()
	from, to, dst := reflect.ValueOf(c.Prev).Elem(), reflect.ValueOf(c.Next).Elem(), reflect.ValueOf(next).Elem()
	for i := range dst.NumField() {
		if name := dst.Type().Field(i).Name; name != "Jobs" && !reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			dst.Field(i).Set(to.Field(i))
		}
	}
	for id, j := range c.Next.Jobs {
		if _, known := c.Prev.Jobs[id]; !known {
			if next.Jobs == nil {
				next.Jobs = make(map[string]idem.Job)
			}
			next.Jobs[id] = j
		}
	}
	return next.Clone()
}

func (m *mutant) Load(ctx context.Context, pk string) (*store.Record, error) {
	if ctx.Err() != nil && !m.is(ignoresContexts) {
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.is(loadsOld) {
		return m.before[pk].Clone(), nil
	}
	if m.is(sharesRecords) {
		return m.records[pk], nil
	}
	return m.records[pk].Clone(), nil
}

func (m *mutant) get(pk string) *store.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[pk]
}

// write puts next in place of old. Where another write came between, the call
// begins anew, unless the flaw is not to look.
func (m *mutant) write(blind bool, old, next, handed *store.Record) (*store.Record, error) {
	if blind {
		<-time.After(network)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.records[next.PK]; now != old && !blind {
		return now.Clone(), nil
	}
	if r := next.Response; r != nil {
		switch {
		case m.is(dropsHeaderValues):
			for name, values := range r.Header {
				r.Header[name] = values[:1]
			}
		case m.is(cutsBodies):
			r.Body = r.Body[:min(len(r.Body), 400_000)]
		case m.is(textBodies):
			r.Body = []byte(strings.ToValidUTF8(string(r.Body), "\uFFFD"))
		}
	}
	if m.is(losesSubseconds) {
		next.Lease = next.Lease.Truncate(time.Second)
	}
	if m.is(sharesRecords) {
		next = handed
	}
	m.before[next.PK] = old
	m.records[next.PK] = next
	return nil, nil
}

func (m *mutant) refuse(held *store.Record) (*store.Record, error) {
	switch {
	case m.is(refusesWithoutRecord):
		return &store.Record{PK: held.PK, State: held.State, Owner: held.Owner, Ver: held.Ver}, nil
	case m.is(refusesWithOldRecord):
		m.mu.Lock()
		defer m.mu.Unlock()
		if old := m.before[held.PK]; old != nil {
			held = old
		}
	case m.is(sharesRecords):
		return held, nil
	}
	return held.Clone(), nil
}
