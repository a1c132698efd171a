package ui

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// view holds the rows of the newest records. If there are more rows than the limit, the
// view drops the oldest, and the page says so.
type view struct {
	limit int

	mu      sync.Mutex
	rows    map[string]stamped
	pass    int             // counts scans
	alone   map[string]bool // keys of the rows that view.read has set or removed during this pass
	dropped bool            // rows were dropped since the pass began
	version int             // counts changes
	sorted  []Row
	sortedV int
}

type stamped struct {
	Row
	pass int // value of view.pass when the row was set
}

func newView(limit int) *view { return &view{limit: limit, rows: make(map[string]stamped)} }

// view.begin starts a pass over the table.
func (v *view) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass++
	v.alone = make(map[string]bool)
	v.dropped = false
}

// view.meet adds rows that the pass has read.
func (v *view) meet(rows ...Row) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.add(rows, v.alone)
}

// view.end ends the pass. If whole is true, the pass has read the whole table, and end
// drops the rows that nothing has set since begin. It returns the keys of the rows that
// view.read has set or removed during the pass. These rows may be outdated, because
// view.meet skipped them even if the pass read a newer version.
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

// waitingBut returns the keys of the view's waiting rows that are not in the list rows.
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

// view.read sets a row that was read individually, not by a pass. If the record is
// gone, read removes the row.
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

// view.add sets the given rows. It leaves out each row whose key is in the map `but`.
// The caller holds v.mu.
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

// view.shrink drops the oldest rows until the limit is met. It drops waiting rows only
// if there are no others left. The caller holds v.mu.
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

// inOrder returns the rows, the newest first. The caller holds v.mu, and doesn't change
// the result.
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
