package records

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/shape"
	"github.com/samekey/samekey/internal/state"
)

func phases(r *store.Record, data bool) []Phase {
	all := make([]Phase, len(r.Phases))
	before := time.Duration(0)
	known := true // the time of the previous phase is known
	for i, p := range r.Phases {
		all[i] = Phase{Name: p.Name, Unknown: p.Intent, Reads: shape.Example(p.Shape)}
		if p.At > 0 {
			all[i].Committed = r.Created.Add(p.At).UTC()
			if known && !p.Intent { // a call in doubt has only a start time
				all[i].TookMS = max(p.At-before, time.Millisecond).Milliseconds()
			}
		}
		before, known = p.At, p.At > 0
		if data && json.Valid(p.Result) {
			all[i].Result = p.Result
		}
	}
	return all
}

// jobsOf returns the jobs that are not delivered, in the order in which they were
// staged.
func jobsOf(r *store.Record, now time.Time, data bool) []Job {
	all := make([]Job, 0, len(r.Jobs))
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		j := r.Jobs[name]
		job := Job{ID: state.JobID(r.ID, name), Name: name, Kind: j.Kind, Group: j.Group, State: "waiting", Tries: j.Tries, Error: j.Failed}
		switch {
		case !state.Pending(r, name):
			job.State = "parked"
		case state.Later(j, now):
			job.State, job.At = "later", j.At.UTC()
		}
		if n, _ := position(name); n >= 0 && n < len(r.Phases) {
			job.Phase = r.Phases[n].Name
		}
		if data && json.Valid(j.Args) {
			job.Args = j.Args
		}
		all = append(all, job)
	}
	return all
}

// position splits the name of a job into the number of the phase and the index of the
// job.
func position(name string) (phase, index int) {
	p, i, _ := strings.Cut(name, ".")
	phase, err := strconv.Atoi(p)
	index, err2 := strconv.Atoi(i)
	if err != nil || err2 != nil {
		return -1, -1
	}
	return phase, index
}

func byPosition(a, b string) int {
	pa, ia := position(a)
	pb, ib := position(b)
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(ia, ib), cmp.Compare(a, b))
}

// byPeople reports whether a person gave the answer. It searches all decisions, because
// the latest decision may be about jobs.
func byPeople(r *store.Record) bool {
	return slices.ContainsFunc(r.Settled, func(d store.Decision) bool { return strings.HasPrefix(d.What, "answer ") })
}

func answer(r *store.Record, o StoryOptions) *Answer {
	if r.Response == nil {
		return nil
	}
	a := &Answer{Status: r.Response.Status, Until: state.Lifetime(r).UTC(), Bytes: len(r.Response.Body), Stored: "in the record"}
	if over := r.Overflow; over != nil {
		a.Bytes, a.Stored = over.Length, "in other items"
		if over.Count == 0 {
			a.Stored = "status only"
		}
	}
	a.Settled = byPeople(r)
	if r.Response.Status == 0 {
		a.Stored = "sealed"
	}
	if o.Data && o.Sealed == "" {
		a.Header, a.Body = r.Response.Header, string(r.Response.Body)
	}
	return a
}

func request(r *store.Record, o StoryOptions) *Request {
	in := r.Input
	switch {
	case in == nil:
		return nil
	case !o.Data, o.Sealed != "":
		return &Request{Method: in.Method}
	}
	return &Request{in.Method, in.Path, in.Query, in.Header, string(in.Body)}
}

// Cost is what an operation has cost so far. It contains only what the record shows.
type Cost struct {
	// Writes is the number of writes by attempts and operators, without redrive and
	// cancel. It is exact, because the record counts these writes.
	Writes int64 `json:"writes"`
	// Bytes estimates the present size of the record. Units estimates the write units
	// of Writes, as if each write had the record's present size and were outside a
	// transaction.
	Bytes int   `json:"bytes_estimate"`
	Units int64 `json:"write_units_estimate"`
	// Note says what is not counted.
	Note string `json:"note"`
}

// unit is the number of bytes that one write unit pays for.
const unit = 1024

// attributes is the rough size of the attributes that every record has.
const attributes = 260

func costOf(r *store.Record) Cost {
	n := attributes + len(r.PK) + len(r.Route) + len(r.Scope) + len(r.LastErr) + len(r.Handler.Function) + len(r.Handler.Name)
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result) + 12
	}
	for name, j := range r.Jobs {
		n += len(name) + len(j.Kind) + len(j.Args) + len(j.Group) + len(j.Failed) + 12
	}
	for call := range r.Calls {
		n += len(call) + 3
	}
	if in := r.Input; in != nil {
		n += len(in.Method) + len(in.Path) + len(in.Query) + len(in.Snapshot) + header(in.Header)
		if in.Overflow == nil {
			n += len(in.Body)
		}
	}
	if re := r.Response; re != nil {
		n += header(re.Header)
		if r.Overflow == nil {
			n += len(re.Body)
		}
	}
	return Cost{
		Writes: r.Ver, Bytes: n, Units: r.Ver * int64((n+unit-1)/unit),
		Note: "not counted: reads, refused writes, deliveries of jobs, parts of large bodies, your own writes in phases, and the double price of each write in a transaction",
	}
}

func header(h map[string][]string) (n int) {
	for name, values := range h {
		n += len(name) + len(strings.Join(values, ""))
	}
	return n
}
