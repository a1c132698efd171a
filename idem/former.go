package idem

import (
	"context"
	"errors"
	"slices"
)

// Former is how the scopes of an earlier release were found. A change of scope, such as
// a new authorizer, another [Options.Scope] or preset, would make the
// retry of an earlier request a new operation, whose work is done twice. So it takes two
// releases, of which each runs beside its neighbours:
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
// the new scope: it comes back when no record from release 2 is open, or an answer.
//
// A request whose key is known under the other scope is the same operation: it is
// replayed, refused or continued there, and [Op.Caller] is that record's. A claim is one
// transaction of two items instead of one write: four write units instead of one. The
// function needs the permission dynamodb:ConditionCheckItem.
//
// The fields describe the former release; the zero Former is the verified
// [Request.Identity]. A caller that nobody names under the other scope has no record
// there, and claims as if there were no Former. Namespace is that of Options.
type Former struct {
	// Claims says that keys are still claimed under the former scope: the first of the
	// two releases.
	Claims bool
	// Scope is the former [Options.Scope].
	Scope func(ctx context.Context, r *Request) (string, error)
	// OneScope says that all callers were one ([OneScope]), also those who have a
	// verified identity now. OneScope keeps verified callers apart, so the authorizer is
	// deployed after the first release, and callers who had an identity before take no
	// part in the change: their routes need an engine without Former.
	OneScope bool
	// Preset is the former preset, such as [ACP], or a function that sets the former
	// Fingerprint, Methods and MinKey. A function that sets nothing is the default contract.
	// The preset's scope and fingerprint change in the two releases: the engine adds the
	// former fingerprint to [Fingerprint.Known]. Until the third release, the engine accepts
	// keys and methods that either preset accepts. With a method of the former preset alone,
	// a request without a key passes. Default: the preset did not change.
	Preset func(*Options)
}

// validate reports what can't have been, or can't change.
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
