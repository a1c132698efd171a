package main

import (
	"context"
	"errors"
)

// Claim is a promise of Samekey that a run examines.
type Claim struct {
	Name, Text string
	// Page is where it is made.
	Page string
	Cost Cost
	// Figure is the figure of a passed claim: # stands for a number. "" if it has none.
	Figure string
	// Examine observes, and returns a figure. An error is a failed claim, unless it is
	// unseen.
	Examine func(context.Context, *Place) (figure string, err error)
	// OnStandIn says why a place that is not AWS can't show it; "" if one can.
	OnStandIn string
	// Differs: OnStandIn is what DynamoDB Local is known to do otherwise. It is examined there
	// all the same: if it doesn't differ, the list is wrong.
	Differs bool
}

// unseen says why an examination showed nothing.
type unseen struct{ error }

func (u unseen) Unwrap() error { return u.error }

func notSeen(err error) error {
	if err == nil {
		return nil
	}
	return unseen{err}
}

// dark reports whether an error says that nothing was seen.
func dark(err error) bool {
	_, ok := errors.AsType[unseen](err)
	return ok || errors.Is(err, errOverPlan) || errors.Is(err, context.Canceled)
}

// judge returns the outcome of an examination.
func (c Claim) judge(p *Place, figure string, err error) Result {
	r := Result{Name: c.Name, Claim: c.Text, Page: c.Page, Figure: figure}
	switch {
	case dark(err):
		r.Status, r.Why = NotShown, err.Error()
	case p.Local && c.Differs && err == nil:
		r.Status, r.Why = Failed, "a stand-in is known to differ here, and didn't: "+c.OnStandIn
	case p.Local && c.Differs:
		r.Status, r.Why, r.Figure = NotShown, "the stand-in differs: "+c.OnStandIn, err.Error()
	case err != nil && p.StandIn != "" && !p.Local:
		r.Status, r.Why = NotShown, "the stand-in, or Samekey, does otherwise: "+err.Error()
	case err != nil:
		r.Status, r.Why = Failed, err.Error()
	default:
		r.Status = Passed
	}
	return r
}

// skip is the outcome of a claim that isn't examined.
func (c Claim) skip(why string) Result {
	return Result{Name: c.Name, Claim: c.Text, Page: c.Page, Status: NotShown, Why: why}
}
