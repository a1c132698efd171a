package idem

import (
	"context"
	"sync"
)

// MemoryStore is a [Store] in this process's memory, for tests and for trying
// things out: it is lost with the process and shared with no other. The zero
// value is ready to use. It never deletes expired records.
type MemoryStore struct {
	mu      sync.Mutex
	records map[string]*Record
}

var _ Store = (*MemoryStore)(nil)

// Claim implements [Store].
func (m *MemoryStore) Claim(ctx context.Context, c Claim) (*Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.records[c.Next.PK]; old != nil && (!over(old.Expires, c.Now) || old.Owner == c.Next.Owner) {
		return old.clone(), nil
	}
	m.put(c.Next)
	return nil, nil
}

// Commit implements [Store].
func (m *MemoryStore) Commit(ctx context.Context, c Commit) (*Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[c.Prev.PK]
	switch {
	case old == nil:
		return &Record{}, nil
	case old.Owner != c.Prev.Owner || old.Ver != c.Prev.Ver:
		return old.clone(), nil
	}
	next := c.Next.clone()
	next.Jobs = old.Jobs
	for id, job := range c.Next.Jobs {
		if _, known := c.Prev.Jobs[id]; !known {
			next.Jobs = withJob(next.Jobs, id, job)
		}
	}
	m.put(next)
	return nil, nil
}

func withJob(jobs map[string]Job, id string, job Job) map[string]Job {
	if jobs == nil {
		jobs = make(map[string]Job)
	}
	jobs[id] = job
	return jobs
}

// Load implements [Store].
func (m *MemoryStore) Load(ctx context.Context, pk string) (*Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[pk].clone(), nil
}

func (m *MemoryStore) put(r *Record) {
	if m.records == nil {
		m.records = make(map[string]*Record)
	}
	m.records[r.PK] = r.clone()
}
