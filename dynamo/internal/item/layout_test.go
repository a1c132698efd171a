package item

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/itemsize"
)

// A new record has no attribute that says nothing.
func TestAttributesOfANewRecord(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_123)
	claimed := store.Record{
		PK: "v1##x", State: store.Open, Owner: "o", Ver: 1, ID: "i", Fingerprint: strings.Repeat("0f", 32),
		Lease: at.Add(time.Minute), Expires: at, Created: at, Run: at, Retention: defaults.Retention,
	}
	always := []string{AttrCreated, AttrFP, AttrID, AttrOwner, AttrPK, AttrState, AttrVersion, AttrVer}
	for name, tt := range map[string]struct {
		change func(*store.Record)
		more   []string
	}{
		"claimed":                     {func(*store.Record) {}, []string{AttrExpires, AttrLease}},
		"without an owner":            {func(r *store.Record) { r.Owner = "" }, []string{AttrExpires, AttrLease}},
		"released":                    {func(r *store.Record) { r.Lease = time.Time{} }, []string{AttrExpires, AttrLease}},
		"begun later than claimed":    {func(r *store.Record) { r.Run = at.Add(1) }, []string{AttrExpires, AttrLease, AttrRun}},
		"with a call":                 {func(r *store.Record) { r.Calls = map[string]int{"pay#": 1} }, []string{AttrExpires, AttrLease, AttrCalls}},
		"with a job":                  {func(r *store.Record) { r.Jobs = map[string]store.Job{"0.0": {Kind: "k"}} }, []string{AttrExpires, AttrLease, AttrJobs}},
		"stuck":                       {func(r *store.Record) { r.State, r.Lease = store.Stuck, time.Time{} }, []string{AttrExpires, AttrLease, AttrSince, AttrWait, AttrWaitIn}},
		"done":                        {done, []string{AttrExpires, AttrResp}},
		"done, and its jobs are gone": {func(r *store.Record) { done(r); r.Keep, r.Expires = store.KeepJobs, time.Time{} }, []string{AttrJobs, AttrKeep, AttrResp}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := claimed.Clone()
			tt.change(r)
			want := slices.Sorted(slices.Values(append(slices.Clone(always), tt.more...)))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(encoded(r)))); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

func done(r *store.Record) {
	r.State, r.Lease, r.Calls, r.Response = store.Done, time.Time{}, nil, &store.Response{Status: 200}
}

// A hash is stored in half the space and comes back as the same string; a string that
// isn't lower-case hex is stored as it is.
func TestHashes(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("09af", 16)
	for name, tt := range map[string]struct {
		hash   string
		binary bool
	}{
		"SHA-256":        {sum, true},
		"a byte":         {"00", true},
		"a longer hash":  {sum + sum + sum, true},
		"empty":          {"", false},
		"odd":            {sum[1:], false},
		"upper case":     {strings.ToUpper(sum), false},
		"not hex":        {"xy", false},
		"half hex":       {"0g", false},
		"after 9":        {"0:", false},
		"before a":       {"0Z", false},
		"not hex at all": {"zoë!", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Values
			v.Hash(sum) // there is room for two
			it := Map{AttrFP: v.Hash(tt.hash), "sum": v.Hash(sum)}
			if _, binary := it[AttrFP].(*types.AttributeValueMemberB); binary != tt.binary {
				t.Errorf("stored as %T", it[AttrFP])
			}
			d := Decoder{It: it}
			if got := d.hash(AttrFP); got != tt.hash || d.hash("sum") != sum || d.Err != nil {
				t.Errorf("%q came back as %q, and %q, %v", tt.hash, got, d.hash("sum"), d.Err)
			}
		})
	}
}

// The sizes of a claim and of its finished record.
func TestRecordSizes(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_800_000_000_123)
	r := &store.Record{
		PK: "v1##" + strings.Repeat("x", 43), State: store.Open, Owner: strings.Repeat("o", 26), Ver: 1, ID: strings.Repeat("i", 26),
		Fingerprint: strings.Repeat("0f", 32), Lease: at.Add(time.Minute), Expires: at, Created: at, Run: at,
	}
	if got := itemsize.Of(encoded(r)); got != 197 {
		t.Errorf("a claim has %d bytes, want 197", got)
	}
	done(r)
	r.Response.Body = []byte(strings.Repeat("b", 140))
	if got := itemsize.Of(encoded(r)); got != 334 {
		t.Errorf("a finished record has %d bytes, want 334", got)
	}
}
