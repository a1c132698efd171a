package check

import (
	"context"
	"net/url"
)

// Plan describes an examination before it runs.
type Plan struct {
	URL    string // without its query
	Method string
	Keys   string // text with which all keys begin
	// Requests is the maximum number of requests. Effects is the number of requests
	// that a correct API carries out: an API that keeps Options.Contract if this is a
	// commerce contract, otherwise Default. Most is the maximum number of requests that
	// a faulty API carries out.
	Requests, Effects, Most int

	template Template
	url      *url.URL
	opt      Options
	checks   []examined
}

type examined struct {
	name, title string
	// lacks is "" if the template has all fields that the check needs. Otherwise lacks
	// says which option to give.
	lacks                   string
	requests, effects, most int
	run                     func(*examination, context.Context) error
}

// Check describes a check, for documentation.
type Check struct {
	Name, Title string
	Needs       string // option that the check needs, such as "give --origin"; "" if the check needs none
}

// Checks returns the checks of a contract, in order.
func Checks(contract string) (all []Check) {
	for _, c := range checks(Template{}, Options{Contract: contract}) {
		all = append(all, Check{c.name, c.title, c.lacks})
	}
	return all
}

// Make returns the plan for a template. It sends nothing. An error means that the template
// or the options are invalid.
func Make(t Template, optFns ...func(*Options)) (*Plan, error) {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	opt, err := opt.prepared()
	if err != nil {
		return nil, err
	}
	t, u, err := t.prepared(opt.Contract)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		URL: place(u), Method: t.Method, Keys: opt.Prefix + opt.Name + "-",
		Requests: 2, Effects: 1, Most: 1, template: t, url: u, opt: opt, checks: checks(t, opt),
	}
	for _, c := range p.checks {
		if c.lacks == "" {
			p.Requests, p.Effects, p.Most = p.Requests+c.requests, p.Effects+c.effects, p.Most+c.most
		}
	}
	p.Requests = min(p.Requests, opt.Requests)
	p.Most = min(p.Most, p.Requests)
	return p, nil
}

func checks(t Template, opt Options) []examined {
	if isCommerce(opt.Contract) {
		return commerceChecks(t, opt)
	}
	need := func(there bool, flag string) string {
		if there {
			return ""
		}
		return "give " + flag
	}
	optional := 0
	if t.KeyOptional {
		optional = 1
	}
	all := []examined{
		{"replay", "the same request again", "", 1, 0, 1, (*examination).replay},
		{"lifetime", "nothing; the check compares the key's expiry in the first answer and the replay", "", 0, 0, 0, (*examination).lifetime},
		{"quoted", "the same key with quotes added or removed", "", 1, 0, 1, (*examination).quoted},
		{"mismatch", "the same key with another body", need(len(t.OtherBody) > 0, "--other-body"), 1, 0, 1, (*examination).mismatch},
		{"path", "the same key on another path", need(t.OtherPath != "", "--other-path"), 1, 0, 1, (*examination).path},
		{"method", "the same key with another method", need(t.OtherMethod != "", "--other-method"), 1, 0, 1, (*examination).method},
		{"caller", "the same key from another caller", need(len(t.OtherCaller) > 0, "--other-caller-env"), 1, 1, 1, (*examination).caller},
		{"kept", "the first request again, after the checks above", "", 1, 0, 1, (*examination).kept},
		{"concurrent", "a request with a new key, several times at once, then again until its answer is final", "", opt.Racers + settles, 1, opt.Racers + 1, (*examination).concurrent},
		{"missing", "no key", "", 1, optional, 1, (*examination).missing},
		{"malformed", "keys that are empty, too long, sent twice or not ASCII", "", 4, 0, 4, (*examination).malformed},
		{"refusal", "invalid input with a new key, then the corrected request with the same key", need(len(t.RefusedBody) > 0, "--refused-body"), 2, 1, 2, (*examination).refusal},
		{"errors", "nothing; the check examines earlier errors (form, no-store, Retry-After)", "", 0, 0, 0, (*examination).errors},
		{"cors", "a web page's preflight; the check also examines earlier answers' CORS headers", need(t.Origin != "", "--origin"), 1, 0, 0, (*examination).cors},
	}
	return all
}
