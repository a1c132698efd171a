package dynamo

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Every attribute an expression names without a placeholder must not be one of
// DynamoDB's reserved words; the service would refuse it only when it is used.
func TestReservedWordsHavePlaceholders(t *testing.T) {
	t.Parallel()
	job := idem.Job{Kind: "k"}
	prev := &store.Record{Owner: "a", Ver: 1, Expires: time.Unix(1, 0), Jobs: map[string]idem.Job{"0.0": job}}
	next := &store.Record{
		Owner: "b", Ver: 2, State: store.Done, Keep: store.KeepJobs, LastErr: "e", Until: time.Unix(2, 0), Tombstone: time.Minute, Lease: time.UnixMilli(3),
		Run: time.UnixMilli(4), Tries: 1, Phases: []store.Phase{{Name: "p"}}, Jobs: map[string]idem.Job{"0.0": job, "1.0": job},
		Response: &idem.Response{Status: 200},
	}
	u, err := (&Store{inline: defaultInline}).update(t.Context(), store.Commit{Prev: prev, Next: next})
	if err != nil {
		t.Fatal(err)
	}
	expression := *u.expression()
	for _, word := range []string{" owner ", " region ", " scope ", ",owner", "(owner"} {
		if strings.Contains(" "+expression+" "+holderCondition+" "+claimCondition+" ", word) {
			t.Errorf("reserved word %q in %s", word, expression)
		}
	}
	want := "SET ver = :ver1, #owner = :owner1, st = :st, keep = :keep, last_err = :last_err, until_s = :until_s, tomb_s = :tomb_s, " +
		"lease_ms = :lease_ms, run_ms = :run_ms, tries = :tries, phases = :phases, jobs.#j1 = :j1, resp = :resp REMOVE exp_s, req"
	if diff := cmp.Diff(want, expression); diff != "" {
		t.Errorf("expression (-want +got):\n%s", diff)
	}
}

