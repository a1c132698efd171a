package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
)

var errTotal = errors.New("the check takes too long")

// examination is one run of a plan. The checks run one after another; only requests of
// the same check may overlap.
type examination struct {
	template Template
	url      *url.URL
	opt      Options
	secrets  []string
	client   *http.Client
	sent     atomic.Int64

	quotes      bool            // the API takes quoted keys only
	refusedBare int             // the status that refused a new key without quotes; 0 if it was accepted
	first       *answer         // the answer to the first request, which has the key e.key("first")
	again       *answer         // the answer to the repetition of the first request; nil before the repetition
	exact       bool            // e.again is a success and has the same body as e.first
	firm        bool            // e.exact is true, or e.again is a success that is marked as a replay
	steady      map[string]bool // names of operations whose repetition gave the same answer

	mu      sync.Mutex
	found   []Finding // findings of all checks
	blamed  []*answer // answers that refused a request because of its key
	answers []*answer // e.first and e.again, for the check of CORS headers
	busy    bool      // judgeRetryAfter has judged a 409, 429 or 503
	notes   []string
}

// Run examines an API by the plan p, which must come from [Make]. The report is never
// nil. If nothing could be examined, the error is the reason, and the report counts the
// requests that were sent. When ctx ends, the examination ends, and the report has the
// results so far.
func (p *Plan) Run(ctx context.Context) (*Report, error) {
	e := p.examination()
	ctx, cancel := context.WithTimeoutCause(ctx, p.opt.Total, errTotal)
	defer cancel()
	r := &Report{URL: p.URL, Method: p.template.Method, Keys: p.Keys, Contract: p.opt.Contract, Checks: []Outcome{}}
	err := e.begin(ctx)
	if err != nil {
		r.Trouble = err.Error()
	}
	for _, c := range p.checks {
		if err != nil {
			break
		}
		why := c.lacks
		if why == "" {
			failed := c.run(e, ctx)
			why = reason(failed)
			if _, ok := errors.AsType[unseen](failed); failed != nil && !ok && r.Trouble == "" {
				r.Trouble = "check " + c.name + ": " + why
			}
		}
		r.Checks = append(r.Checks, outcome(p.opt.Contract, c.name, why, e.of(c.name)))
		if ctx.Err() != nil {
			r.Trouble = e.explain(ctx, ctx.Err()).Error()
			break
		}
	}
	r.Requests, r.Notes, r.Faults = int(e.sent.Load()), e.notes, r.faults(p.opt.Contract)
	return r, err
}

func (p *Plan) examination() *examination {
	return &examination{
		template: p.template, url: p.url, opt: p.opt, secrets: p.template.secrets(p.url), steady: make(map[string]bool),
		client: &http.Client{
			Transport:     p.opt.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// unseen is the reason why a check that ran proved nothing.
type unseen string

func (u unseen) Error() string { return string(u) }

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// examination.begin sends the template's request for the first time, with a key without
// quotes. If the API answers 400, begin sends the request again with the key in quotes,
// except for a commerce contract.
func (e *examination) begin(ctx context.Context) (err error) {
	if e.first, err = e.send(ctx, e.keyed(e.key("first"))); err != nil {
		return err
	}
	if e.first.status == http.StatusBadRequest && !isCommerce(e.opt.Contract) {
		e.quotes = true
		quoted, err := e.send(ctx, e.keyed(e.key("first")))
		if err != nil {
			return err
		}
		if e.quotes = quoted.ok(); e.quotes {
			e.refusedBare = e.first.status
			e.first = quoted
		}
	}
	e.answers = append(e.answers, e.first)
	return e.unusable(e.first)
}

// examination.breaks records that the API breaks the rule of the given contracts; no
// contracts stand for all contracts that have the rule. If the rule already has a
// finding, breaks adds the contracts to this finding and leaves the finding's Seen
// unchanged.
func (e *examination) breaks(rule, seen string, contracts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.found, func(f Finding) bool { return f.Rule == rule })
	f := Finding{Rule: rule, Seen: e.shown(seen), Breaks: make(map[string]string)}
	if i >= 0 {
		f = e.found[i]
	}
	for _, r := range rulesOf(e.opt.Contract) {
		for c, section := range r.Sections {
			if r.Name == rule && slices.Contains(columns(e.opt.Contract), c) && (len(contracts) == 0 || slices.Contains(contracts, c)) {
				f.Breaks[c] = section
			}
		}
	}
	if i < 0 && len(f.Breaks) > 0 {
		e.found = append(e.found, f)
	}
}

func (e *examination) of(check string) (found []Finding) {
	for _, r := range rulesOf(e.opt.Contract) {
		for _, f := range e.found {
			if r.Check == check && f.Rule == r.Name {
				found = append(found, f)
			}
		}
	}
	return found
}

func (e *examination) note(text string) {
	if !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

func was(a *answer) string { return fmt.Sprintf("%d with %d bytes", a.status, len(a.body)) }
