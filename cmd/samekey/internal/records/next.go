package records

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/shape"
	"github.com/samekey/samekey/internal/state"
)

// next returns a sentence about the state of the operation, and the events that may
// follow.
func next(r *store.Record, o StoryOptions) (summary string, all []Next) {
	switch state.Word(r, o.Now) {
	case "free":
		return free(r)
	case "stuck":
		return stuck(r, o.Now)
	case "held":
		return held(r, o)
	case "abandoned", "released":
		return open(r, o)
	case "kept":
		return kept(r, o.Now)
	}
	return fmt.Sprintf("Done: retries get %s until %s.", status(r), plain.Time(r.Expires)), append(all,
		Next{Who: "client", What: fmt.Sprintf("a retry gets the stored answer (%s)", status(r))},
		Next{When: r.Expires.UTC(), Who: "time", What: "the record expires; after that, a request with the key runs as a new operation"})
}

func free(r *store.Record) (string, []Next) {
	all := []Next{
		{Who: "client", What: "a request with the key runs as a new operation"},
		{Who: "time", What: "the table's TTL removes the record, usually within days"},
	}
	by := state.ForgottenBy(r)
	switch {
	case by != nil:
		return "The key is free: " + cmp.Or(by.By, "an operator") + " forgot the operation at " + plain.Time(by.At) +
			". The work of the operation stays done.", all
	case state.Freed(r):
		return "The key is free: the attempt had done nothing, so it freed the key.", all
	}
	return "The key is free: the record expired at " + plain.Time(r.Expires) + ".", all
}

// corrects returns the step with which people correct a call's result; nil if people
// gave no result, or can't correct the result any more.
func corrects(r *store.Record, now time.Time) []Next {
	call := state.Decidable(r, now)
	if call == nil || call.Intent {
		return nil
	}
	return []Next{{
		Who: "people", What: fmt.Sprintf("if a person gave a wrong result for the call of phase %q: correct the result", call.Name),
		Command: plain.Command("samekey", "settle", r.PK, "--result", cmp.Or(shape.Example(call.Shape), "JSON")),
	}}
}

func stuck(r *store.Record, now time.Time) (string, []Next) {
	people := func(what string, flags ...string) Next {
		return Next{Who: "people", What: what, Command: plain.Command(append([]string{"samekey", "settle", r.PK}, flags...)...)}
	}
	all := []Next{{Who: "client", What: "retries are refused until a person settles the operation"}}
	if FromSource(r) {
		all = []Next{{Who: "source", What: "deliveries of the message fail until a person settles the operation; then, " + deadLetter(r)}}
	}
	n := len(r.Phases)
	switch {
	case n > 0 && r.Phases[n-1].Intent:
		call := fmt.Sprintf("the call of phase %q", r.Phases[n-1].Name)
		all = append(all,
			people(fmt.Sprintf("if %s was made: give the call's result", call), "--result", cmp.Or(shape.Example(r.Phases[n-1].Shape), "JSON")),
			people(fmt.Sprintf("if %s had no effect: make the call once more", call), "--not-made"),
			people("if the outcome stays unknown: make the call once more, although the call may happen twice", "--risk-twice"))
	case len(r.Doubts) > 0:
		all = append(all,
			people("if the calls in doubt had no effect: make these calls once more", "--not-made"),
			people("if the outcomes stay unknown: make the calls once more, although the calls may happen twice", "--risk-twice"),
			Next{Who: "people", What: "if the cause is mended and the provider still knows the keys of the calls: try the operation again", Command: plain.Command("samekey", "retry", r.PK)})
	default:
		all = append(all, Next{Who: "people", What: "if the cause is mended: try the operation again", Command: plain.Command("samekey", "retry", r.PK)})
	}
	if r.Asked != nil && r.Input != nil && len(r.Doubts)+n > 0 {
		all = append(all, people("ask the provider for the outcome again, by the phase's look-up", "--ask"))
	}
	all = append(all, people("end the operation with this answer, which the client gets from now on", "--answer", "STATUS", "--body", "TEXT"))
	return "Stuck, and waits for people: " + orNothing(r.LastErr) + ".", slices.Concat(all, corrects(r, now), jobsNext(r, now))
}

func held(r *store.Record, o StoryOptions) (string, []Next) {
	return "An attempt works on the operation. The lease ends at " + plain.Time(r.Lease) + ", unless the attempt renews the lease.", append([]Next{
		{Who: "attempt", What: "the attempt finishes, and later retries get the stored answer"},
		{Who: "client", What: "until the lease ends, a retry waits or is refused as in flight, depending on the route's options"},
		{
			When: r.Lease.UTC(), Who: "client", What: "after the lease ends, a retry takes the operation over; if the attempt is dead, this command ends the lease at once",
			Command: plain.Command("samekey", "release", r.PK),
		},
	}, leftOpen(r, o)...)
}

