package idem

import (
	"context"
	"errors"
	"slices"
)

// Former describes how an earlier release found scopes. A change of scope, such as a new
// authorizer, another [Options.Scope] or preset, would make the retry of an earlier request
// a new operation: its work would be done twice. So the change takes two releases. Each may
// run beside the release before it:
//
//  1. [Options] has the new scope, and Former the former one with Claims. Keys are
//     claimed under the former scope, as before, unless they are known under the new one.
//  2. The same without Claims: keys are claimed under the new scope, unless they are
//     known under the former one. Half an hour lies between the end of the former
//     release and the begin of this one: so long may an invocation and its packets last.
//  3. Without Former: when no record from before release 2 is open, and
//     [Options.Retention] has passed since.
//
// A roll-back goes back one release. The program from before release 1 doesn't look under
// the new scope: roll back to that program only when no record from release 2 is open or
// has an answer.
//
// A request whose key is known under the other scope is the same operation: it is
// replayed, refused or continued there, and [Op.Caller] is that record's. A claim is one
// transaction of two items instead of one write: four write units instead of one. The
// function needs the permission dynamodb:ConditionCheckItem.
//
// The fields describe the former release; the zero Former stands for the verified
// [Request.Identity]. A request without a caller under the other scope has no record there,
// and claims as if there were no Former. Both scopes use the Namespace of Options.
type Former struct {
	// Claims says that keys are still claimed under the former scope. Set Claims in the
	// first of the two releases.
	Claims bool
	// Scope is the former [Options.Scope].
	Scope func(ctx context.Context, r *Request) (string, error)
	// OneScope says that the former release had one scope for all callers ([OneScope]), also
	// for callers who have a verified identity now. The option [OneScope] keeps verified
	// callers apart, so deploy the authorizer after the first release. Callers who had an
	// identity before take no part in the change: their routes need an engine without
	// Former.
	OneScope bool
	// Preset is the former preset, such as [ACP], or a function that sets the former
	// Fingerprint, Methods and MinKey. A function that sets nothing stands for the default
	// contract. The preset's scope and fingerprint change in the two releases: the engine
	// adds the former fingerprint to [Fingerprint.Known]. Until the third release, the
	// engine accepts keys and methods that either preset accepts. With a method that only
	// the former preset has, a request without a key passes. Default: the preset did not
	// change.
	Preset func(*Options)
}

// validate returns an error for a former release, or a change, that isn't possible.
func (f *Former) validate(o *Options) error {
	if f == nil {
		return nil
	}
	was := f.preset()
	switch {
	case was != nil && (was.Scope != nil || was.oneScope):
		return errors.New("Former.Preset: Scope and OneScope are fields of Former")
	case o.StatusURL != "" && was != nil && was.rules.path:
		return errors.New("StatusURL and Former: the status of an operation has another path than the former scope")
	case f.Scope != nil && f.OneScope:
		return errors.New("Former: Scope and OneScope: a former release had one of them")
	}
	return nil
}

// preset returns the options of the former preset, without defaults; nil without a preset.
func (f *Former) preset() *Options {
	if f == nil || f.Preset == nil {
		return nil
	}
	var o Options
	f.Preset(&o)
	return &o
}

// knowPreset makes the requests of the former preset known, and those of the present one in
// the first release.
func (o *Options) knowPreset(was Options) {
	for _, m := range was.Methods {
		if !slices.Contains(o.Methods, m) {
			o.Methods = append(slices.Clone(o.Methods), m)
			o.rules.optional = append(slices.Clone(o.rules.optional), m)
		}
	}
	o.MinKey, o.oneKey = min(o.MinKey, was.MinKey), min(o.oneKey, was.oneKey)
	o.rules.quoted = o.rules.quoted && was.rules.quoted
	claims, knows := o.Fingerprint, was.Fingerprint
	claims.Known, claims.Secrets = nil, nil
	if o.Former.Claims {
		claims, knows = knows, claims
	}
	known := slices.DeleteFunc(slices.Clone(o.Fingerprint.Known), func(f Fingerprint) bool { return f.scheme() == claims.scheme() || f.scheme() == knows.scheme() })
	if claims.scheme() != knows.scheme() {
		known = append(known, knows)
	}
	claims.Known, claims.Secrets = known, o.Fingerprint.Secrets
	o.Fingerprint = claims
}
