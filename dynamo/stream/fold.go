package stream

import (
	"cmp"
	"maps"
	"slices"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// errand is what a batch asks of the drain about one operation.
type errand struct {
	image  *store.Record // the newest there is
	gone   bool          // and the record is no longer there
	jobs   []staged
	lost   []staged // its parked jobs, if it is gone: nobody can redrive them any more
	settle bool     // it is kept for jobs that were delivered before its finish
	at     int      // the record that asks for settling
	again  bool     // what came of it: something has to come again
}

// staged is a job to be delivered.
type staged struct {
	name string
	at   int // the record that staged it
}

// fold nets a batch by key and operation. What is asked for is what came into
// being in it: jobs that are in a new image and not in the old one, so that the
// drain's own writes ask for nothing; and all that is left in a record that was
// removed. A job that a later record of the batch no longer has was delivered.
func fold(changes []change) []*errand {
	type id struct{ pk, operation string }
	index := make(map[id]*errand)
	var all []*errand
	of := func(r *store.Record) *errand {
		key := id{r.PK, r.ID}
		if index[key] == nil {
			index[key] = &errand{}
			all = append(all, index[key])
		}
		return index[key]
	}
	for i := range changes {
		c := &changes[i]
		if c.replaced() {
			of(c.old).remove(c)
		}
		if c.new != nil {
			of(c.new).add(c)
		}
	}
	for _, e := range all {
		e.jobs = slices.DeleteFunc(e.jobs, func(j staged) bool { return !state.Pending(e.image, j.name) })
		e.settle = e.settle && !e.gone && state.Unsettled(e.image)
	}
	return slices.DeleteFunc(all, func(e *errand) bool { return len(e.jobs)+len(e.lost) == 0 && !e.settle })
}

func (e *errand) add(c *change) {
	before := c.before()
	for _, name := range slices.SortedFunc(maps.Keys(c.new.Jobs), byPosition) {
		if state.Pending(c.new, name) && !state.Pending(before, name) {
			e.want(name, c.at)
		}
	}
	// A holder's write raises ver, an acknowledgement doesn't: that one settles
	// the record itself.
	if state.Unsettled(c.new) && (before == nil || before.Ver != c.new.Ver) {
		e.settle, e.at = true, c.at
	}
	e.image, e.gone = c.new, false
}

func (e *errand) remove(c *change) {
	e.image, e.gone = c.old, true
	for _, name := range slices.SortedFunc(maps.Keys(c.old.Jobs), byPosition) {
		if state.Pending(c.old, name) {
			e.want(name, c.at)
		} else {
			e.lost = append(e.lost, staged{name, c.at})
		}
	}
}

// want notes a job once, at the first record that asks for it.
func (e *errand) want(name string, at int) {
	if !slices.ContainsFunc(e.jobs, func(j staged) bool { return j.name == name }) {
		e.jobs = append(e.jobs, staged{name, at})
	}
}

// parcel is a job of an errand on its way.
type parcel struct {
	errand *errand
	staged
}

// parcels are all jobs of some errands in the order in which they were staged.
func parcels(errands []*errand) []parcel {
	var all []parcel
	for _, e := range errands {
		for _, j := range e.jobs {
			all = append(all, parcel{e, j})
		}
	}
	slices.SortStableFunc(all, func(a, b parcel) int { return cmp.Compare(a.at, b.at) })
	return all
}

func (p parcel) id() string { return jobs.JobID(p.errand.image.ID, p.name) }

func (p parcel) delivery() jobs.Delivery {
	r := p.errand.image
	job := r.Jobs[p.name]
	return jobs.Delivery{
		JobID: p.id(), Operation: r.ID, Kind: job.Kind, Args: job.Args, Group: cmp.Or(job.Group, r.ID), Tries: job.Tries,
		Tenant: r.Tenant,
	}
}