func open(r *store.Record, o StoryOptions) (string, []Next) {
	how := "The attempt released the operation"
	if !r.Lease.IsZero() {
		how = "Abandoned: the attempt's lease ended at " + plain.Time(r.Lease)
	}
	if r.Blocked {
		how = "Blocked: the deployed program refuses to continue the operation"
	}
	if r.LastErr != "" {
		how += ": " + r.LastErr
	}
	answers := plain.Command("samekey", "settle", r.PK, "--answer", "STATUS", "--body", "TEXT")
	all := []Next{{Who: "client", What: "a retry takes the operation over at once, and continues after the last committed phase"}}
	if FromSource(r) {
		all = []Next{{Who: "source", What: "the next delivery of the message takes the operation over; " + deadLetter(r)}}
	}
	if r.Blocked {
		all = []Next{
			{Who: "people", What: "deploy a program that can continue the operation; the next attempt then continues the operation"},
			{Who: "people", What: "or end the operation with an answer", Command: answers},
		}
	} else if state.Settleable(r, state.Settlement{Answer: &store.Response{}}, o.Now) {
		all = append(all, Next{Who: "people", What: "if the work is done: end the operation with this answer, which the client gets from now on", Command: answers})
	}
	return strings.TrimSuffix(how, ".") + ".", slices.Concat(all, corrects(r, o.Now), leftOpen(r, o))
}

// leftOpen returns what happens to an open operation if the client doesn't retry.
func leftOpen(r *store.Record, o StoryOptions) []Next {
	waits, since := state.FoundBySweep(r, state.Due(r, r.Run, o.Grace).Add(time.Second), o.Grace)
	var all []Next
	switch waits {
	case state.ReasonOpen:
		what := "the completer runs the operation, unless a retry comes first; this run is try number " + strconv.Itoa(r.Tries+1)
		if o.Now.Sub(since) > state.SweepLate {
			what = "the completer is late: see samekey list and the worker's log; the next sweep asks the completer again"
		}
		all = []Next{{When: since.UTC(), Who: "completer", What: what}}
	case state.ReasonNoRequest:
		all = []Next{{
			When: state.LeftUntil(r).UTC(), Who: "people",
			What: "only the client's retry can finish the operation, since the request is not stored; if no retry comes by this time, the operation becomes stuck",
		}}
		if FromSource(r) {
			all[0].What = "only a delivery of the message can finish the operation; if no delivery comes by this time, the operation becomes stuck"
		}
	case state.ReasonExpiring:
		all = []Next{{When: r.Expires.UTC(), Who: "time", What: "the record expires and the key becomes free, because nothing is committed"}}
	default:
	}
	return slices.Concat(all, jobsNext(r, o.Now))
}

func kept(r *store.Record, now time.Time) (string, []Next) {
	all := slices.Concat(
		[]Next{{Who: "client", What: fmt.Sprintf("a retry gets the stored answer (%s)", status(r))}},
		jobsNext(r, now),
		[]Next{{When: r.Until.UTC(), Who: "time", What: "the record expires if all jobs are delivered; otherwise it expires when the last job is delivered"}},
	)
	parked := 0
	for name := range r.Jobs {
		if !state.Pending(r, name) {
			parked++
		}
	}
	summary := fmt.Sprintf("Done: retries get %s. %s undelivered", status(r), count(len(r.Jobs), "job is", "jobs are"))
	switch {
	case len(r.Jobs) == 0:
		summary = fmt.Sprintf("Done: retries get %s. All jobs are delivered; the next sweep lets the record go", status(r))
	case parked > 0:
		summary += fmt.Sprintf(", %d of them parked", parked)
	}
	return summary + ".", all
}

// jobsNext returns the next events of the jobs.
func jobsNext(r *store.Record, now time.Time) (all []Next) {
	waiting, parked := 0, []string(nil)
	for name, j := range r.Jobs {
		switch {
		case state.MayCancel(r, name):
			next := Next{Who: "drain", What: "the drain or the next sweep delivers job " + name + "; until the delivery begins, this command cancels the job", Command: plain.Command("samekey", "cancel", r.PK, name)}
			if state.Later(j, now) {
				next.When = j.At.UTC()
			}
			all = append(all, next)
		case state.Pending(r, name):
			waiting++
		default:
			parked = append(parked, name)
		}
	}
	slices.SortFunc(all, func(a, b Next) int { return cmp.Or(a.When.Compare(b.When), cmp.Compare(a.What, b.What)) })
	slices.SortFunc(parked, byPosition)
	if waiting > 0 {
		all = append(all, Next{Who: "drain", What: "the drain or the next sweep delivers " + count(waiting, "job", "jobs")})
	}
	if len(parked) > 0 {
		all = append(all, Next{
			Who: "people", What: count(len(parked), "job is", "jobs are") + " parked: mend the cause of the failures, then redrive",
			Command: plain.Command(append([]string{"samekey", "redrive", r.PK}, parked...)...),
		})
	}
	return all
}

func count(n int, singular, plural string) string {
	if n == 1 {
		plural = singular
	}
	return strconv.Itoa(n) + " " + plural
}

func orNothing(s string) string {
	if s == "" {
		return "the record stores no reason"
	}
	return strings.TrimSuffix(s, ".")
}

// status describes the status of the stored answer, which may be sealed.
func status(r *store.Record) string {
	if r.Response.Status == 0 {
		return "a sealed answer"
	}
	return strconv.Itoa(r.Response.Status)
}
