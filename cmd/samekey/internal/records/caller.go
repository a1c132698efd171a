package records

import (
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

// Means reports whether a text that a person typed means the caller in a record's
// scope. The text may leave out the operation, the tenant, the kind, and the issuer or
// API before a subject. A part that is left out may have any value. The empty text
// means all callers.
func Means(text, of string) bool {
	if text == "" || text == of {
		return true
	}
	operation, tenant, rest := parts(text)
	recordOperation, recordTenant, caller, ok := scope.Parse(of)
	if !ok || operation != "" && operation != recordOperation || tenant != "" && tenant != recordTenant {
		return false
	}
	kind, subject, _ := strings.Cut(rest, ":")
	for _, form := range forms(caller) {
		switch {
		case rest == form.Subject, rest == form.Kind+":"+form.Subject:
			return true
		case rest == scope.One && form.Kind == scope.One:
			return true
		case slices.Contains(kinds, kind) && kind == form.Kind && subject == form.Subject:
			return true
		}
	}
	return false
}

// parts splits a scope, or a part of a scope, into the operation, the tenant and the
// caller. The caller (rest) may be incomplete.
func parts(text string) (operation, tenant, rest string) {
	operation, tenant, caller, ok := scope.Parse(text)
	if rest = caller.Kind; ok {
		rest += ":" + caller.Subject
	} else if caller.Kind == "" {
		rest = text
	}
	return operation, tenant, rest
}

// forms returns the ways to write a caller: the whole caller, and the caller without
// the issuer, pool or API before the subject. Package lambda's scope functions write
// "program:" before the caller's kind, as in "program:iam:ARN". For such a caller,
// forms also returns the ways without "program:".
func forms(c store.Identity) []store.Identity {
	all := []store.Identity{c}
	if c.Kind == scope.Program {
		switch kind, subject, _ := strings.Cut(c.Subject, ":"); kind {
		case "iam", "apikey", "certificate":
			c = store.Identity{Kind: kind, Subject: subject}
			all = append(all, c)
		}
	}
	first, second, joined := strings.Cut(c.Subject, "|")
	switch {
	case !joined:
	case c.Kind == scope.Source: // the subject is SOURCE|FUNCTION, where the function reads the source
		all = append(all, store.Identity{Kind: c.Kind, Subject: scope.Unescape(first)})
	case c.Kind != scope.Program:
		all = append(all, store.Identity{Kind: c.Kind, Subject: second})
	}
	return all
}
