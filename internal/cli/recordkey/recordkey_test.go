package recordkey

import "testing"

// A scope is as records have it, a key with spaces is one that a header can carry, and names
// stand for themselves otherwise.
func TestOf(t *testing.T) {
	t.Parallel()
	of := func(c Customer) string {
		t.Helper()
		pk, err := Of(t.Context(), c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		return pk
	}
	none := of(Customer{Namespace: "rides", Key: "k", Scope: "one"})
	if got := of(Customer{Namespace: "rides", Key: "k", Scope: "one:"}); got != none {
		t.Errorf("one has %s, one: %s", none, got)
	}
	for _, scope := range []string{"", "none", "acct_7"} {
		if pk, err := Of(t.Context(), Customer{Namespace: "rides", Key: "k", Scope: scope}); err == nil {
			t.Errorf("the scope %q has the record %s", scope, pk)
		}
	}
	seen := map[string]bool{none: true}
	for _, c := range []Customer{
		{Namespace: "rides", Key: "k", Scope: "jwt:jane"},
		{Namespace: "rides", Key: "k", Scope: "program:jwt:jane"},
		{Namespace: "rides", Key: "k", Scope: "source:jane"},
		{Namespace: "rides", Key: "k", Scope: "tenant:acme|one"},
		{Namespace: "rides", Key: "k k", Scope: "one"},
		{Namespace: "rides", Key: `k "k" \`, Scope: "one"},
		{Namespace: "other", Key: "k", Scope: "one"},
		{Namespace: "rides", Key: "k", Scope: "one", Route: "POST /rides"},
	} {
		if pk := of(c); seen[pk] {
			t.Errorf("%+v has the record of another", c)
		} else {
			seen[pk] = true
		}
	}
	if pk, err := Of(t.Context(), Customer{Key: "\x00", Scope: "one"}); err == nil {
		t.Errorf("a key that no handler takes has the record %s", pk)
	}
}
