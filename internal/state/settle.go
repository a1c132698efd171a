package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/shape"
)

// Settlement is an operator's decision. At most one of Answer, Result, NotMade, RiskTwice and Ask
// may be set.
type Settlement struct {
	Answer    *store.Response
	Result    json.RawMessage
	NotMade   bool
	RiskTwice bool
	Ask       bool
	By        string
}

// Settlement.decisions counts how many of Answer, Result, NotMade, RiskTwice and Ask
// are set.
func (s *Settlement) decisions() (n int) {
	for _, said := range []bool{s.Answer != nil, s.Result != nil, s.NotMade, s.RiskTwice, s.Ask} {
		if said {
			n++
		}
	}
	return n
}

// Settlement.again returns the reason why the call may be made again.
func (s *Settlement) again() string {
	if s.RiskTwice {
		return riskOfTwice
	}
	return "not made"
}

// Settleable reports whether s may be applied to rec. A stuck operation accepts any decision. An
// abandoned operation accepts an answer. If [Decidable] returns a call, the operation accepts a
// result of the call.
func Settleable(rec *store.Record, s Settlement, now time.Time) bool {
	return rec != nil && (rec.State == store.Stuck || s.Answer != nil && Abandoned(rec, now) || s.Result != nil && Decidable(rec, now) != nil)
}

// Decidable returns the call whose outcome people may record, or nil. The call belongs
// to the last phase. Either the operation is stuck because the outcome is unknown, or
// people have recorded the outcome and may correct it, because no attempt can have made
// another call since.
func Decidable(rec *store.Record, now time.Time) *store.Phase {
	n := len(rec.Phases)
	switch {
	case n == 0 || rec.State == store.Done || Free(rec, now):
		return nil
	case rec.Phases[n-1].Intent && rec.State == store.Stuck:
		return &rec.Phases[n-1]
	case rec.Phases[n-1].Intent || !rec.Lease.IsZero() || len(rec.Doubts) > 0:
		return nil
	}
	for _, d := range slices.Backward(rec.Settled) {
		switch {
		case d.What == resultOf(&rec.Phases[n-1]):
			return &rec.Phases[n-1]
		case strings.HasPrefix(d.What, riskOfTwice): // this decision removed the doubt about a call that may have followed the result
			return nil
		}
	}
	return nil
}

// resultOf returns the text of a decision that gives a phase's result.
func resultOf(p *store.Phase) string { return "result of " + p.Name }

const riskOfTwice = "risk of twice"

// maxSettled is how many operators' decisions a record keeps.
const maxSettled = 10

// Settled returns rec ready for another try, with the decision recorded. An error says
// why the decision doesn't fit. Settled sets Run to now, so that a limit that counts
// from Run can't undo the decision a minute later.
func Settled(rec *store.Record, s Settlement, now time.Time) (*store.Record, error) {
	r := *rec
	r.State, r.Tries, r.LastErr, r.Run, r.Blocked = store.Open, 0, "", Millis(now), false
	n := len(rec.Phases)
	begun := n > 0 && rec.Phases[n-1].Intent
	call := Decidable(rec, now)
	what, to := "try again", "released"
	switch {
	case s.decisions() > 1:
		return nil, errors.New("give exactly one of answer, result, not made, risk of twice and ask")
	case s.Answer != nil:
		what, to = fmt.Sprintf("answer %d", s.Answer.Status), string(store.Done)
	case s.Result != nil && (!json.Valid(s.Result) || !utf8.Valid(s.Result)):
		return nil, errors.New("the result is not JSON in UTF-8")
	case s.Ask && !begun && len(rec.Doubts) == 0:
		return nil, errors.New("the operation has no call in doubt")
	case s.Ask && rec.Input == nil:
		return nil, errors.New("the request is not stored, so no completer can ask: wait for the client's retry, or decide")
	case s.Ask: // the call stays in doubt; the record keeps what was sent, and when
		what = "ask"
		if begun {
			what += ": " + rec.Phases[n-1].Name
		}
	case call != nil && s.Result != nil:
		if err := shape.Check(call.Shape, s.Result); err != nil {
			return nil, fmt.Errorf("the call of phase %q: %w", call.Name, err)
		}
		r.Phases = append(slices.Clone(rec.Phases[:n-1]), store.Phase{Name: call.Name, Result: s.Result, Shape: call.Shape})
		if begun {
			r.Calls = Tally(rec.Calls, []string{Skipped}) // the calls of this phase were not counted
		}
		decided(&r, call.Name)
		r.Asked = ended(rec.Asked)
		what = resultOf(call)
	case begun && (s.NotMade || s.RiskTwice):
		r.Phases = slices.Clone(rec.Phases[:n-1])
		decided(&r, rec.Phases[n-1].Name)
		r.Asked = ended(rec.Asked)
		what = s.again() + ": " + rec.Phases[n-1].Name
	case begun:
		return nil, fmt.Errorf("the call of phase %q is in doubt: give its result as JSON, or say that it was not made", rec.Phases[n-1].Name)
	case (s.NotMade || s.RiskTwice) && len(rec.Doubts) > 0:
		doubt(&r, nil, time.Time{}, time.Time{})
		r.Asked = ended(rec.Asked)
		what = s.again()
	case s.Result != nil && len(rec.Doubts) > 0:
		return nil, errors.New("no phase can take the result of the calls in doubt: give an answer, or say that the calls were not made")
	case s.Result != nil || s.NotMade || s.RiskTwice:
		return nil, errors.New("the operation has no call in doubt")
	}
	r.Settled = Decided(rec, now, s.By, what, to)
	WaitFrom(&r, now)
	return &r, nil
}

// decided removes the doubts that an operator's decision about the phase's call ends.
// These are all doubts except the marks of other phases.
func decided(r *store.Record, phase string) {
	kept := slices.DeleteFunc(slices.Clone(r.Doubts), func(call string) bool { return !OthersMark(call, phase) })
	doubt(r, kept, r.DoubtSince, r.DoubtUntil)
}

// Decided returns the last decisions about rec, including the new decision.
func Decided(rec *store.Record, now time.Time, by, what, to string) []store.Decision {
	all := append(slices.Clone(rec.Settled), store.Decision{
		By: redact.Cut(by), At: Millis(now), What: redact.Cut(what), From: Word(rec, now), To: to,
	})
	return Newest(all)
}

// Newest returns the newest decisions, as many as a record keeps.
func Newest(all []store.Decision) []store.Decision { return all[max(0, len(all)-maxSettled):] }

// HasDecision reports whether a record has the decision with the given id. The
// parameter now is the current version of the record, and seen is the version about
// which the decision was made. The result known is false if the record is gone or
// belongs to another operation. It is also false if the decision is absent, but newer
// decisions may have displaced it.
func HasDecision(now, seen *store.Record, id string) (made, known bool) {
	if now == nil {
		return false, false
	}
	if slices.ContainsFunc(now.Settled, func(d store.Decision) bool { return d.ID == id }) {
		return true, true
	}
	n := len(seen.Settled)
	full := len(now.Settled) >= maxSettled && (n == 0 || !slices.ContainsFunc(now.Settled, seen.Settled[n-1].Equal))
	return false, now.ID == seen.ID && !full
}
