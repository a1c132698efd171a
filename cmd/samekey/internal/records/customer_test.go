package records

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
)

// PK takes a scope as records have it and a key with spaces as in a
// header. It takes all other texts literally.
func TestPK(t *testing.T) {
	t.Parallel()
	of := func(c Customer) string {
		t.Helper()
		pk, err := c.PK(t.Context())
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
		if pk, err := (Customer{Namespace: "rides", Key: "k", Scope: scope}).PK(t.Context()); err == nil || !strings.Contains(err.Error(), "has no kind") {
			t.Errorf("the scope %q has the record %s, %v", scope, pk, err)
		}
	}
	for c, req := range map[Customer]idem.Request{
		{Namespace: "rides", Key: "k", Scope: "jwt:jane"}:                                {Identity: store.Identity{Kind: "jwt", Subject: "jane"}},
		{Namespace: "rides", Key: "k", Scope: "jwt:jane|one"}:                            {Identity: store.Identity{Kind: "jwt", Subject: "jane|one"}},
		{Namespace: "rides", Key: "k", Scope: "program:joe", Route: "POST /rides"}:       {Scope: "joe", Route: "POST /rides"},
		{Namespace: "rides", Key: "k", Scope: "source:mails"}:                            {Source: "mails"},
		{Namespace: "rides", Key: "k", Scope: "operation:pay|tenant:acme|one"}:           {Operation: "pay", Tenant: "acme"},
		{Namespace: "rides", Key: "k", Scope: "tenant:acme|lambda:x", Route: "GET /r/1"}: {Tenant: "acme", Identity: store.Identity{Kind: "lambda", Subject: "x"}, Route: "GET /r/1"},
	} {
		mem := &idem.MemoryStore{}
		req.Key, req.Method = c.Key, "POST"
		if _, err := idem.New(mem, idem.OneScope, func(o *idem.Options) {
			if c.Route != "" {
				idem.ACP(o)
			}
			o.Namespace, o.MinKey, o.Logger = c.Namespace, 1, slog.New(slog.DiscardHandler)
		}).Do(
			t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{Status: 200}, nil }); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if got := of(c); mem.Records()[got] == nil {
			t.Errorf("%+v has %s, and the engine has %v", c, got, slices.Collect(maps.Keys(mem.Records())))
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
	if pk, err := (Customer{Key: "\x00", Scope: "one"}).PK(t.Context()); err == nil {
		t.Errorf("a key that no handler takes has the record %s", pk)
	}
}

// A text means a caller if it leaves out parts of the caller's scope, and means no other caller.
func TestMeans(t *testing.T) {
	t.Parallel()
	const real = "jwt:https://id.example|jane"
	for _, tt := range []struct {
		text, of string
		want     bool
	}{
		{"", real, true},
		{real, real, true},
		{"jane", real, true},
		{"jwt:jane", real, true},
		{"https://id.example|jane", real, true},
		{"jane", "lambda:a1b2c3|jane", true},
		{"lambda:jane", "lambda:a1b2c3|jane", true},
		{"jwt:jane", "lambda:a1b2c3|jane", false},
		{"jane", "operation:refund|tenant:acme|" + real, true},
		{real, "operation:refund|tenant:acme|" + real, true},
		{"tenant:acme|jane", "operation:refund|tenant:acme|" + real, true},
		{"tenant:acme|jane", "tenant:other|" + real, false},
		{"tenant:acme|jane", real, false},
		{"jane", "program:jane", true},
		{"jane", "program:acme|jane", false},
		{"arn:aws:iam::1:user/j", "program:iam:arn:aws:iam::1:user/j", true},
		{"certificate:jane", "program:certificate:CA|jane", true},
		{"auth0|7", "jwt:https://id.example|auth0|7", true},
		{"7", "jwt:https://id.example|auth0|7", false},
		{"jan", real, false},
		{"jwt:https://other.example|jane", real, false},
		{"one", "one:", true},
		{"one", "tenant:acme|one:", true},
		{"one", "jwt:CA|two", false},
		{"jane", "", false},
	} {
		if got := Means(tt.text, tt.of); got != tt.want {
			t.Errorf("Means(%q, %q) = %t, want %t", tt.text, tt.of, got, tt.want)
		}
	}
}

var errDown = errors.New("the table is away")

// faulty is a store that counts reads, and fails to read some records.
type faulty struct {
	*idem.MemoryStore
	errs  map[string]error
	reads map[string]int
}

func (f *faulty) Load(ctx context.Context, pk string) (*store.Record, error) {
	f.reads[pk]++
	rec, err := f.MemoryStore.Load(ctx, pk)
	return rec, cmp.Or(f.errs[pk], err)
}

// FindKey finds a record by the key, for a caller that the scope names,
// for a bare subject, and for a waiting record's scope.
func TestFindKey(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	claim := func(namespace, of string) string {
		pk, err := (Customer{Namespace: namespace, Key: "k", Scope: of}).PK(t.Context())
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
	jwt, queue, single := claim("rides", "iam:jwt"), claim("rides", "source:mails"), claim("taxi", "one")
	one, jane, colon, tenants, other := claim("", "one:"), claim("rides", "jwt:jane"), claim("rides", "iam:arn:aws:x"), claim("rides", "tenant:t|program:joe"), claim("shop", "lambda:jane")
	for name, tt := range map[string]struct {
		c       Customer
		waiting []string
		want    string
		errs    map[string]error
		err     error
	}{
		"exact":                           {Customer{Namespace: "rides", Key: "k", Scope: "jwt:jane"}, nil, jane, nil, nil},
		"exact, of another":               {Customer{Namespace: "rides", Key: "k", Scope: "jwt:joe"}, []string{jane}, "", nil, nil},
		"a bare subject":                  {Customer{Namespace: "rides", Key: "k", Scope: "jane"}, nil, jane, nil, nil},
		"a bare subject with colons":      {Customer{Namespace: "rides", Key: "k", Scope: "arn:aws:x"}, nil, colon, nil, nil},
		"a key as its header has it":      {Customer{Namespace: "rides", Key: ` "k" `, Scope: "jane"}, nil, jane, nil, nil},
		"a bare subject of a tenant":      {Customer{Namespace: "rides", Key: "k", Scope: "tenant:t|joe"}, nil, tenants, nil, nil},
		"a subject in no namespace":       {Customer{Key: "k", Scope: "jane"}, nil, "", nil, nil},
		"nothing but the key":             {Customer{Key: "k"}, nil, one, nil, nil},
		"in the namespace of what waits":  {Customer{Key: "k", Scope: "jwt:jane"}, []string{colon}, jane, nil, nil},
		"by the scope of what waits":      {Customer{Namespace: "rides", Only: true, Key: "k"}, []string{one, other, tenants}, tenants, nil, nil},
		"not in another namespace":        {Customer{Namespace: "rides", Only: true, Key: "k"}, []string{other}, "", nil, nil},
		"another key":                     {Customer{Key: "other"}, []string{jane, tenants}, "", nil, nil},
		"what waits has gone":             {Customer{Namespace: "rides", Key: "k"}, []string{"v1#rides#gone"}, "", nil, nil},
		"a record's namespace, exact one": {Customer{Namespace: "shop", Key: "k", Scope: "lambda:jane"}, nil, other, nil, nil},
		"a subject like a kind":           {Customer{Namespace: "rides", Key: "k", Scope: "jwt"}, nil, jwt, nil, nil},
		"a bare source":                   {Customer{Namespace: "rides", Key: "k", Scope: "mails"}, nil, queue, nil, nil},
		"one":                             {Customer{Namespace: "taxi", Key: "k", Scope: "one"}, nil, single, nil, nil},
		"sealed":                          {Customer{Namespace: "rides", Key: "k", Scope: "jane"}, nil, jane, map[string]error{jane: store.ErrSealed}, nil},
		"a record that can't be read":     {Customer{Namespace: "rides", Key: "k", Scope: "jane"}, []string{jane}, "", map[string]error{jane: errDown}, errDown},
		"what waits can't be listed":      {Customer{Namespace: "rides", Key: "other"}, []string{""}, "", nil, errDown},
		"its namespace can't be read":     {Customer{Key: "k", Scope: "jane"}, []string{tenants}, "", map[string]error{jane: errDown}, errDown},
		"what waits can't be read":        {Customer{Namespace: "rides", Key: "k"}, []string{"v1#rides#gone", tenants}, "", map[string]error{"v1#rides#gone": errDown}, errDown},
		"what waits is sealed or corrupt": {Customer{Namespace: "rides", Key: "k"}, []string{"v1#rides#gone", "v1#rides#bad", tenants}, tenants, map[string]error{"v1#rides#gone": store.ErrSealed, "v1#rides#bad": store.ErrCorrupt}, nil},
		"what waits is another's":         {Customer{Namespace: "rides", Only: true, Key: "k"}, []string{"v1#rides#gone", tenants}, tenants, nil, nil},
	} {
		waiting := func(yield func(stream.Entry, error) bool) {
			for _, pk := range tt.waiting {
				var err error
				if pk == "" {
					err = errDown
				}
				if !yield(stream.Entry{PK: pk}, err) {
					return
				}
			}
			yield(stream.Entry{}, stream.ErrNoIndex)
		}
		table := &faulty{mem, tt.errs, make(map[string]int)}
		recs, err := FindKey(t.Context(), table, tt.c, waiting)
		pk := ""
		if len(recs) > 0 {
			pk = recs[0].PK
		}
		if !errors.Is(err, tt.err) || pk != tt.want {
			t.Errorf("%s: %q, %v; want %q, %v", name, pk, err, tt.want, tt.err)
		}
		for pk, n := range table.reads {
			if n > 1 && !slices.Contains(tt.waiting, pk) {
				t.Errorf("%s: %s was read %d times", name, pk, n)
			}
		}
	}
}
