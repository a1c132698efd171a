package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// shown is a record as people see it.
type shown struct {
	PK      string    `json:"pk"`
	State   string    `json:"state"`
	Keep    string    `json:"keep,omitempty"`
	ID      string    `json:"id"`
	Route   string    `json:"route,omitempty"`
	Scope   string    `json:"scope,omitempty"`
	Created time.Time `json:"created"`
	Run     time.Time `json:"run"`
	Lease   time.Time `json:"lease,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Tries   int       `json:"tries"`
	LastErr string    `json:"last_err,omitempty"`
	Blocked bool      `json:"blocked,omitempty"` // its program refuses to go on

	Settled []shownDecision `json:"settled,omitempty"` // by operators, the last ten

	Phases []shownPhase `json:"phases,omitempty"`
	Jobs   []shownJob   `json:"jobs,omitempty"`

	HasRequest bool          `json:"has_request"` // a completer can bring it to its end
	Status     int           `json:"status,omitempty"`
	Request    *shownRequest `json:"request,omitempty"`
	Answer     *shownAnswer  `json:"answer,omitempty"`
}

type shownDecision struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	What string    `json:"what"`
	From string    `json:"from,omitempty"`
	To   string    `json:"to,omitempty"`
}

type shownPhase struct {
	Name    string          `json:"name"`
	Unknown bool            `json:"outcome_unknown,omitempty"` // a call that began, and must not be repeated
	Result  json.RawMessage `json:"result,omitempty"`
}

type shownJob struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Group  string          `json:"group,omitempty"`
	Tries  int             `json:"tries,omitempty"`
	Parked string          `json:"parked,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
}

type shownRequest struct {
	Method string      `json:"method"`
	Path   string      `json:"path"`
	Query  string      `json:"query,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"` // "" where it is too large to lie in the record
}

type shownAnswer struct {
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"` // as above
}

func (op *stuckDesk) show(ctx context.Context) error {
	rec, err := op.load(ctx, op.opt.args[0])
	if err != nil {
		return err
	}
	return op.encode(shownOf(rec, op.opt.data))
}

func (op *stuckDesk) encode(v any) error {
	enc := json.NewEncoder(op.env.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func shownOf(r *store.Record, data bool) shown {
	s := shown{
		PK: r.PK, State: string(r.State), Keep: string(r.Keep), ID: r.ID, Route: r.Route, Scope: r.Scope, Created: r.Created, Run: r.Run,
		Lease: r.Lease, Expires: r.Expires, Until: r.Until, Tries: r.Tries, LastErr: r.LastErr, Blocked: r.Blocked, HasRequest: r.Input != nil,
	}
	for _, d := range r.Settled {
		s.Settled = append(s.Settled, shownDecision(d))
	}
	for _, p := range r.Phases {
		view := shownPhase{Name: p.Name, Unknown: p.Intent}
		if data && json.Valid(p.Result) {
			view.Result = p.Result
		}
		s.Phases = append(s.Phases, view)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
		j := r.Jobs[name]
		view := shownJob{Name: name, Kind: j.Kind, Group: j.Group, Tries: j.Tries, Parked: j.Failed}
		if data && json.Valid(j.Args) {
			view.Args = j.Args
		}
		s.Jobs = append(s.Jobs, view)
	}
	if r.Response != nil {
		s.Status = r.Response.Status
	}
	if data && r.Response != nil {
		s.Answer = &shownAnswer{r.Response.Header, string(r.Response.Body)}
	}
	if in := r.Input; data && in != nil {
		s.Request = &shownRequest{in.Method, in.Path, in.Query, in.Header, string(in.Body)}
	}
	return s
}
