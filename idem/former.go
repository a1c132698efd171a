package idem

import (
	"context"
)

// Former is how the scopes of an earlier release were found. A change of scope, such as
// a new authorizer, another [Options.Scope] or [Options.ScopeRoute], would make the retry
// of an earlier request a new operation, whose work is done twice. So it takes two
// releases, of which each runs beside its neighbours:
//
//  1. [Options] has the new scope, and Former the former one with Claims. Keys are
//     claimed under the former scope, as before, unless they are known under the new one.
//  2. The same without Claims: keys are claimed under the new scope, unless they are
//     known under the former one. Half an hour lies between the end of the former
//     release and the begin of this one: so long may an invocation and its packets last.
//  3. Without Former: when no record from before release 2 is open, and
//     [Options.Retention] and [Options.Tombstone] have passed since.
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
// there, and claims as if there were no Former. Namespace and MismatchIsNew are those of
// Options. Excludes [Options.MergeClaim], and ScopeRoute with [Options.StatusURL].
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
	// ScopeRoute is the former [Options.ScopeRoute].
	ScopeRoute bool
}
