// Package stats counts the records of a table.
package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Report holds the counts of a table, or of a sample of its items.
type Report struct {
	Table string    `json:"table"`
	At    time.Time `json:"at"`
	// Items and Bytes are DynamoDB's own counts, up to six hours old.
	Items int64 `json:"items_about"`
	Bytes int64 `json:"bytes_about"`
	// Seen is the number of items that were read. If Whole is false, only a sample of
	// the table was read.
	Seen  int64 `json:"seen"`
	Whole bool  `json:"whole"`

	Records    int `json:"records"`
	Others     int `json:"others"` // items that are not records: companions, and the sweep's positions
	Unreadable int `json:"unreadable"`

	States    []*Count `json:"states"`
	Routes    []*Count `json:"routes"`
	Ages      []*Count `json:"ages"`
	Retention []*Kept  `json:"retention"` // retention of finished records, by function
	Needs     []*Need  `json:"fingerprints"`

	Jobs   int `json:"jobs_waiting"`
	Later  int `json:"jobs_later"` // later jobs that are not due
	Parked int `json:"jobs_parked"`
	// Waiting counts the operations and jobs that wait for people. Waiting is for the
	// whole table, even if Whole is false. Waiting is nil if the table lacks the index
	// "waiting".
	Waiting *stream.Counted `json:"waiting_for_people,omitempty"`

	MeanBytes int `json:"record_bytes_mean"`
	MostBytes int `json:"record_bytes_most"`
	OverKB    int `json:"records_over_1_kb"` // records over 1 KB: each of their writes takes more than one write unit

	OldestOpen       time.Time `json:"oldest_open,omitzero"` // when the oldest open operation was claimed
	OldestOpenRecord string    `json:"oldest_open_record,omitempty"`

	// WriteUnits estimates the write units of a month. The estimate is 30 times the
	// write units of the records that were claimed in the last day.
	WriteUnits int64 `json:"write_units_a_month_about"`

	bytes, units int64
	now          time.Time
	grace        time.Duration
	states       map[[2]string]*Count
	routes       map[string]*Count
	ages         map[int]*Count
	kept         map[string]*Kept
	needs        map[Need]*Need // the keys have only Secret and Scheme
}

// Count is a number of records.
type Count struct {
	Name  string `json:"name"`
	Cause string `json:"cause,omitempty"`
	Count int    `json:"count"`
}

// Kept has the shortest and the longest time for which a function's answers are kept.
// Both times are in seconds, rounded to minutes. A time begins at the start of the
// attempt, so the time includes the attempt's duration. For an answer with jobs, the
// time begins at the answer.
type Kept struct {
	Function string `json:"function"`
	Least    int64  `json:"least_s"`
	Most     int64  `json:"most_s"`
	Count    int    `json:"count"`
}

// Need counts the records whose fingerprints need the same secret and scheme.
type Need struct {
	Secret string `json:"secret"` // "": fingerprints without a secret
	Scheme string `json:"scheme"` // "": the default
	Count  int    `json:"count"`
	// Open is the number of records that have no expiry yet, because their work isn't
	// finished. These records need the secret and the scheme until they have expired.
	Open  int       `json:"open"`
	Until time.Time `json:"until,omitzero"` // when the last of the records with an expiry expires
}

// New returns an empty report. The parameter grace is how long after the end of a lease
// the completer waits for the client's retry.
func New(table string, now time.Time, grace time.Duration) *Report {
	return &Report{
		Table: table, At: now, now: now, grace: grace,
		states: make(map[[2]string]*Count), routes: make(map[string]*Count), ages: make(map[int]*Count),
		kept: make(map[string]*Kept), needs: make(map[Need]*Need),
	}
}

// ages are the classes of age, with their upper limits.
var ages = []struct {
	name string
	most time.Duration
}{
	{"up to 1 hour", time.Hour},
	{"up to 1 day", 24 * time.Hour},
	{"up to 7 days", 7 * 24 * time.Hour},
	{"up to 30 days", 30 * 24 * time.Hour},
	{"older", 1<<63 - 1},
}

// Add counts an item.
func (rep *Report) Add(it records.Item) {
	switch {
	case it.Err != nil:
		rep.Unreadable++
		return
	case it.Record == nil:
		rep.Others++
		return
	}
	r := it.Record
	rep.Records++
	name, cause := string(r.State), why(r, rep.now, rep.grace)
	count(rep.states, [2]string{name, cause}, Count{Name: name, Cause: cause})
	count(rep.routes, r.Route, Count{Name: r.Route})
	age := rep.now.Sub(r.Created)
	class := slices.IndexFunc(ages, func(a struct {
		name string
		most time.Duration
	},
	) bool {
		return age <= a.most
	})
	count(rep.ages, class, Count{Name: ages[class].name})
	rep.size(it.Size, r, age)
	rep.work(r)
	rep.keep(r)
	rep.need(r)
}

