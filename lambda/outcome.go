package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
)

// OutcomeKind says what came of a [idem.Ticket].
type OutcomeKind string

// What can come of a ticket.
const (
	OutcomeDone     OutcomeKind = "done"      // the operation has its answer
	OutcomeMoved    OutcomeKind = "moved"     // others went on with it: there is nothing to do
	OutcomeInFlight OutcomeKind = "in_flight" // it is still held: come again later
	OutcomeStuck    OutcomeKind = "stuck"     // it waits for an operator
	OutcomeFailed   OutcomeKind = "failed"    // this try has failed: come again later
	OutcomeNotMine  OutcomeKind = "not_mine"  // it is another handler's: nothing was changed, and somebody must look why it came here
)

// Outcome is a function's answer to a ticket.
type Outcome struct {
	Kind       OutcomeKind
	RetryAfter time.Duration // of OutcomeInFlight: what is left of the lease
	Error      string        // of OutcomeFailed, OutcomeNotMine and OutcomeStuck, for logs
}

// OutcomeOf says what [idem.Engine.Resume] came to by its error.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Outcome{Kind: OutcomeDone}
	case errors.Is(err, idem.ErrMoved), errors.Is(err, idem.ErrLeaseLost):
		return Outcome{Kind: OutcomeMoved}
	case errors.Is(err, idem.ErrNotMine):
		return Outcome{Kind: OutcomeNotMine, Error: idem.ErrorText(err)}
	case errors.Is(err, idem.ErrUnavailable), errors.Is(err, idem.ErrUnknown), errors.Is(err, idem.ErrConflict):
		return Outcome{Kind: OutcomeFailed, Error: idem.ErrorText(err)} // also where it was to be marked as stuck
	case errors.Is(err, idem.ErrStuck):
		return Outcome{Kind: OutcomeStuck, Error: idem.ErrorText(err)}
	case errors.Is(err, idem.ErrInFlight):
		o := Outcome{Kind: OutcomeInFlight}
		if e, ok := errors.AsType[*idem.Error](err); ok {
			o.RetryAfter = e.RetryAfter
		}
		return o
	}
	return Outcome{Kind: OutcomeFailed, Error: idem.ErrorText(err)}
}

type outcomeJSON struct {
	Kind         OutcomeKind `json:"outcome"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"`
	Error        string      `json:"error,omitempty"`
}

// EncodeOutcome is the answer to [EncodeResume].
func EncodeOutcome(o Outcome) []byte {
	return envelope("", outcomeJSON{o.Kind, o.RetryAfter.Milliseconds(), o.Error})
}

// ParseOutcome reads what [EncodeOutcome] made. Any other answer is an error: the
// function that was invoked knows nothing of envelopes.
func ParseOutcome(payload []byte) (Outcome, error) {
	inner, ok, err := open(payload)
	if err != nil {
		return Outcome{}, err
	}
	if !ok {
		return Outcome{}, badEnvelope("it is none")
	}
	var o outcomeJSON
	if err := json.Unmarshal(inner, &o); err != nil {
		return Outcome{}, badEnvelope(err.Error())
	}
	switch o.Kind {
	case OutcomeDone, OutcomeMoved, OutcomeInFlight, OutcomeStuck, OutcomeFailed, OutcomeNotMine:
		const day = 24 * time.Hour // beyond any lease, and no multiplication overflows
		after := time.Duration(min(max(o.RetryAfterMS, 0), day.Milliseconds())) * time.Millisecond
		return Outcome{o.Kind, after, o.Error}, nil
	}
	return Outcome{}, badEnvelope(fmt.Sprintf("it has the outcome %.40q", o.Kind))
}
