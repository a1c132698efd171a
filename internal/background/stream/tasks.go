package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// tasks is a sweep's work on a page of the table.
type tasks struct {
	entries []Entry
	todos   []*todo
	tickets []jobs.Ticket
	stuck   []*store.Record
	emptied []*store.Record // records stuck for so long that their stored requests are removed

	misplaced  []*store.Record // records with a wrong entry in the index of what waits for people
	unreadable []finding       // unreadable items to list in the index
	reviews    []finding       // findings that are renewed or removed after their items are read again

	oldestOpen time.Time // when the oldest open operation was claimed; zero for none

	young      int       // how many jobs and operations are still left to the stream's readers
	youngUntil time.Time // when the last of them is left to a sweep
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tasks.leave counts a job or an operation that is left to the stream's readers until
// the given time.
func (f *tasks) leave(until time.Time) {
	f.young++
	if until.After(f.youngUntil) {
		f.youngUntil = until
	}
}

func (s *Sweep) look(ctx context.Context, items []item.Map) tasks {
	var f tasks
	for _, it := range items {
		switch rec, why, err := readItem(it); why {
		case "":
			s.examine(&f, rec, s.opt.Now())
			if misplaced(it, rec) {
				f.misplaced = append(f.misplaced, rec)
			}
		case SkipCompanion:
			if known, ok := findingOf(it); ok && !known.noTicket() {
				f.reviews = append(f.reviews, known)
			}
		case SkipUnreadable:
			f.unreadable = append(f.unreadable, finding{pk: item.PK(it), why: err, reason: state.ReasonUnreadable})
			e := Entry{Reason: state.ReasonUnreadable, LastErr: reason(err)}
			if pk := item.PK(it); pk != "" {
				e.PK, e.Record = pk, redact.Record(pk)
			}
			f.entries = append(f.entries, e)
			if s.opt.Hooks.Skipped != nil {
				s.opt.Hooks.Skipped(ctx, Skipped{Reason: why, Record: e.Record, Err: err})
			}
		default: // no record
		}
	}
	return f
}

func (s *Sweep) examine(f *tasks, r *store.Record, now time.Time) {
	if r.State == store.Open && !state.Freed(r) && (f.oldestOpen.IsZero() || r.Created.Before(f.oldestOpen)) {
		f.oldestOpen = r.Created
	}
	s.examineJobs(f, r, now)
	found, since := state.FoundBySweep(r, now, s.opt.Grace)
	if state.Completable(r) && !state.Overheld(r, now) && now.Sub(since) <= s.opt.Late {
		f.leave(since.Add(s.opt.Late))
	}
	if found == state.NoReason {
		return
	}
	why := found
	if r.Blocked {
		why = state.ReasonBlocked
	}
	f.entries = append(f.entries, entry(why, r))
	switch {
	case r.State == store.Stuck && state.RequestOutlived(r, now):
		f.emptied = append(f.emptied, r)
	case found == state.ReasonOpen && !state.Overheld(r, now) && now.Sub(since) > s.opt.Late:
		f.tickets = append(f.tickets, state.TicketFor(r).From(now))
	case found == state.ReasonNoRequest && now.After(state.LeftUntil(r)):
		f.stuck = append(f.stuck, r)
	}
}

func (s *Sweep) examineJobs(f *tasks, r *store.Record, now time.Time) {
	late := func(since time.Time) bool { return now.Sub(since) > s.opt.Late }
	t := &todo{image: r, letGo: late(r.Run) && state.NoJobsLeft(r)}
	for _, name := range slices.SortedFunc(maps.Keys(r.Jobs), byPosition) {
		switch {
		case !state.Pending(r, name):
			f.entries = append(f.entries, jobEntry(state.ReasonParked, r, name))
		case late(r.Run) && late(r.Jobs[name].At):
			f.entries = append(f.entries, jobEntry(state.ReasonUndelivered, r, name))
			t.jobs = append(t.jobs, jobRef{name: name})
		case !state.Later(r.Jobs[name], now):
			f.leave(later(r.Run, r.Jobs[name].At).Add(s.opt.Late))
		}
	}
	if t.letGo {
		f.entries = append(f.entries, entry(state.ReasonKept, r))
	}
	if t.letGo || len(t.jobs) > 0 {
		f.todos = append(f.todos, t)
	}
}

// Sweep.act carries out the tasks, as far as the options allow. It returns the keys of
// the records for which a task failed.
func (s *Sweep) act(ctx context.Context, f tasks, rep *Report) (failed []string, _ error) {
	var errs []error
	note := func(pk string, err error) {
		if err != nil {
			errs = append(errs, err)
			failed = append(failed, pk)
		}
	}
	var jobs []*todo
	for _, t := range f.todos {
		switch {
		case t.letGo:
			err := s.jobs.letGo(ctx, t.image)
			if err == nil {
				rep.LetGo++
			}
			note(t.image.PK, err)
		case s.opt.Drain != nil:
			jobs = append(jobs, t)
		}
	}
	if len(jobs) > 0 {
		_, n := s.opt.Drain.run(ctx, jobs) // run logs failures
		rep.Delivered += n
		for _, t := range jobs {
			if t.retry {
				failed = append(failed, t.image.PK)
			}
		}
		down := s.down(jobs)
		for _, kind := range slices.Sorted(maps.Keys(down)) {
			of := down[kind]
			note(of.pk, s.jobs.suspect(ctx, of, s.opt.Now(), s.opt.PassWithin))
		}
	}
	if s.opt.Queue != nil && len(f.tickets) > 0 {
		for i, err := range errlist.Pad(s.opt.Queue.Put(ctx, f.tickets), len(f.tickets)) {
			if note(f.tickets[i].PK, err); err != nil {
				continue
			}
			rep.Queued++
			if s.opt.Hooks.Queued != nil {
				s.opt.Hooks.Queued(ctx, f.tickets[i])
			}
		}
	}
	uncovered := make(map[string]finding)
	for _, r := range f.stuck {
		note(r.PK, s.markStuck(ctx, r, rep, uncovered))
	}
	for _, key := range slices.Sorted(maps.Keys(uncovered)) {
		of := uncovered[key]
		note(of.pk, s.jobs.list(ctx, of, s.opt.Now()))
	}
	for _, r := range f.emptied {
		note(r.PK, s.empty(ctx, r, rep))
	}
	for _, r := range f.misplaced {
		err := s.jobs.place(ctx, r)
		if err == nil {
			rep.Placed++
		}
		note(r.PK, err)
	}
	for _, u := range f.unreadable {
		note(u.pk, s.jobs.list(ctx, u, s.opt.Now()))
	}
	for _, u := range f.reviews {
		note(u.itsPK(), s.jobs.review(ctx, u, s.opt.Now(), s.opt.Grace))
	}
	slices.Sort(failed)
	return slices.Compact(failed), errors.Join(errs...) // a record is in failed twice if two of its tasks failed
}

// patience is how long a sink may be down for a kind of job. After that, the kind is
// listed for people. No job is parked meanwhile, since no tries are counted while a
// sink is down.
const patience = time.Hour

// Sweep.down returns a finding for each kind that meets two conditions: its sink was
// down for all of the kind's jobs in todos, and one of these jobs has waited for longer
// than patience. The map's keys are the kinds.
func (s *Sweep) down(todos []*todo) map[string]finding {
	all, took := make(map[string]finding), make(map[string]bool)
	for _, t := range todos {
		for _, j := range t.jobs {
			kind := t.image.Jobs[j.name].Kind
			switch why := t.down[kind]; {
			case why == nil:
				took[kind] = true
			case s.opt.Now().Sub(later(t.image.Run, t.image.Jobs[j.name].At)) > patience:
				all[kind] = finding{pk: t.image.PK, key: kindPK(kind), kind: kind, why: fmt.Errorf("jobs of kind %q wait: %w", kind, why), reason: state.ReasonBlocked}
			}
		}
	}
	maps.DeleteFunc(all, func(kind string, _ finding) bool { return took[kind] })
	return all
}

// markStuck marks an operation as stuck. If the operation's namespace is not this
// worker's, and no worker has ended the operation within PassWithin, markStuck adds a
// finding about the namespace to the map uncovered.
func (s *Sweep) markStuck(ctx context.Context, r *store.Record, rep *Report, uncovered map[string]finding) error {
	if s.opt.MarkStuck == nil {
		return nil
	}
	err := s.opt.MarkStuck(ctx, state.TicketFor(r), "its request was not stored, and no client has come back for it")
	switch {
	case errors.Is(err, jobs.ErrMoved), errors.Is(err, idem.ErrInFlight):
		return nil // the record has moved on, or an attempt holds it
	case errors.Is(err, jobs.ErrNotMine):
		if s.opt.Now().Before(state.LeftUntil(r).Add(s.opt.PassWithin)) {
			return nil // left to the sweep that marks operations of this namespace
		}
		key := namespacePK(state.Namespace(r.PK))
		uncovered[key] = finding{pk: r.PK, key: key, why: fmt.Errorf("nobody has ended it within %v: %w", s.opt.PassWithin, err), reason: state.ReasonBlocked}
		return nil
	case err != nil:
		return err
	}
	rep.MadeStuck++
	if s.opt.Hooks.MadeStuck != nil {
		s.opt.Hooks.MadeStuck(ctx, entry(state.ReasonStuck, r))
	}
	return nil
}

// Sweep.empty removes the stored request of a stuck operation, and the request's
// companions. If an operator has settled the operation meanwhile, the record has a new
// version. The write of empty is then refused, and the request stays.
func (s *Sweep) empty(ctx context.Context, r *store.Record, rep *Report) error {
	if s.opt.MarkStuck == nil {
		return nil // this sweep only lists operations
	}
	next := state.Emptied(r)
	state.Stamp(next, r, rand.Text()) // a fence
	held, err := s.store.Commit(ctx, store.Commit{Prev: r, Next: next})
	if err != nil || held != nil {
		return err
	}
	rep.Emptied++
	return nil
}