// Of the attributes that a record has only at times: which writes set and remove them.
func TestAttributesThatAreAbsent(t *testing.T) {
	t.Parallel()
	job := idem.Job{Kind: "k"}
	claimed := &store.Record{Owner: "a", Ver: 1, State: store.Open, Lease: time.UnixMilli(3), Created: time.UnixMilli(1), Run: time.UnixMilli(1), Retention: 24 * time.Hour}
	staged := claimed.Clone()
	staged.Jobs = map[string]idem.Job{"0.0": job}
	called := claimed.Clone()
	called.Calls = map[string]int{"pay#": 1}
	lasting := claimed.Clone()
	lasting.Retention = time.Hour
	answered := claimed.Clone()
	answered.State, answered.Response = store.Done, &store.Response{Status: 200}
	decided := claimed.Clone()
	decided.Settled = []store.Decision{{By: "a"}, {By: "b"}}
	for name, tt := range map[string]struct {
		prev *store.Record
		next func(*store.Record)
		want string
	}{
		"the first jobs":    {claimed, func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": job, "0.1": job} }, "SET ver = :ver1, jobs = :jobs"},
		"a job more":        {staged, func(r *store.Record) { r.Jobs = map[string]idem.Job{"0.0": job, "1.0": job} }, "SET ver = :ver1, jobs.#j1 = :j1"},
		"no job":            {claimed, func(*store.Record) {}, "SET ver = :ver1"},
		"the same job":      {staged, func(*store.Record) {}, "SET ver = :ver1"},
		"the first call":    {claimed, func(r *store.Record) { r.Calls = map[string]int{"pay#": 1} }, "SET ver = :ver1, calls = :calls"},
		"the same call":     {called, func(*store.Record) {}, "SET ver = :ver1"},
		"a release":         {claimed, func(r *store.Record) { r.Lease, r.Run = time.Time{}, time.UnixMilli(2) }, "SET ver = :ver1, lease_ms = :lease_ms, run_ms = :run_ms"},
		"stuck":             {claimed, func(r *store.Record) { r.State, r.Lease = store.Stuck, time.Time{} }, "SET ver = :ver1, st = :st, lease_ms = :lease_ms, waits = :wait, wait_in = :wait_in, wait_ms = if_not_exists(wait_ms, :since)"},
		"a finish, no call": {claimed, func(r *store.Record) { r.State, r.Lease, r.Retention = store.Done, time.Time{}, 0 }, "SET ver = :ver1, st = :st REMOVE lease_ms"},
		"forgotten":         {staged, func(r *store.Record) { r.Keep, r.Jobs = store.KeepFreed, nil }, "SET ver = :ver1, keep = :keep REMOVE jobs, waits, wait_ms, wait_in"},
		"another retention": {claimed, func(r *store.Record) { r.Retention = time.Hour }, "SET ver = :ver1, retain_s = :retain_s"},
		"the default again": {lasting, func(r *store.Record) { r.Retention = 24 * time.Hour }, "SET ver = :ver1 REMOVE retain_s"},
		"its finish":        {lasting, func(r *store.Record) { r.State, r.Retention = store.Done, 0 }, "SET ver = :ver1, st = :st REMOVE retain_s"},
		"a finish":          {called, func(r *store.Record) { r.State, r.Lease, r.Calls = store.Done, time.Time{}, nil }, "SET ver = :ver1, st = :st REMOVE lease_ms, calls"},
		"a finished record": {answered, func(r *store.Record) { r.Run = time.UnixMilli(4) }, "SET ver = :ver1, run_ms = :run_ms"},
		"a decision":        {decided, func(r *store.Record) { r.Settled = append(r.Settled, store.Decision{By: "c"}) }, "SET ver = :ver1, settled = list_append(if_not_exists(settled, :none), :settled)"},
		"another decision":  {decided, func(r *store.Record) { r.Settled = []store.Decision{{By: "b"}, {By: "c"}} }, "SET ver = :ver1, settled = :settled"},
		"two decisions":     {decided, func(r *store.Record) { r.Settled = append(r.Settled, store.Decision{By: "c"}, store.Decision{By: "d"}) }, "SET ver = :ver1, settled = :settled"},
		"other decisions":   {decided, func(r *store.Record) { r.Settled = []store.Decision{{By: "x"}, {By: "b"}, {By: "c"}} }, "SET ver = :ver1, settled = :settled"},
		"its answer goes":   {answered, func(r *store.Record) { r.Overflow = &store.Overflow{} }, "SET ver = :ver1, resp = :resp"},
		"done, but held on": {claimed, func(r *store.Record) { r.State, r.Lease = store.Done, time.UnixMilli(4) }, "SET ver = :ver1, st = :st, lease_ms = :lease_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := tt.prev.Clone()
			next.Ver = 2
			tt.next(next)
			u, err := (&Store{inline: defaultInline}).update(t.Context(), store.Commit{Prev: tt.prev, Next: next})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *u.expression()); diff != "" {
				t.Errorf("expression (-want +got):\n%s", diff)
			}
		})
	}
}

