package idem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/unnamed"
	"github.com/samekey/samekey/internal/state"
)

// MemoryStore is a [store.Store] in this process's memory, for tests and experiments.
// The records are lost when the process ends. The zero value is ready to use. A
// MemoryStore never deletes expired records. Like a table, a MemoryStore refuses a
// record that is larger than 400 KB without its bodies. It also refuses a commit with
// writes that can't be committed together ([store.CommitChecker]).
type MemoryStore struct {
	// Apply lets a test decide whether a commit with the user's writes succeeds. To
	// accept the commit, Apply returns nil. To refuse the commit, Apply returns an
	// error that matches ErrConflict or ErrCondition. The store is locked while Apply
	// runs, so Apply must not call the store. Set Apply before first use.
	Apply func([]Write) error

	mu      sync.Mutex
	records map[string]*store.Record
	writes  []Write
	unnamed unnamed.Handlers
}

var (
	_ store.Store = (*MemoryStore)(nil)
	_ store.Taker = (*MemoryStore)(nil)
	_ store.Sizer = (*MemoryStore)(nil)
)

// AddUnnamed counts one more unnamed handler in a group, and returns how many the group
// now has in this store. The parameter among is the group's name, such as a namespace.
// [Engine.AddOperation] calls AddUnnamed. So in a test AddOperation refuses the same
// handlers as on a table.
func (m *MemoryStore) AddUnnamed(among string) int { return m.unnamed.Add(among) }

// Claim implements [store.Store].
func (m *MemoryStore) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[c.Next.PK]
	if free := c.Seen == nil && old != nil && state.Over(old.Expires, c.Now) && !state.Freed(old); old != nil && !free && !unchanged(old, c.Seen) {
		return old.Clone(), nil
	}
	if old = m.records[c.Beside]; old != nil && !unchanged(old, c.Fenced) {
		return old.Clone(), nil
	}
	if err := fits(&store.Record{}, c.Next); err != nil {
		return nil, err
	}
	if m.records == nil {
		m.records = make(map[string]*store.Record)
	}
	m.records[c.Next.PK] = c.Next.Clone()
	return nil, nil
}

// Writes returns the user's writes that were committed, in the order of the commits.
// [Write] has a String method that describes the write.
func (m *MemoryStore) Writes() []Write {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.writes)
}

// Records returns a copy of each record, under the record's partition key (PK), so that
// tests can inspect phases and staged jobs.
func (m *MemoryStore) Records() map[string]*store.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]*store.Record, len(m.records))
	for pk, r := range m.records {
		all[pk] = r.Clone()
	}
	return all
}

// MemoryStore.apply adds the user's writes to m.writes. It returns an error if one of
// the writes can't be committed, or if m.Apply refuses the writes.
func (m *MemoryStore) apply(writes []Write) error {
	if len(writes) == 0 {
		return nil
	}
	for _, w := range writes {
		if w == nil {
			return fmt.Errorf("%w: a write is nil", ErrWrite)
		}
		if err := w.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	if c, ok := writes[0].(store.CommitChecker); ok {
		if err := c.CheckCommit(writes); err != nil {
			return err
		}
	}
	if m.Apply != nil {
		if err := m.Apply(writes); err != nil {
			return err
		}
	}
	m.writes = append(m.writes, writes...)
	return nil
}

// Commit implements [store.Store].
func (m *MemoryStore) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[c.Prev.PK]
	switch {
	case old == nil:
		return &store.Record{}, nil
	case old.Owner != c.Prev.Owner || old.Ver != c.Prev.Ver:
		return old.Clone(), nil
	case len(c.Next.Jobs) < len(c.Prev.Jobs) && state.DropsJobs(c.Prev, c.Next) && !state.SameJobs(old, c.Prev):
		return nil, fmt.Errorf("idem: commit: %w: its jobs have changed", store.ErrConflict)
	}
	next := patched(old.Clone(), c.Prev, c.Next)
	if err := fits(old, next); err != nil {
		return nil, err
	}
	if err := m.apply(c.Writes); err != nil {
		return nil, err
	}
	m.records[next.PK] = next.Clone()
	return nil, nil
}

// Take implements [store.Taker].
func (m *MemoryStore) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[t.PK]
	next := t.From(old)
	switch {
	case old == nil:
		return &store.Record{}, false, nil
	case next == nil:
		return old.Clone(), false, nil // not taken over: the returned record shows why
	}
	m.records[next.PK] = next.Clone()
	return next.Clone(), true, nil
}

// Load implements [store.Store].
func (m *MemoryStore) Load(ctx context.Context, pk string) (*store.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[pk].Clone(), nil
}

