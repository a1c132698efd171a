package records

import (
	"slices"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// How an attempt can end.
const (
	endAnswered = "answered"
	endReleased = "released"
	endDied     = "died"
	endStuck    = "stuck"
	endWorking  = "working"
	endUnknown  = "unknown"
)

// attempts lists the operation's attempts, as the claim and the handovers (take-overs
// and releases) in the record show them.
func attempts(r *store.Record, o StoryOptions) []Attempt {
	first := Attempt{By: "client", Began: r.Created.UTC()}
	if len(r.Handovers) == 0 {
		first.Function = r.Handler.Function
	}
	all := []Attempt{first}
	if dropped(r) {
		all[0].End, all[0].Note = endUnknown, "the record no longer lists the attempts that followed this attempt"
	}
	for _, h := range r.Handovers {
		last := &all[len(all)-1]
		if h.Kind == state.HandoverRelease || h.Kind == state.HandoverWithheld {
			if last.End != "" {
				// The take-over before this release is missing: the record dropped it, or
				// an earlier version of Samekey didn't write it.
				all = append(all, Attempt{By: endUnknown})
				last = &all[len(all)-1]
			}
			last.End, last.Ended, last.Error = endReleased, h.At.UTC(), h.Err
			continue
		}
		switch {
		case last.End != "":
		case settledBetween(r, last.Began, h.At):
			last.End = endStuck
		default:
			last.End = endDied
		}
		all = append(all, Attempt{By: h.Kind, Began: h.At.UTC(), Function: h.Function})
	}
	return ended(r, all, o.Now)
}

// dropped reports whether the record has so many handovers that older handovers may be
// lost.
func dropped(r *store.Record) bool { return len(r.Handovers) >= 10 }

// ended derives the end of the last attempt from the record's state. If an attempt took
// over without a handover, ended first adds this attempt.
func ended(r *store.Record, all []Attempt, now time.Time) []Attempt {
	last := &all[len(all)-1]
	if last.End != "" && r.State == store.Open && !r.Lease.IsZero() || len(r.Handovers) == 0 && taken(r) {
		// an earlier version of Samekey wrote no handover
		if last.End == "" {
			last.End, last.Note = endUnknown, "the record lacks the attempts between this attempt and the most recent one"
		}
		all = append(all, Attempt{By: endUnknown, Began: r.Run.UTC(), Function: r.Handler.Function})
		last = &all[len(all)-1]
	}
	if last.End != "" {
		return all
	}
	switch {
	case r.State == store.Done:
		last.End = endAnswered
		if byPeople(r) {
			last.End, last.Note = endStuck, "a person gave the answer"
		}
		if r.Keep == store.KeepJobs {
			last.Ended = r.Run.UTC()
		}
	case r.State == store.Stuck:
		last.End, last.Error = endStuck, r.LastErr
	case r.Lease.After(now):
		last.End = endWorking
	case r.Lease.IsZero() && settledBetween(r, last.Began, now):
		last.End = endStuck
	case r.Lease.IsZero():
		last.End, last.Ended, last.Error = endReleased, r.Run.UTC(), r.LastErr
	default:
		last.End, last.Note = endDied, "the lease ended at "+plain.Time(r.Lease)
	}
	return all
}

// settledBetween reports whether a person settled the stuck operation between the times
// from and to. An attempt began at from. The next attempt began at to; without a next
// attempt, to is now. If settledBetween is true, the attempt didn't die: it left the
// operation stuck.
func settledBetween(r *store.Record, from, to time.Time) bool {
	return slices.ContainsFunc(r.Settled, func(d store.Decision) bool {
		return d.From == "stuck" && !d.At.Before(from) && !d.At.After(to)
	})
}

// taken reports whether an attempt took over a record that has no handovers. There are
// two signs: the lease belongs to an attempt that began after the claim, or a completer
// has counted a try.
func taken(r *store.Record) bool {
	return r.Tries > 0 || r.State == store.Open && !r.Lease.IsZero() && r.Run.After(r.Created)
}
