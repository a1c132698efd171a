package ui

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// view holds the rows of the newest records. If there are more than the limit, the view
// drops the oldest rows, and the page says so.
type view struct {
	limit int

	mu      sync.Mutex
	rows    map[string]stamped
	pass    int             // counts scans
	alone   map[string]bool // rows that were read alone during a pass, perhaps after the pass read them
	dropped bool            // some rows were dropped
	version int             // counts changes
	sorted  []Row
	sortedV int
}

type stamped struct {
	Row
	pass int // the pass that saw the row last
}

func newView(limit int) *view { return &view{limit: limit, rows: make(map[string]stamped)} }

// begin starts a pass over the table.
func (v *view) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass++
	v.alone = make(map[string]bool)
	v.dropped = false
}

// meet adds rows that the pass has read.
func (v *view) meet(rows ...Row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(rows, v.alone)
}

// end ends the pass. If the pass has seen the whole table, end drops the rows that it
// didn't see. end returns the keys of rows that were read alone during the pass: the pass
// ignored its own reads of these rows, even if they were newer.
func (v *view) end(whole bool) (alone []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	alone = slices.Collect(maps.Keys(v.alone))
	v.alone = nil
	if whole {
		maps.DeleteFunc(v.rows, func(_ string, r stamped) bool { return r.pass < v.pass })
		v.version++
	}
	return alone
}

func (v *view) put(rows ...Row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(rows, nil)
}

// waitingBut returns the keys of waiting rows that are not in rows.
func (v *view) waitingBut(rows []Row) (pks []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for pk, r := range v.rows {
		if r.forPeople() && !slices.ContainsFunc(rows, func(one Row) bool { return one.PK == pk }) {
			pks = append(pks, pk)
		}
	}
	return pks
}

// read sets a row that was read alone, or removes the row if the record is gone.
func (v *view) read(pk string, row Row, there bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.alone != nil {
		v.alone[pk] = true
	}
	if there {
		v.add([]Row{row}, nil)
		return
	}
	delete(v.rows, pk)
	v.version++
}

// add sets rows, except rows whose keys are in but. v.mu is held.
func (v *view) add(rows []Row, but map[string]bool) {
	for _, r := range rows {
		if !but[r.PK] {
			v.rows[r.PK] = stamped{r, v.pass}
		}
	}
	v.version++
	if len(v.rows) > v.limit+v.limit/4+1000 {
		v.shrink()
	}
}

// shrink drops the oldest rows beyond the limit, waiting rows last. v.mu is held.
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
	if v.sortedV != v.version {
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
