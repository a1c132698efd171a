package recordkey

import (
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

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

// A key alone finds its record: of a caller that can be named, by its bare subject, or by
// the scope of a record that waits.
func TestFind(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	claim := func(namespace, of string) string {
		pk, err := Of(t.Context(), Customer{Namespace: namespace, Key: "k", Scope: of})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		rec := &store.Record{PK: pk, State: store.Open, Owner: "o", Ver: 1, ID: pk, Scope: of, Created: now, Run: now, Lease: now.Add(time.Hour), Keep: store.KeepOpen, Phases: []store.Phase{{Name: "p"}}}
		if _, err := mem.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil {
			t.Fatal(err)
		}
		return pk
	}
	one, jane, colon, tenants, other := claim("", "one:"), claim("rides", "jwt:jane"), claim("rides", "iam:arn:aws:x"), claim("rides", "tenant:t|program:joe"), claim("shop", "lambda:jane")
	for name, tt := range map[string]struct {
		c       Customer
		waiting []string
		want    string
	}{
		"exact":                           {Customer{Namespace: "rides", Key: "k", Scope: "jwt:jane"}, nil, jane},
		"exact, of another":               {Customer{Namespace: "rides", Key: "k", Scope: "jwt:joe"}, []string{jane}, ""},
		"a bare subject":                  {Customer{Namespace: "rides", Key: "k", Scope: "jane"}, nil, jane},
		"a bare subject with colons":      {Customer{Namespace: "rides", Key: "k", Scope: "arn:aws:x"}, nil, colon},
		"a bare subject of a tenant":      {Customer{Namespace: "rides", Key: "k", Scope: "tenant:t|joe"}, nil, tenants},
		"a subject in no namespace":       {Customer{Key: "k", Scope: "jane"}, nil, ""},
		"nothing but the key":             {Customer{Key: "k"}, nil, one},
		"in the namespace of what waits":  {Customer{Key: "k", Scope: "jwt:jane"}, []string{colon}, jane},
		"by the scope of what waits":      {Customer{Namespace: "rides", Key: "k"}, []string{one, other, tenants}, tenants},
		"not in another namespace":        {Customer{Namespace: "rides", Key: "k"}, []string{other}, ""},
		"another key":                     {Customer{Key: "other"}, []string{jane, tenants}, ""},
		"what waits has gone":             {Customer{Namespace: "rides", Key: "k"}, []string{"v1#rides#gone"}, ""},
		"a record's namespace, exact one": {Customer{Namespace: "shop", Key: "k", Scope: "lambda:jane"}, nil, other},
	} {
		waiting := func(yield func(stream.Entry, error) bool) {
			for _, pk := range tt.waiting {
				if !yield(stream.Entry{PK: pk}, nil) {
					return
				}
			}
			yield(stream.Entry{}, stream.ErrNoIndex)
		}
		if pk, err := Find(t.Context(), mem, tt.c, waiting); err != nil || pk != tt.want {
			t.Errorf("%s: %q, %v; not %q", name, pk, err, tt.want)
		}
	}
}
