package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

func offersOf(r *store.Record, now time.Time) (offers []Offer) {
	may := func(w records.Wish) bool {
		w.By = "anybody"
		_, err := records.May(r, now, w)
		return err == nil
	}
	again := may(records.Wish{Do: records.Retry})
	call := state.Decidable(r, now)
	switch {
	case call != nil && call.Intent:
		offers = append(offers, Offer{
			Do: string(records.Retry), Label: "Decide", Call: call.Name, Result: true, Shape: call.Shape,
			Hint: "First ask the provider: was the call made? " + lookBy(r, now),
		})
	case again && len(r.Doubts) > 0:
		offers = append(offers, Offer{
			Do: string(records.Retry), Label: "Decide", Call: inDoubt(r), Hint: "First ask the provider: were the calls made? " + lookBy(r, now),
		})
	case again:
		offers = append(offers, Offer{Do: string(records.Retry), Label: "Try again", Hint: "The operation becomes open: " + records.Continues(r) + "."})
	}
	if n := len(offers); n > 0 && r.Asked != nil {
		offers[0].Asks = may(records.Wish{Do: records.Settle, Settlement: idem.Settlement{Ask: true}})
	}
	if call != nil && !call.Intent {
		offers = append(offers, Offer{
			Do: string(records.Retry), Label: "Correct the result", Call: call.Name, Result: true, Given: true, Shape: call.Shape,
			Hint: "A person has given the result of the call. No attempt has used it yet.",
		})
	}
	if may(records.Wish{Do: records.Settle, Settlement: idem.Settlement{Answer: &idem.Response{Status: http.StatusOK}}}) {
		offers = append(offers, Offer{
			Do: string(records.Settle), Label: "Give an answer",
			Hint: "Ends the operation: the client gets this answer from now on. Staged jobs are still delivered.",
		})
	}
	if may(records.Wish{Do: records.Redrive}) {
		parked := []string{}
		for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
			if r.Jobs[name].Failed != "" {
				parked = append(parked, name)
			}
		}
		offers = append(offers, Offer{
			Do: string(records.Redrive), Label: "Redrive parked jobs", Jobs: parked,
			Hint: "First mend the cause of the failures. The drain then delivers the jobs again.",
		})
	}
	if later := state.Cancellable(r, nil); may(records.Wish{Do: records.Cancel}) {
		offers = append(offers, Offer{
			Do: string(records.Cancel), Label: "Cancel later jobs", Jobs: later,
			Hint: "The delivery of these jobs has not begun. They are removed and never delivered.",
		})
	}
	if may(records.Wish{Do: records.Release}) {
		offers = append(offers, Offer{
			Do: string(records.Release), Label: "Release the lease",
			Hint: "Do this only if the attempt is dead. Calls that the attempt may have made stay in doubt.",
		})
	}
	if may(records.Wish{Do: records.Forget, Loss: idem.Loss{Held: true, Work: true, Jobs: true}}) {
		offers = append(offers, Offer{
			Do: string(records.Forget), Label: "Forget", Loses: records.Losses(r, now),
			Hint: "Frees the key: the next request with the key runs as a new operation. Dangerous: completed work may be done again.",
		})
	}
	return offers
}

// lookBy tells a person what to look for at the provider.
func lookBy(r *store.Record, now time.Time) string {
	story := records.Explain(r, records.StoryOptions{Now: now})
	if slices.ContainsFunc(story.Calls, func(c records.Call) bool { return c.State != "recorded" }) {
		return "This page shows the derived keys of the calls in doubt."
	}
	return "The record has no derived key of the call: search by the call's data."
}

// inDoubt returns the names of the calls in doubt.
func inDoubt(r *store.Record) string {
	names := make([]string, len(r.Doubts))
	for i, name := range r.Doubts {
		if names[i] = name; state.IsMark(name) {
			names[i] = "any call of an abandoned attempt"
			if phase := strings.TrimPrefix(name, state.AnyCall); phase != "" {
				names[i] = fmt.Sprintf("the call of phase %q of an abandoned attempt", phase)
			}
		}
	}
	return strings.Join(names, ", ")
}

// Ask implements [Source].
func (t *Table) Ask(ctx context.Context, a Action) (string, error) {
	plan, err := t.plan(ctx, a)
	if err != nil {
		return "", err
	}
	says := plan.Says
	if t.opt.Place != "" {
		says = append(says, "The change is in "+t.opt.Place+".")
	}
	return strings.Join(says, "\n"), nil
}

// Act implements [Source].
func (t *Table) Act(ctx context.Context, a Action) (string, error) {
	plan, err := t.plan(ctx, a)
	if err != nil {
		return "", err
	}
	said, err := plan.Run(ctx, t.store)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return "", fmt.Errorf("%w: the change may have been made. Look at the record again", err)
	case errors.Is(err, jobs.ErrMoved):
		return "", fmt.Errorf("%w: nothing was changed. Look at the record again", ErrMoved)
	case errors.Is(err, store.ErrSealed):
		return "", fmt.Errorf("%w: %s Nothing was changed, because the page needs the data key to store an answer or a result", ErrRefused, t.sealedText(err))
	case errors.Is(err, idem.ErrResult): // records.May allowed the plan, so the record has changed since
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return said, t.said(err)
}

// Table.plan returns the plan for an action. If the record has changed since it was
// shown, plan returns ErrMoved. If the record changes later, the plan's write is
// refused.
func (t *Table) plan(ctx context.Context, a Action) (*records.Plan, error) {
	rec, _, err := t.load(ctx, a.PK)
	switch {
	case err != nil:
		return nil, t.said(err)
	case rec == nil:
		return nil, ErrGone
	case plain.Text(seenOf(rec)) != a.Seen: // a.Seen has no hidden characters, because the page got it without them
		return nil, fmt.Errorf("%w: nothing was changed. Look at the record again", ErrMoved)
	}
	plan, err := records.May(rec, time.Now(), wishOf(rec, a))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return plan, nil
}

// wishOf returns the wish for an action of the page. A retry that decides about a call
// in doubt becomes the wish [records.Settle].
func wishOf(rec *store.Record, a Action) records.Wish {
	w := records.Wish{Do: records.Verb(a.Do), By: a.By, Many: a.Many}
	switch w.Do { //nolint:exhaustive // the others need no more
	case records.Retry:
		if a.Result != nil || a.NotMade || a.RiskTwice || a.Ask {
			w.Do, w.Settlement = records.Settle, idem.Settlement{Result: a.Result, NotMade: a.NotMade, RiskTwice: a.RiskTwice, Ask: a.Ask}
		}
	case records.Settle:
		answer := &idem.Response{Status: a.Status, Body: []byte(a.Body)}
		if a.Body != "" {
			answer.Header = http.Header{"Content-Type": {a.ContentType}}
		}
		w.Settlement.Answer = answer
	case records.Forget:
		gives := func(what string) bool { return slices.Contains(a.Loses, what) }
		w.Loss = idem.Loss{Held: gives("attempt"), Work: gives("work"), Jobs: gives("jobs")}
	case records.Redrive, records.Cancel:
		for name := range rec.Jobs {
			if slices.Contains(a.Jobs, plain.Text(name)) {
				w.Jobs = append(w.Jobs, name)
			}
		}
		if len(w.Jobs) == 0 {
			// If a.Jobs is empty, the wish is for all jobs. Otherwise records.May
			// refuses the wish, because the record has none of the named jobs.
			w.Jobs = a.Jobs
		}
	}
	return w
}
