package stream

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// todo is the drain's work on one operation of a batch.
type todo struct {
	image     *store.Record    // the newest image in the batch, or the record if it was read since
	time      time.Time        // the time of the image; if gone, the time of the removal
	gone      bool             // the record is no longer in the table
	jobs      []jobRef         // to be delivered
	lost      []jobRef         // jobs that were parked, or waited for their time, when their record was deleted
	letGo     bool             // whether the drain lets the record go: it was kept for jobs, and has none left
	letGoAt   int              // the index of the change that set letGo
	later     []jobRef         // jobs with a time: their tickets deliver them
	heldBack  []jobRef         // jobs that wait for an earlier job of their group
	retry     bool             // set by Drain.run: whether a stream record must be retried
	retryFrom int              // set by Drain.run: the index of the first such stream record; none if there is none
	down      map[string]error // the error of each sink that is down, by the kind of job
}

// heldBackFrom returns the index of the first stream record with a job that is held back.
func (t *todo) heldBackFrom() int {
	first := none
	for _, j := range t.heldBack {
		first = min(first, j.at)
	}
	return first
}

// jobRef names a job, and the stream record that staged it.
type jobRef struct {
	name string
	at   int // the index of the stream record in the batch
}

// netted combines the changes of a batch into one todo for each operation. A job is
// delivered if it is pending in a change's new image, but not in the old image. (The
// drain's own writes make no job pending, so they cause no deliveries.) A job is also
// delivered if it is pending in a removed record. A job is left out if a later image of
// the batch shows that it is no longer pending.
func netted(changes []change) []*todo {
	type id struct{ pk, operation string }
	index := make(map[id]*todo)
	var all []*todo
	of := func(r *store.Record) *todo {
		key := id{r.PK, r.ID}
		if index[key] == nil {
			index[key] = &todo{}
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
	for _, t := range all {
		t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool { return !state.Pending(t.image, j.name) })
		t.letGo = t.letGo && !t.gone && state.NoJobsLeft(t.image)
	}
	return slices.DeleteFunc(all, func(t *todo) bool { return len(t.jobs)+len(t.lost) == 0 && !t.letGo })
}

func (t *todo) add(c *change) {
	before := c.before()
	for _, name := range slices.SortedFunc(maps.Keys(c.new.Jobs), byPosition) {
		if state.Pending(c.new, name) && !state.Pending(before, name) {
			t.want(name, c.at)
		}
	}
	// If Ver is the same, a drain made the change when it acknowledged jobs. The same
	// drain also lets the record go.
	if state.NoJobsLeft(c.new) && (before == nil || before.Ver != c.new.Ver) {
		t.letGo, t.letGoAt = true, c.at
	}
	t.image, t.time, t.gone = c.new, c.time, false
}

func (t *todo) remove(c *change) {
	t.image, t.time, t.gone = c.old, c.time, true
	for _, name := range slices.SortedFunc(maps.Keys(c.old.Jobs), byPosition) {
		if state.Pending(c.old, name) {
			t.want(name, c.at)
		} else {
			t.lost = append(t.lost, jobRef{name, c.at})
		}
	}
}

// The stream's times are whole seconds, so a change may have been made up to wholeSecond after the
// time of its stream record. If a job was due in the second in which its record was removed, it is
// delivered rather than lost.
const wholeSecond = time.Second - time.Millisecond

// putOff removes later jobs from t.jobs, because their tickets deliver them. The drain
// doesn't deliver a later job from an image, even if the job's time has come: an
// operator may have cancelled the job after the image was made.
//
// If the record was deleted, no ticket can deliver its later jobs. A job then stays in
// t.jobs if its time had come or its delivery had begun. Otherwise the job is lost.
func (t *todo) putOff(now time.Time) {
	if removed := t.time.Add(wholeSecond); t.gone && !t.time.IsZero() && removed.Before(now) {
		now = removed
	}
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool {
		job := t.image.Jobs[j.name]
		switch {
		case job.At.IsZero(), t.gone && (!state.Later(job, now) || !job.Begun.IsZero()):
			return false
		case t.gone:
			t.lost = append(t.lost, j)
		default:
			t.later = append(t.later, j)
		}
		return true
	})
}

// todo.ready removes from t.jobs the jobs whose time has not come.
func (t *todo) ready(now time.Time) {
	t.jobs = slices.DeleteFunc(t.jobs, func(j jobRef) bool { return state.Later(t.image.Jobs[j.name], now) })
}

// todo.times returns the distinct times of the jobs in t.later.
func (t *todo) times() (all []time.Time) {
	for _, j := range t.later {
		all = append(all, t.image.Jobs[j.name].At)
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// todo.want adds a job to t.jobs, unless t.jobs has the job already.
func (t *todo) want(name string, at int) {
	if !slices.ContainsFunc(t.jobs, func(j jobRef) bool { return j.name == name }) {
		t.jobs = append(t.jobs, jobRef{name, at})
	}
}

// byPosition compares names of jobs by the order in which the jobs were staged: "2.0" is before
// "10.0".
func byPosition(a, b string) int {
	pa, ia, okA := position(a)
	pb, ib, okB := position(b)
	if !okA || !okB {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(ia, ib))
}

func position(name string) (phase, index int, ok bool) {
	p, i, _ := strings.Cut(name, ".")
	phase, err1 := strconv.Atoi(p)
	index, err2 := strconv.Atoi(i)
	return phase, index, err1 == nil && err2 == nil
}
