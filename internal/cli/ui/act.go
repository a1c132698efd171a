package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// The actions.
const (
	doRetry   = "retry"
	doSettle  = "settle"
	doRedrive = "redrive"
)

// offersOf are the actions that fit a record.
func offersOf(r *store.Record, g stream.Glimpse) (offers []Offer) {
	parked := []string{}
	abandoned := r.Blocked || r.State == store.Stuck
	for _, e := range g.Entries {
		switch e.Why {
		case stream.WhyParked:
			parked = append(parked, e.Job)
		case stream.WhyOpen, stream.WhyNoRequest, stream.WhyExpiring:
			abandoned = true
		default: // no action depends on it
		}
	}
	if r.State == store.Stuck {
		offers = append(offers, Offer{
			Do: doRetry, Label: "Let it be tried again", Call: inDoubt(r),
			Hint: "The client's next retry takes it up, or the completer.",
		})
	}
	if abandoned {
		offers = append(offers, Offer{
			Do: doSettle, Label: "Give an answer",
			Hint: "Ends the operation: its client gets this answer from now on. Staged jobs are still delivered.",
		})
	}
	if len(parked) > 0 {
		offers = append(offers, Offer{
			Do: doRedrive, Label: "Hand out parked jobs", Jobs: parked,
			Hint: "The drain delivers them again. First remove the cause of their failures.",
		})
	}
	return offers
}

// inDoubt is the call of a stuck record with an unknown outcome, "" without one.
func inDoubt(r *store.Record) string {
	if n := len(r.Phases); n > 0 && r.Phases[n-1].Intent {
		return r.Phases[n-1].Name
	}
	return strings.Join(r.Doubts, ", ")
}

// Ask implements [Source].
func (t *Table) Ask(ctx context.Context, a Action) (string, error) {
	ask, _, err := t.plan(ctx, a)
	return ask, err
}

// Act implements [Source].
func (t *Table) Act(ctx context.Context, a Action) (string, error) {
	_, act, err := t.plan(ctx, a)
	if err != nil {
		return "", err
	}
	said, err := act()
	switch {
	case errors.Is(err, jobs.ErrMoved):
		return "", fmt.Errorf("%w: look at it again. Nothing was changed", ErrMoved)
	case errors.Is(err, store.ErrSealed):
		return "", fmt.Errorf("%w: %s Nothing was changed: an answer or a result would be sealed, too", ErrRefused, t.sealedText(err))
	case errors.Is(err, idem.ErrResult):
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return said, t.said(err)
}

// plan returns what an action will do, in words, and the act itself. It refuses a record
// that is no longer as it was shown; the act's own write refuses one that moves
// afterwards.
func (t *Table) plan(ctx context.Context, a Action) (ask string, act func() (string, error), err error) {
	rec, _, err := t.load(ctx, a.PK)
	switch {
	case err != nil:
		return "", nil, t.said(err)
	case rec == nil:
		return "", nil, ErrGone
	case seenOf(rec) != a.Seen:
		return "", nil, fmt.Errorf("%w: look at it again. Nothing was changed", ErrMoved)
	case a.By == "":
		return "", nil, fmt.Errorf("%w: who decides? The name stays in the record", ErrRefused)
	}
	switch a.Do {
	case doRetry:
		return t.planRetry(ctx, rec, a)
	case doSettle:
		return t.planSettle(ctx, rec, a)
	case doRedrive:
		return fmt.Sprintf("%d jobs of %s are handed out again: %s.", len(a.Jobs), rec.Route, strings.Join(a.Jobs, ", ")), func() (string, error) {
			n, err := stream.RedriveBy(ctx, t.store, rec.PK, rec.ID, a.By, a.Jobs...)
			if err == nil && n == 0 {
				err = jobs.ErrMoved
			}
			return fmt.Sprintf("%d handed out again: the drain sees them in the stream.", n), err
		}, nil
	}
	return "", nil, fmt.Errorf("%w: there is no action %q", ErrRefused, a.Do)
}

func (t *Table) planRetry(ctx context.Context, rec *store.Record, a Action) (string, func() (string, error), error) {
	s := idem.Settlement{Result: a.Result, NotMade: a.NotMade, RiskTwice: a.RiskTwice, By: a.By, Seen: jobs.TicketFor(rec)}
	call := "The call"
	if name := inDoubt(rec); name != "" {
		call = "The call of " + name
	}
	ask := rec.Route + " may be tried again."
	switch {
	case s.NotMade && s.Result != nil, s.RiskTwice && (s.NotMade || s.Result != nil):
		return "", nil, fmt.Errorf("%w: the call was made, it was not, or nobody knows", ErrRefused)
	case s.Result != nil:
		ask = call + " came to\n" + indented(s.Result) + "\nIt is not made again, and this can't be corrected."
	case s.NotMade:
		ask = call + " had no effect. It is made once more."
	case s.RiskTwice:
		ask = call + " may have been made. It is made once more, and may then have its effect twice."
	case inDoubt(rec) != "":
		return "", nil, fmt.Errorf("%w: say what became of the call of %s", ErrRefused, inDoubt(rec))
	}
	if s.Result != nil && !json.Valid(s.Result) {
		return "", nil, fmt.Errorf("%w: the result is not JSON", ErrRefused)
	}
	return ask, func() (string, error) {
		err := t.engine(rec, idem.DefaultRetention).Settle(ctx, rec.PK, s)
		return "Open: its client's next retry takes it up, or the completer.", err
	}, nil
}

func (t *Table) planSettle(ctx context.Context, rec *store.Record, a Action) (string, func() (string, error), error) {
	retention := time.Duration(a.Retention) * time.Second
	switch {
	case a.Status < 200 || a.Status > 599:
		return "", nil, fmt.Errorf("%w: a status is 200 to 599", ErrRefused)
	case retention < idem.MinRetention:
		return "", nil, fmt.Errorf("%w: an answer is replayed for at least %v", ErrRefused, idem.MinRetention)
	}
	re := &idem.Response{Status: a.Status, Body: []byte(a.Body)}
	if a.Body != "" {
		re.Header = http.Header{"Content-Type": {a.ContentType}}
	}
	ask := fmt.Sprintf("%s is over: its client gets %d from now on, with %d bytes:\n%s\nThis can't be corrected.", rec.Route, a.Status, len(a.Body), a.Body)
	return ask, func() (string, error) {
		err := t.engine(rec, retention).Settle(ctx, rec.PK, idem.Settlement{Answer: re, By: a.By, Seen: jobs.TicketFor(rec)})
		return fmt.Sprintf("Done: its client gets %d from now on.", a.Status), err
	}, nil
}

// engine is one for the namespace of a record.
func (t *Table) engine(rec *store.Record, retention time.Duration) *idem.Engine {
	return idem.New(t.store, func(o *idem.Options) {
		o.Namespace, o.Retention = state.Namespace(rec.PK), retention
		o.Logger = slog.New(slog.DiscardHandler) // what it would say is returned
	})
}
