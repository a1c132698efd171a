package stream

import "time"

// Report is what a [Sweep] found and did.
type Report struct {
	// Complete says that the whole table was seen: by [Sweep.List], or by this run
	// of [Sweep.Run] and those before it, which ends the pass.
	Complete bool `json:"complete"`
	// PassBegan is when the pass began that this run was part of, and LastPass when
	// the last one came to its end; zero for none. Overdue says that this is longer
	// ago than it should be ([SweepOptions.PassWithin]), or that there has been none
	// for as long: there are records that nobody looks at.
	PassBegan time.Time `json:"pass_began"`
	LastPass  time.Time `json:"last_pass,omitzero"`
	Overdue   bool      `json:"overdue"`
	Pages     int       `json:"pages"`
	Scanned   int       `json:"scanned"` // items looked at

	// ByWhy counts what was found, and Entries lists it, as far as the list may
	// go: the oldest first for each reason.
	ByWhy   map[Why]Tally `json:"by_why"`
	Entries []Entry       `json:"entries,omitempty"`

	Delivered int `json:"delivered"` // jobs
	LetGo     int `json:"settled"`   // records that no longer have to be kept
	Queued    int `json:"queued"`    // tickets for the completer
	GivenUp   int `json:"given_up"`  // operations that are stuck now
}

// Tally counts entries of one reason.
type Tally struct {
	Count int `json:"count"`
	// Oldest is the greatest age among them, in whole seconds.
	Oldest int64 `json:"oldest_s"`
}

func (r *Report) add(e Entry, now time.Time, limit int) {
	t := r.ByWhy[e.Why]
	t.Count++
	if !e.Run.IsZero() {
		t.Oldest = max(t.Oldest, int64(e.Age(now)/time.Second))
	}
	r.ByWhy[e.Why] = t
	if len(r.Entries) < limit {
		r.Entries = append(r.Entries, e)
	}
}
