package idem

import (
	"strings"
	"sync"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// place is an attempt's place in the caller's quota.
type place struct {
	mu  sync.Mutex // a phase may outlive its handler
	end func(QuotaUse)
	use QuotaUse
}

// settle notes the outcome of a claim. The record of a known key is no new
// operation, so the place is free at once.
func (p *place) settle(v state.Verdict, err error) {
	switch {
	case err != nil || v == state.Again:
	case v == state.Own:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.use.New = true
	default:
		p.leave()
	}
}

// holds notes the size of the operation's record, which may be nil.
func (p *place) holds(rec *store.Record) {
	if rec != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.use.Bytes = stored(rec)
	}
}

// leave gives the place up. Only the first call counts. A nil place is none.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.mu.Lock()
	end, use := p.end, p.use
	p.end = nil
	p.mu.Unlock()
	if !use.New {
		use.Bytes = 0
	}
	if end != nil {
		end(use)
	}
}

// stored estimates the size of a record's item in bytes.
func stored(r *store.Record) int64 {
	const numbers = 250 // names of attributes, numbers and times
	n := numbers + len(r.PK) + len(r.Owner) + len(r.ID) + len(r.Fingerprint) + len(r.Secret) + len(r.Scheme) + len(r.Scope) + len(r.Route) + len(r.LastErr)
	if r.Response != nil {
		n += kept(r.Response.Body, r.Overflow)
		for name, values := range r.Response.Header {
			n += len(name) + len(strings.Join(values, ""))
		}
	}
	if r.Input != nil {
		n += kept(r.Input.Body, r.Input.Overflow) + len(r.Input.Snapshot) + len(r.Input.Path) + len(r.Input.Query)
	}
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result)
	}
	for id, j := range r.Jobs {
		n += len(id) + len(j.Kind) + len(j.Args) + len(j.Group)
	}
	return int64(n)
}

// kept returns the size of a body that is in its record, or beside it: then the program that
// wrote it still has it, too.
func kept(body []byte, o *store.Overflow) int {
	switch {
	case o == nil:
		return len(body)
	case o.Count == 0:
		return 0
	}
	return o.Length
}
