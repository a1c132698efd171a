package recordkey

import "testing"

// Nobody's scope is none, a key with spaces is one that a header can carry, and names
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
	none := of(Customer{Namespace: "rides", Key: "k", Scope: "none"})
	if got := of(Customer{Namespace: "rides", Key: "k"}); got != none {
		t.Errorf("without a scope %s, with none %s", got, none)
	}
	seen := map[string]bool{none: true}
	for _, c := range []Customer{
		{Namespace: "rides", Key: "k", Scope: "jwt:jane"},
		{Namespace: "rides", Key: "k k"},
		{Namespace: "rides", Key: `k "k" \`},
		{Namespace: "other", Key: "k"},
		{Namespace: "rides", Key: "k", Route: "POST /rides"},
	} {
		if pk := of(c); seen[pk] {
			t.Errorf("%+v has the record of another", c)
		} else {
			seen[pk] = true
		}
	}
	if pk, err := Of(t.Context(), Customer{Key: "\x00"}); err == nil {
		t.Errorf("a key that no handler takes has the record %s", pk)
	}
}