// Jobs are given up, and a full list of decisions is written anew, only as they were read.
func TestWhatAPersonSawIsHeld(t *testing.T) {
	t.Parallel()
	prev := &store.Record{Owner: "a", Ver: 1, State: store.Stuck, Jobs: map[string]idem.Job{"0.0": {Kind: "k"}}, Settled: []store.Decision{{ID: "1"}, {ID: "2"}}}
	for name, tt := range map[string]struct {
		next      func(*store.Record)
		condition []string
		args      map[string]string
	}{
		"one decision more": {func(r *store.Record) { r.Settled = append(r.Settled, store.Decision{ID: "3"}) }, nil, nil},
		"the oldest goes":   {func(r *store.Record) { r.Settled = []store.Decision{{ID: "2"}, {ID: "3"}} }, []string{" AND size(settled) = :decided AND settled[1].i = :decision"}, map[string]string{":decided": "2"}},
		"forgotten":         {func(r *store.Record) { r.Keep, r.Jobs = store.KeepFreed, nil }, []string{" AND size(jobs) = :jobs"}, map[string]string{":jobs": "1"}},
	} {
		next := prev.Clone()
		next.Ver = 2
		tt.next(next)
		u, err := (&Store{inline: defaultInline}).update(t.Context(), store.Commit{Prev: prev, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{" AND size(jobs) = :jobs", " AND size(settled) = :decided AND settled[1].i = :decision"} {
			if strings.Contains(u.condition, part) != slices.Contains(tt.condition, part) {
				t.Errorf("%s: the condition is %q", name, u.condition)
			}
		}
		for arg, want := range tt.args {
			if n, ok := u.args[arg].(*types.AttributeValueMemberN); !ok || n.Value != want {
				t.Errorf("%s: %s is %v", name, arg, u.args[arg])
			}
		}
	}
}

// What a commit of a program that encrypts writes: of a sealed record only what differs,
// unless another handler takes it over. Its contents are bound to the handler, so they are
// sealed anew.
func TestCommitsOfAProgramThatEncrypts(t *testing.T) {
	t.Parallel()
	sealer := newSealer(t)
	s := &Store{inline: defaultInline, sealer: sealer}
	read := func(it item.Map) *store.Record {
		r, err := item.Decode(it)
		if err == nil {
			err = item.Unseal(t.Context(), sealer, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain, sealed := read(itemOf(t, nil)), read(itemOf(t, sealer))
	phased := sealed.Clone()
	phased.Phases = []store.Phase{{Name: "one", Result: []byte("1")}}
	withJob := plain.Clone()
	withJob.Jobs = map[string]store.Job{"0.0": {Kind: "k"}}
	renews := func(r *store.Record) { r.Lease = r.Lease.Add(time.Minute) }
	takes := func(r *store.Record) { renews(r); r.Owner = "c" }
	takesAs := func(r *store.Record) { takes(r); r.Handler.Name = "new" }
	for name, tt := range map[string]struct {
		prev *store.Record
		next func(*store.Record)
		want string
	}{
		"a renewal":                              {sealed, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a renewal of a plain record":            {plain, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a renewal of a plain record with jobs":  {withJob, renews, "SET ver = :ver1, lease_ms = :lease_ms"},
		"a job more":                             {withJob, func(r *store.Record) { r.Jobs = map[string]store.Job{"0.0": {Kind: "k"}, "1.0": {Kind: "k"}} }, "SET seal = :seal, ver = :ver1, jobs.#j1 = :j1"},
		"another tenant":                         {phased, func(r *store.Record) { takes(r); r.Tenant = "acme" }, "SET ver = :ver1, #owner = :owner1, tn = :tn, lease_ms = :lease_ms, phases = :phases, req = :req"},
		"a take-over":                            {sealed, takes, "SET ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
		"a take-over of a plain record":          {plain, takes, "SET seal = :seal, ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
		"a take-over by another handler":         {sealed, takesAs, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, req = :req"},
		"with phases":                            {phased, takesAs, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, phases = :phases, req = :req"},
		"with phases, and without the request":   {phased, func(r *store.Record) { takesAs(r); r.Input = nil }, "SET ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms, phases = :phases REMOVE req"},
		"another handler takes over a plain one": {plain, takesAs, "SET seal = :seal, ver = :ver1, #owner = :owner1, hn = :hn, lease_ms = :lease_ms"},
		"an operator ends a lease without a key": {plain, func(r *store.Record) { r.Owner, r.Lease = "c", time.Time{} }, "SET ver = :ver1, #owner = :owner1, lease_ms = :lease_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := tt.prev.Clone()
			next.Ver++
			tt.next(next)
			u, err := s.update(t.Context(), store.Commit{Prev: tt.prev, Next: next})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *u.expression()); diff != "" {
				t.Errorf("expression (-want +got):\n%s", diff)
			}
		})
	}
}

// A reserved word is written by its placeholder, which no other write gets.
func TestScopeIsWrittenByAPlaceholder(t *testing.T) {
	t.Parallel()
	before := maps.Clone(ownerName)
	u, err := (&Store{inline: defaultInline}).update(t.Context(), store.Commit{Prev: &store.Record{Ver: 1, Scope: "s"}, Next: &store.Record{Ver: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("SET ver = :ver1 REMOVE #scope", *u.expression()); diff != "" || u.names["#scope"] != "scope" || !maps.Equal(ownerName, before) {
		t.Errorf("names %v, of every write %v; expression (-want +got):\n%s", u.names, ownerName, diff)
	}
}