func count[K comparable](all map[K]*Count, key K, fresh Count) {
	if all[key] == nil {
		all[key] = &fresh
	}
	all[key].Count++
}

// onlyLater reports whether all jobs of a record are later jobs that are not due.
func onlyLater(r *store.Record, now time.Time) bool {
	for _, j := range r.Jobs {
		if j.Failed != "" || !state.Later(j, now) {
			return false
		}
	}
	return len(r.Jobs) > 0
}

// why returns the cause of a record's state, in words for people.
func why(r *store.Record, now time.Time, grace time.Duration) string {
	waiting, _ := state.FoundBySweep(r, now, grace)
	switch {
	case r.State == store.Done && r.Keep == store.KeepJobs && onlyLater(r, now):
		return "with later jobs"
	case r.State == store.Done && r.Keep == store.KeepJobs:
		return "with undelivered jobs"
	case r.State == store.Done && !r.Expires.After(now):
		return "expired"
	case r.State == store.Done:
		return "replayable"
	case r.Blocked:
		return "blocked: the program refuses to continue"
	}
	switch waiting {
	case state.ReasonStuck, state.ReasonUnknown:
		return "waits for people"
	case state.ReasonOpen:
		return "waits for the completer"
	case state.ReasonNoRequest:
		return "waits for the client"
	case state.ReasonExpiring:
		return "abandoned, expires"
	default: // no reason, since blocked records are handled above
	}
	switch {
	case r.Lease.After(now):
		return "at work"
	case state.Freed(r):
		return "freed"
	}
	return "abandoned a moment ago"
}

func (rep *Report) size(n int, r *store.Record, age time.Duration) {
	rep.bytes += int64(n)
	rep.MostBytes = max(rep.MostBytes, n)
	kb := (n + 1023) / 1024
	if kb > 1 {
		rep.OverKB++
	}
	if age <= 24*time.Hour { // r.Ver is the number of writes by the record's holders
		rep.units += r.Ver * int64(kb)
	}
}

func (rep *Report) work(r *store.Record) {
	for _, j := range r.Jobs {
		switch {
		case j.Failed != "":
			rep.Parked++
		case state.Later(j, rep.now):
			rep.Later++
		default:
			rep.Jobs++
		}
	}
	if r.State == store.Open && !state.Freed(r) && (rep.OldestOpen.IsZero() || r.Created.Before(rep.OldestOpen)) {
		rep.OldestOpen, rep.OldestOpenRecord = r.Created, redact.Record(r.PK)
	}
}

func (rep *Report) keep(r *store.Record) {
	if r.State != store.Done || r.Run.IsZero() {
		return
	}
	d := int64(state.Lifetime(r).Sub(r.Run).Round(time.Minute) / time.Second)
	if d <= 0 { // no lifetime: the record never expires, its key was freed, or another program wrote it
		return
	}
	k := rep.kept[r.Handler.Function]
	if k == nil {
		k = &Kept{Function: r.Handler.Function, Least: d, Most: d}
		rep.kept[r.Handler.Function] = k
	}
	k.Least, k.Most, k.Count = min(k.Least, d), max(k.Most, d), k.Count+1
}

func (rep *Report) need(r *store.Record) {
	if !r.Expires.IsZero() && !r.Expires.After(rep.now) {
		return // the key is free, so the fingerprint is no longer compared
	}
	by := Need{Secret: r.Secret, Scheme: r.Scheme}
	s := rep.needs[by]
	if s == nil {
		one := by
		s = &one
		rep.needs[by] = s
	}
	s.Count++
	if r.Expires.IsZero() {
		s.Open++
	} else if r.Expires.After(s.Until) {
		s.Until = r.Expires
	}
}

// End finishes the report. If the items were a sample, End scales the monthly figures to
// the whole table.
func (rep *Report) End(seen int64, whole bool) {
	rep.Seen, rep.Whole = seen, whole
	most := func(a, b *Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cause, b.Cause))
	}
	rep.States = slices.SortedFunc(maps.Values(rep.states), func(a, b *Count) int { return cmp.Or(cmp.Compare(a.Name, b.Name), most(a, b)) })
	rep.Routes = slices.SortedFunc(maps.Values(rep.routes), most)
	rep.Ages = []*Count{}
	for i := range ages {
		if c := rep.ages[i]; c != nil {
			rep.Ages = append(rep.Ages, c)
		}
	}
	rep.Retention = slices.SortedFunc(maps.Values(rep.kept), func(a, b *Kept) int { return cmp.Compare(a.Function, b.Function) })
	rep.Needs = slices.SortedFunc(maps.Values(rep.needs), func(a, b *Need) int { return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Scheme, b.Scheme)) })
	if rep.Records > 0 {
		rep.MeanBytes = int(rep.bytes / int64(rep.Records))
	}
	scale := 1.0
	if !whole && seen > 0 && rep.Items > seen {
		scale = float64(rep.Items) / float64(seen)
	}
	rep.WriteUnits = int64(float64(rep.units) * 30 * scale)
}
