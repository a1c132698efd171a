package stream

import (
	"time"

	"github.com/samekey/samekey/internal/state"
)

// Report is the result of a [Sweep].
type Report struct {
	// Complete says that the whole table was seen: by [Sweep.List], or by this run
	// of [Sweep.Run] and the earlier runs of its pass.
	Complete bool `json:"complete"`
	// PassBegan is when this run's pass began, and LastPass when the last complete pass ended; zero
	// for none. Overdue says that LastPass is longer ago than [SweepOptions.PassWithin], so some
	// records may be overlooked. Before the first complete pass, PassBegan is used in place of
	// LastPass.
	PassBegan time.Time `json:"pass_began"`
	LastPass  time.Time `json:"last_pass,omitzero"`
	Overdue   bool      `json:"overdue"`
	// Coverage is the share of the table that this pass has seen, from 0 to 1, in whole
	// segments; 1 if the pass is complete.
	Coverage float64 `json:"coverage"`
	// OldestOpen is the claim time of the oldest open operation, in flight or abandoned, that the
	// pass has seen; zero for none.
	OldestOpen time.Time `json:"oldest_open,omitzero"`
	// OpenAge is the time since OldestOpen. PassAge is the time since LastPass; before the first
	// complete pass, it is the time since PassBegan. OpenAge and PassAge are in whole seconds.
	OpenAge int64 `json:"open_age_s"`
	PassAge int64 `json:"pass_age_s"`

	Pages   int `json:"pages"`   // pages this run has read
	Scanned int `json:"scanned"` // items this run has read

	// ByReason counts what the pass has found. While the pass is under way, the counts are at least
	// those of the last pass, so that a gauge doesn't flap with each run. Entries lists what this
	// run has found, up to [SweepOptions.MaxEntries]; for each reason the oldest come first.
	ByReason map[state.Reason]Tally `json:"by_reason"`
	Entries  []Entry                `json:"entries,omitempty"`

	Delivered int `json:"delivered"` // jobs
	LetGo     int `json:"let_go"`    // records that this run let go, as all their jobs are delivered
	Queued    int `json:"queued"`    // tickets for the completer
	MadeStuck int `json:"stuck"`     // operations that this run has marked as stuck
	Emptied   int `json:"emptied"`   // stuck operations whose stored request was removed
	Placed    int `json:"placed"`    // records with a corrected entry in the index of what waits for people

	// Young counts the jobs and operations that are overdue by less than [SweepOptions.Late]. This
	// run has left them to the stream's readers. From YoungUntil on, a sweep handles all of them.
	Young      int       `json:"young"`
	YoungUntil time.Time `json:"young_until,omitzero"`
}

// leaves adds up the jobs and operations that are left to the stream's readers.
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

// age returns the whole seconds from then to now; 0 if then is zero or in the future.
func age(then, now time.Time) int64 {
	if then.IsZero() {
		return 0
	}
	return max(int64(now.Sub(then)/time.Second), 0)
}

// did adds o, the results of a page's work.
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