// maxRecord is the largest size in bytes of a record without its bodies. It is DynamoDB's
// limit for an item, so a test finds results that would not fit into a table.
const maxRecord = 400 << 10

// Fits implements [store.Sizer].
func (m *MemoryStore) Fits(prev, next *store.Record) error { return fits(prev, next) }

// unchanged reports whether the record r still has the owner and version of seen, an
// earlier copy of r.
func unchanged(r, seen *store.Record) bool {
	return seen != nil && r.Owner == seen.Owner && r.Ver == seen.Ver
}

// The function named fits returns an error if the record r, which replaces old, is too
// large for an item. It estimates the item's size. If a record is open or has jobs, a
// later write may enlarge it: a take-over, or the write of the reason why a job is
// parked. So a write that adds phases, jobs or an answer must leave room for the later
// write.
func fits(old, r *store.Record) error {
	limit := maxRecord
	more := len(r.Phases)+len(r.Jobs) > len(old.Phases)+len(old.Jobs) || r.Response != nil && old.Response == nil
	if more && (r.State == store.Open || len(r.Jobs) > 0) {
		limit -= state.Room
	}
	n := len(r.PK) + len(r.Scope) + len(r.Route) + len(r.LastErr) + state.SizeOf(r)
	if n > limit {
		return fmt.Errorf("idem: %w: %d bytes without its bodies, at most %d", store.ErrTooLarge, n, limit)
	}
	return nil
}

// The function patched sets in r the fields in which next differs from prev. Other fields
// of r stay as stored: they may have changed since prev was read.
func patched(r, prev, next *store.Record) *store.Record {
	r.Owner, r.Ver = next.Owner, next.Ver
	patch(&r.State, prev.State, next.State)
	patch(&r.Keep, prev.Keep, next.Keep)
	patch(&r.LastErr, prev.LastErr, next.LastErr)
	patch(&r.Blocked, prev.Blocked, next.Blocked)
	patch(&r.Tries, prev.Tries, next.Tries)
	patch(&r.Lease, prev.Lease, next.Lease)
	patch(&r.Expires, prev.Expires, next.Expires)
	patch(&r.Until, prev.Until, next.Until)
	patch(&r.Retention, prev.Retention, next.Retention)
	patch(&r.Run, prev.Run, next.Run)
	patch(&r.WaitSince, prev.WaitSince, next.WaitSince)
	if !slices.EqualFunc(prev.Settled, next.Settled, store.Decision.Equal) {
		r.Settled = next.Settled
	}
	if !slices.EqualFunc(prev.Handovers, next.Handovers, store.Handover.Equal) {
		r.Handovers = slices.Clone(next.Handovers)
	}
	patch(&r.Handler, prev.Handler, next.Handler)
	patch(&r.Tenant, prev.Tenant, next.Tenant)
	if !slices.EqualFunc(prev.Phases, next.Phases, samePhase) {
		r.Phases = next.Phases
	}
	if !maps.Equal(prev.Calls, next.Calls) {
		r.Calls = next.Calls
	}
	patch(&r.Mark, prev.Mark, next.Mark)
	if !slices.Equal(prev.Doubts, next.Doubts) {
		r.Doubts = next.Doubts
	}
	if !maps.Equal(prev.Sent, next.Sent) {
		r.Sent = next.Sent
	}
	patch(&r.DoubtSince, prev.DoubtSince, next.DoubtSince)
	patch(&r.DoubtUntil, prev.DoubtUntil, next.DoubtUntil)
	if !prev.Asked.Equal(next.Asked) {
		r.Asked = next.Asked
	}
	if len(next.Jobs) < len(prev.Jobs) && state.DropsJobs(prev, next) {
		r.Jobs = nil
	}
	for id, job := range next.Jobs {
		if _, known := prev.Jobs[id]; !known {
			if r.Jobs == nil {
				r.Jobs = make(map[string]Job)
			}
			r.Jobs[id] = job
		}
	}
	if prev.Input != nil && next.Input == nil {
		r.Input = nil
	}
	patch(&r.Scope, prev.Scope, next.Scope)
	if prev.Response == nil || state.AnswerGoes(prev, next) {
		r.Response, r.Overflow = next.Response, next.Overflow
	}
	return r
}

func patch[T comparable](field *T, prev, next T) {
	if next != prev {
		*field = next
	}
}

func samePhase(a, b store.Phase) bool {
	return a.Name == b.Name && a.Intent == b.Intent && a.Shape == b.Shape && bytes.Equal(a.Result, b.Result) && (a.Result == nil) == (b.Result == nil)
}
