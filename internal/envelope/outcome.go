package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Kind is the result of a ticket.
type Kind string

// The results of a ticket; package completer explains them.
const (
	Done     Kind = "done"
	Moved    Kind = "moved"
	InFlight Kind = "in_flight"
	Stuck    Kind = "stuck"
	Failed   Kind = "failed"
	NotMine  Kind = "not_mine"

	Unreadable Kind = "unreadable"
)

// Outcome is a function's answer to a ticket.
type Outcome struct {
	Kind       Kind
	RetryAfter time.Duration // for InFlight: the rest of the lease
	Error      string        // text for the logs; only with Failed, NotMine, Stuck and Unreadable
}

// OutcomeOf returns the outcome for err, the error that [idem.Engine.Resume] returned.
// If err is nil, the outcome is Done.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Outcome{Kind: Done}
	case errors.Is(err, jobs.ErrMoved), errors.Is(err, idem.ErrLeaseLost):
		return Outcome{Kind: Moved}
	case errors.Is(err, jobs.ErrNotMine):
		return Outcome{Kind: NotMine, Error: redact.Error(err)}
	case errors.Is(err, idem.ErrCorrupt):
		return Outcome{Kind: Unreadable, Error: redact.Error(err)} // another try can't help
	case errors.Is(err, idem.ErrUnavailable), errors.Is(err, store.ErrUnknown), errors.Is(err, idem.ErrConflict):
		return Outcome{Kind: Failed, Error: redact.Error(err)} // err may also match ErrStuck, if the write that marks the record as stuck failed
	case errors.Is(err, idem.ErrStuck):
		return Outcome{Kind: Stuck, Error: redact.Error(err)}
	case errors.Is(err, idem.ErrInFlight):
		o := Outcome{Kind: InFlight}
		if e, ok := errors.AsType[*idem.Error](err); ok {
			o.RetryAfter = e.RetryAfter
		}
		return o
	}
	return Outcome{Kind: Failed, Error: redact.Error(err)}
}

type outcomeJSON struct {
	Kind         Kind   `json:"outcome"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Error        string `json:"error,omitempty"`
}

// EncodeOutcome returns o as the function's answer to a ticket.
func EncodeOutcome(o Outcome) []byte {
	return encode(outcomeJSON{o.Kind, o.RetryAfter.Milliseconds(), o.Error})
}

// ParseOutcome reads an answer of [EncodeOutcome]. Any other answer is an error. A
// function that doesn't know envelopes gives such an answer.
func ParseOutcome(payload []byte) (Outcome, error) {
	content, ok, err := open(payload)
	if err != nil {
		return Outcome{}, err
	}
	if !ok {
		return Outcome{}, unsound("it is none")
	}
	var o outcomeJSON
	if err := json.Unmarshal(content, &o); err != nil {
		return Outcome{}, unsound(err.Error())
	}
	switch o.Kind {
	case Done, Moved, InFlight, Stuck, Failed, NotMine, Unreadable:
		const day = 24 * time.Hour // longer than any lease, and far from an overflow
		after := time.Duration(min(max(o.RetryAfterMS, 0), day.Milliseconds())) * time.Millisecond
		return Outcome{o.Kind, after, o.Error}, nil
	}
	return Outcome{}, unsound(fmt.Sprintf("it has the outcome %.40q", o.Kind))
}
