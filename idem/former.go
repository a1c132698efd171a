package idem

import (
	"context"
	"errors"
	"slices"
)

// Former describes how an earlier release found scopes. After a change of scope, such as a
// new authorizer, another [Options.Scope] or preset, the retry of an earlier request would
// be a new operation: its work would be done twice. So change the scope in three releases,
// and leave none out. Each release may run beside the release before it:
//
//  1. Set the new scope in [Options], and describe the former scope in Former, with
//     Claims. The engine claims a key under the former scope, unless the key is known
//     under the new scope.
//  2. Remove Claims, half an hour or more after release 1 has replaced the former release:
//     until then, writes of the former release may still arrive. The engine claims a key
//     under the new scope, unless the key is known under the former scope.
//  3. Remove Former. Before this release, wait until no record from before release 2 is
//     open, and then for the time [Options.Retention].
//
// Roll back by one release at a time. The former release doesn't look under the new scope:
// return to the former release only when no record from release 2 is open or has an answer.
//
// If a key is known under the other scope, the record there decides: the request is
// replayed, refused or continued from that record, and [Op.Caller] is that record's caller.
// While Former is set, a claim is one transaction of two items instead of one write, and
// costs four write units instead of one. The function needs the permission
// dynamodb:ConditionCheckItem.
//
// The fields describe the former release. The zero Former means that the former scope was
// the verified [Request.Identity]. A request that has no caller under the other scope can
// have no record there: it claims its key as if there were no Former. Both scopes use the
// Namespace of Options.
type Former struct {
	// Claims makes the engine still claim keys under the former scope. Set Claims in
	// release 1 and remove it in release 2.
	Claims bool
	// Scope is the former [Options.Scope].
	Scope func(ctx context.Context, r *Request) (string, error)
	// OneScope means that the former release had one scope for all callers ([OneScope]),
	// also for callers who have a verified identity now. Deploy the authorizer after
	// release 1: with the option [OneScope], the former release would give each verified
	// caller a separate scope. Callers who always had an identity don't change scope: serve
	// their routes with an engine without Former.
	OneScope bool
	// Preset is the former preset, such as [ACP], or a function that sets the former
	// Fingerprint, Methods and MinKey. A function that sets nothing means the default
	// contract. The scope and the fingerprint of the preset change in the same releases:
	// the engine adds the other preset's fingerprint to [Fingerprint.Known]. Until release
	// 3 the engine accepts keys and methods that either preset accepts. If only the former
	// preset contains a request's method, the request may come without a key, and then
	// passes. Default: the preset did not change.
	Preset func(*Options)
}

// validate returns an error if Former describes a release or a change that isn't possible.
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

// knowPreset lets the engine accept the methods and keys of the former preset, and adds its
// fingerprint to Known. In the first release, new records use the former fingerprint, and
// Known has the present one.
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
