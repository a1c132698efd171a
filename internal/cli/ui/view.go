package ui

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// view holds the rows of the newest records. Its memory is bounded: beyond the limit
// the oldest records go, and the page says so.
type view struct {
	limit int

	mu      sync.Mutex
	rows    map[string]stamped
	pass    int  // counts scans
	dropped bool // some rows had to go
	version int  // counts changes
	sorted  []Row
	sortedV int
}

type stamped struct {
	Row
	pass int // in which the row was last seen
}

func newView(limit int) *view { return &view{limit: limit, rows: make(map[string]stamped)} }

// begin starts a pass over the table.
func (v *view) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass++
	v.dropped = false
}

// end removes the rows that the pass, which has seen the whole table, has not met.
func (v *view) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.rows, func(_ string, r stamped) bool { return r.pass < v.pass })
	v.version++
}

func (v *view) put(rows ...Row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range rows {
		v.rows[r.PK] = stamped{r, v.pass}
	}
	v.version++
	if len(v.rows) > v.limit+v.limit/4+1000 {
		v.shrink()
	}
}

func (v *view) remove(pk string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.rows, pk)
	v.version++
}

// shrink drops the oldest rows beyond the limit, those that wait for people last. v.mu is
// held.
func (v *view) shrink() {
	all := v.inOrder()
	for _, people := range []bool{false, true} {
		for i := len(all) - 1; i >= 0 && len(v.rows) > v.limit; i-- {
			if all[i].forPeople() == people {
				delete(v.rows, all[i].PK)
				v.dropped = true
			}
		}
	}
	v.version++
}

// inOrder returns the rows, the newest first. v.mu is held; nobody changes the result.
func (v *view) inOrder() []Row {
	if v.sorted == nil || v.sortedV != v.version {
		all := make([]Row, 0, len(v.rows))
		for _, r := range v.rows {
			all = append(all, r.Row)
		}
		slices.SortFunc(all, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.PK, b.PK)) })
		v.sorted, v.sortedV = all, v.version
	}
	return v.sorted
}

func (v *view) snapshot() (rows []Row, version int, dropped bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.rows) > v.limit {
		v.shrink()
	}
	return v.inOrder(), v.version, v.dropped
}
