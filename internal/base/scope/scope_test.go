package scope

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/samekey/samekey/idem/store"
)

// Two scopes are equal only if all their parts are, and a scope's parts can be read
// again: a completer learns the caller from the record's scope.
func TestScopesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab:|%257C")))
		kind := rapid.SampledFrom([]string{"jwt", "iam", "lambda", Program, Source, One}).Draw(t, "kind")
		operation, tenant := text.Draw(t, "operation"), text.Draw(t, "tenant")
		caller := store.Identity{Kind: kind, Subject: text.Draw(t, "subject")}
		o, n, c, ok := Parse(string(Append(nil, operation, tenant, caller)))
		if !ok || o != operation || n != tenant || c != caller {
			t.Errorf("got %q, %q, %+v, %t, want %q, %q, %+v", o, n, c, ok, operation, tenant, caller)
		}
	})
	for _, text := range []string{"", "acct_7", ":x"} {
		if _, _, c, ok := Parse(text); ok {
			t.Errorf("%q was read as %+v", text, c)
		}
	}
}

func TestReserved(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "program", "source", "one", "operation", "tenant", "jwt:x", "a|b"} {
		if !Reserved(kind) {
			t.Errorf("an adapter may use the kind %q", kind)
		}
	}
	for _, kind := range []string{"jwt", "iam", "lambda", "acme"} {
		if Reserved(kind) {
			t.Errorf("an adapter may not use the kind %q", kind)
		}
	}
}
