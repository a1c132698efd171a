package stream

import (
	"time"

	"github.com/samekey/samekey/internal/state"
)

// Report is the result of a [Sweep].
type Report struct {
	// Complete says that the whole table was seen. [Sweep.List] sees it in one run,
	// [Sweep.Run] in one or more runs of a pass.
	Complete bool `json:"complete"`
	// PassBegan is when this run's pass began. LastPass is when the last complete pass
	// ended; zero if there was none. Overdue says that more than
	// [SweepOptions.PassWithin] has passed since LastPass, so that some records may be
	// overlooked. Before the first complete pass, the time since PassBegan counts.
	// [Sweep.List] sets neither LastPass nor Overdue.
	PassBegan time.Time `json:"pass_began"`
	LastPass  time.Time `json:"last_pass,omitzero"`
	Overdue   bool      `json:"overdue"`
	// Coverage is the share of the table's segments that this pass has read to the end; 1 if the
	// pass is complete.
	Coverage float64 `json:"coverage"`
	// OldestOpen is the claim time of the oldest open operation that the pass has seen,
	// in flight or abandoned; zero if there is none. Until the pass is complete,
	// operations that the last pass saw count too.
	OldestOpen time.Time `json:"oldest_open,omitzero"`
	// OpenAge is the time since OldestOpen. PassAge is the time since LastPass; before the first
	// complete pass, it is the time since PassBegan. OpenAge and PassAge are in whole seconds.
	OpenAge int64 `json:"open_age_s"`
	PassAge int64 `json:"pass_age_s"`

	Pages   int `json:"pages"`   // pages this run has read
	Scanned int `json:"scanned"` // items this run has read

	// ByReason counts what the pass has found. Until the pass is complete, each count
	// is at least that of the last pass, because a new pass has seen little of the
	// table. Entries lists what this run has found, up to [SweepOptions.MaxEntries].
	// They are sorted by reason, then oldest first.
	ByReason map[state.Reason]Tally `json:"by_reason"`
	Entries  []Entry                `json:"entries,omitempty"`

	Delivered int `json:"delivered"` // jobs
	LetGo     int `json:"let_go"`    // records that this run let go, since all their jobs are delivered
	Queued    int `json:"queued"`    // tickets for the completer
	MadeStuck int `json:"stuck"`     // operations that this run has marked as stuck
	Emptied   int `json:"emptied"`   // stuck operations whose stored request was removed
	Placed    int `json:"placed"`    // records whose entry in the index of what waits for people was corrected

	// Young counts the jobs and operations that this run has left to the stream's
	// readers, because the readers are not late by [SweepOptions.Late] yet. From
	// YoungUntil on, a sweep handles those that the readers have still not handled.
	Young      int       `json:"young"`
	YoungUntil time.Time `json:"young_until,omitzero"`
}

// Report.leaves adds to r the jobs and operations in f that are left to the stream's
// readers.
func (r *Report) leaves(f *tasks) {
	r.Young += f.young
	if f.youngUntil.After(r.YoungUntil) {
		r.YoungUntil = f.youngUntil
	}
}

// Tally counts entries of one reason.
type Tally struct {
	Count int `json:"count"`
	// Oldest is the age of the oldest of these entries, in whole seconds.
	Oldest int64 `json:"oldest_s"`
}

// age returns the time from then to now in whole seconds; 0 if then is zero or after
// now.
func age(then, now time.Time) int64 {
	if then.IsZero() {
		return 0
	}
	return max(int64(now.Sub(then)/time.Second), 0)
}

// Report.did adds o, the report of the work on one page, to r.
func (r *Report) did(o *Report) {
	r.Delivered += o.Delivered
	r.LetGo += o.LetGo
	r.Queued += o.Queued
	r.MadeStuck += o.MadeStuck
	r.Emptied += o.Emptied
	r.Placed += o.Placed
}

func (r *Report) list(entries []Entry, limit int) {
	r.Entries = append(r.Entries, entries[:min(len(entries), max(limit-len(r.Entries), 0))]...)
}
