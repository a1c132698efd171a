package state

import (
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Reason says why an operation needs people, the worker or its client. A store's index
// of records that wait for people contains the reason of each record.
type Reason string

// The reasons. If a record has several reasons to wait for people, the first in this
// order applies. WaitOf finds this reason, and FoundBySweep finds the reasons of
// abandoned operations.
const (
	NoReason         Reason = ""           // the operation is finished, freed, in flight, or left to its client for now
	ReasonUnknown    Reason = "unknown"    // stuck, with a call in doubt: people find out whether the call was made
	ReasonStuck      Reason = "stuck"      // nobody continues the operation: people settle it
	ReasonBlocked    Reason = "blocked"    // the program refuses to continue: people change the program, or settle the operation
	ReasonParked     Reason = "parked"     // a job that can't be delivered: people redrive it
	ReasonUnreadable Reason = "unreadable" // this program can't understand the record

	ReasonOpen        Reason = "open"        // abandoned, with a stored request: the completer ends it
	ReasonNoRequest   Reason = "no_request"  // abandoned, without a stored request: only the client can end it
	ReasonExpiring    Reason = "expiring"    // abandoned with nothing committed: the record will expire
	ReasonUndelivered Reason = "undelivered" // a job has waited too long for its delivery
	ReasonKept        Reason = "kept"        // the operation is finished and its jobs are delivered, but the record is still kept

	// Only hooks report the next two reasons, because no list can show a record that is
	// gone.
	ReasonExpiredOpen Reason = "expired_open" // the record of an unfinished operation was deleted or replaced
	ReasonJobLost     Reason = "job_lost"     // a record was deleted or replaced while it had a parked job, or a later job that was not yet due
)

// Listing describes a reason for lists, metrics and the page.
type Listing struct {
	Reason Reason   // the reason, as named in lists, filters and the index
	Word   string   // the reason on a row of the page
	Says   string   // the reason as a sentence
	Verbs  []string // commands by which people end the wait; nil if there are none
	Metric string   // the metric that counts the reason; "" for none
	people bool
}

// Reasons has all reasons that a stored record can have. The reasons to wait for people come
// first. Tests compare Reasons with package internal/background/stream, the page,
// docs/operate/background.md and docs/operate/runbook.md.
var Reasons = []Listing{
	{ReasonUnknown, "stuck", "stuck: a call is in doubt", []string{"settle"}, "WaitingUnknown", true},
	{ReasonStuck, "stuck", "stuck: a person decides", []string{"retry", "settle"}, "WaitingStuck", true},
	{ReasonBlocked, "blocked", "blocked: the program refuses to continue", []string{"settle"}, "WaitingBlocked", true},
	{ReasonParked, "job parked", "a job is parked", []string{"redrive"}, "WaitingParked", true},
	{ReasonUnreadable, "unreadable", "unreadable", nil, "WaitingUnreadable", true},

	{ReasonOpen, "abandoned", "abandoned: the completer ends it", nil, "Abandoned", false},
	{ReasonNoRequest, "abandoned", "abandoned: only the client can end it", nil, "Abandoned", false},
	{ReasonExpiring, "expiring", "abandoned: will be forgotten", nil, "", false},
	{ReasonUndelivered, "job late", "a job is late", nil, "Undelivered", false},
	{ReasonKept, "kept", "done, but still kept", nil, "", false},
}

// ReasonNames returns the names of the reasons to wait for people. If people is false,
// ReasonNames returns the names of all other reasons.
func ReasonNames(people bool) (names []string) {
	for _, r := range Reasons {
		if r.people == people {
			names = append(names, string(r.Reason))
		}
	}
	return names
}

// Word names the state of a record as the package's state diagram does: held, abandoned, released,
// stuck, kept, replayable. A missing record, an expired record and a freed key are "free".
func Word(r *store.Record, now time.Time) string {
	switch {
	case r == nil || r.State == store.None || Free(r, now):
		return "free"
	case r.State == store.Stuck:
		return "stuck"
	case r.State == store.Done && r.Keep == store.KeepJobs:
		return "kept"
	case r.State == store.Done:
		return "replayable"
	case r.Lease.After(now):
		return "held"
	case r.Lease.IsZero():
		return "released"
	}
	return "abandoned"
}
