package records

import (
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

// Means reports whether a text that a person typed means the caller of a record with the
// scope of. A text that leaves out the operation, the tenant, the kind, or the issuer or
// API before a subject means every caller that has the rest; the empty text means all.
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

// parts splits a text, which need not be a whole scope, into the parts before the caller
// and the rest.
func parts(text string) (operation, tenant, rest string) {
	operation, tenant, caller, ok := scope.Parse(text)
	if rest = caller.Kind; ok {
		rest += ":" + caller.Subject
	} else if caller.Kind == "" {
		rest = text
	}
	return operation, tenant, rest
}

// forms are the callers that people may write for one: whole, and without the issuer, pool
// or API that stands before the subject. A scope function of package lambda names a caller
// with a kind of its own, as "program:iam:ARN".
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
	case c.Kind == scope.Source: // with the function that works for it
		all = append(all, store.Identity{Kind: c.Kind, Subject: scope.Unescape(first)})
	case c.Kind != scope.Program:
		all = append(all, store.Identity{Kind: c.Kind, Subject: second})
	}
	return all
}
