package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Former describes how an earlier release found the scopes of its requests. Scopes change
// with a new authorizer, a new [Options.Scope] or a new preset. If a scope changes without
// Former, a retry of an earlier request is a new operation, and the work is done twice. So
// change the scope in the three releases below, and leave none out. Each release may run
// beside the preceding release.
//
//  1. Set the new scope in [Options], describe the former scope in Former, and set Claims.
//     The engine claims a key under the former scope, unless the key is known under the new
//     scope.
//  2. Wait at least half an hour after release 1 has replaced the former release, since
//     writes of the former release may still arrive. Then remove Claims. The engine claims
//     a key under the new scope, unless the key is known under the former scope.
//  3. Wait until no record from before release 2 is open or stuck. Then wait for as long
//     as [Options.Retention] says, and remove Former.
//
// Roll back by one release at a time. Don't return to the former release while a record
// from release 2 is open, is stuck or has an answer, because the former release doesn't
// look under the new scope.
//
// An engine with Former claims keys under one of the two scopes, and also looks under the
// other. If a key has a record only under the other scope, that record decides: the request
// is replayed, refused or continued from the record, and [Op.Caller] is the record's
// caller. While Former is set, a claim is one transaction of two items instead of one
// write, and costs four write units instead of one. The function needs the permission
// dynamodb:ConditionCheckItem.
//
// If a request has no caller under the other scope, or if both scopes are the same for the
// request, the engine looks only under the scope in which it claims. The claim is then one
// write.
//
// All fields except Claims describe the former release. The zero Former means that the
// former scope was the verified [Request.Identity]. Both scopes use the Namespace of
// Options.
type Former struct {
	// Claims makes the engine still claim keys under the former scope. Set Claims in
	// release 1 and remove it in release 2.
	Claims bool
	// Scope is the former [Options.Scope].
	Scope func(ctx context.Context, r *Request) (string, error)
	// OneScope means that the former release gave all callers one scope ([OneScope]),
	// including those who have a verified identity now. Deploy the authorizer after
	// release 1. If you deployed it earlier, the former release would give each
	// verified caller a separate scope, in spite of its option [OneScope]. If callers
	// of a route had a verified identity in the former release, too, their scope
	// doesn't change. Serve such a route with an engine without Former.
	OneScope bool
	// Preset is the former preset, such as [ACP], or a function that sets the former
	// Fingerprint, Methods and MinKey. A function that sets nothing means that the
	// former release had no preset. Default: the preset did not change.
	//
	// The fingerprint changes in the same release as the scope. If Claims is set, the
	// engine makes new records with the former preset's fingerprint, and adds the
	// present fingerprint to [Fingerprint.Known]. Otherwise it makes new records with
	// the present fingerprint, and adds the former one. Until release 3 the engine
	// accepts keys and methods that either preset accepts. For a method that only the
	// former preset contains, a request without a key passes to the handler unprotected.
	Preset func(*Options)
}

// Former.validate returns an error if Former describes a release that can't have
// existed, or a change that can't be made.
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

// Former.preset returns the options that the former preset sets, without defaults.
// It returns nil if Former has no preset.
func (f *Former) preset() *Options {
	if f == nil || f.Preset == nil {
		return nil
	}
	var o Options
	f.Preset(&o)
	return &o
}

// knowPreset lets the engine accept the methods and keys of the former preset, and adds the
// former fingerprint to Known. In release 1 (Claims), new records use the former
// fingerprint, and Known has the present fingerprint.
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

// claiming.elsewhere judges the record at the key's other place, if the verdict v says
// that home has no record of this request. A record of another request at home doesn't
// rule out a record of this request at the other place, because a change of scopes may
// split a key or merge two keys. The parameter own is the record at home. If neither
// place has a record of the request, elsewhere returns own and v.
func (c *claiming) elsewhere(ctx context.Context, op string, own *store.Record, v state.Verdict, until time.Time) (*store.Record, state.Verdict, error) {
	if c.ask.other == nil || v != state.Claimable && v != state.Mismatch {
		return own, v, nil
	}
	there, found, err := c.judgeAt(ctx, op, c.ask.other.pk, until)
	gone := there == nil || there.State == store.None || c.isFree(there) // false for a record that was released meanwhile, although its verdict is Claimable, too
	if err == nil && (gone || found == state.Mismatch && v == state.Mismatch) {
		return own, v, nil
	}
	return there, found, err
}

// claiming.either returns the record at home, else the record at the other place, else
// nil.
func (c *claiming) either(ctx context.Context) (*store.Record, error) {
	rec, err := c.core.store.Load(ctx, c.ask.home.pk)
	if err == nil && rec == nil && c.ask.other != nil {
		rec, err = c.core.store.Load(ctx, c.ask.other.pk)
	}
	return rec, err
}

// claiming.bury fences an expired or freed record at the other place (the parameter
// found), and returns the fenced record. The key can then be claimed at home. A key
// with one place doesn't need bury: the claim itself replaces the record. If another
// attempt has released the record in the meantime, bury writes nothing and returns nil.
func (c *claiming) bury(ctx context.Context, found *store.Record, until time.Time) (*store.Record, error) {
	if !c.isFree(found) { // the record is gone, or was released meanwhile: the next claim decides
		return nil, nil
	}
	// Fence with a new nonce as the owner, so that the fenced record differs from a
	// record that this attempt takes over later.
	w := c.writer
	w.owner = rand.Text()
	fenced, l, err := w.write(ctx, change{prev: found, next: state.Buried(found, c.core.opt.Now())}, until, maxRounds)
	switch {
	case err != nil && !errors.Is(err, ErrConflict):
		c.core.log.ErrorContext(ctx, "an expired record under the other scope can't be fenced", "record", redact.Record(found.PK), "error", err)
		return nil, unavailable("claim", found.PK, err)
	case l != state.Landed: // the record is not fenced: the next claim reads it again
		return nil, nil
	}
	return fenced, nil
}
