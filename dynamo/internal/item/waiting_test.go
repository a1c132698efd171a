package item

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// The entries of a cause are spread over its partitions, each by its own key.
func TestWaitKeys(t *testing.T) {
	t.Parallel()
	keys := WaitKeys(state.ReasonStuck)
	want := []string{"stuck#0", "stuck#1", "stuck#2", "stuck#3", "stuck#4", "stuck#5", "stuck#6", "stuck#7"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	seen := make(map[string]bool)
	for i := range 200 {
		key := WaitKey(state.ReasonStuck, fmt.Sprint("v1##", i))
		if !slices.Contains(keys, key) || key != WaitKey(state.ReasonStuck, fmt.Sprint("v1##", i)) {
			t.Errorf("record %d is in %q", i, key)
		}
		seen[key] = true
	}
	if len(seen) != len(keys) {
		t.Errorf("200 records are in %d partitions", len(seen))
	}
}

// The conditions of writes that go by the jobs and decisions of a record as it was read.
func TestHolds(t *testing.T) {
	t.Parallel()
	names := make(map[string]string)
	got := HoldJobs(map[string]store.Job{"0.1": {Failed: "bad"}, "0.0": {}}, names)
	const want = " AND attribute_not_exists(jobs.#w0.#f) AND attribute_exists(jobs.#w1.#f)"
	if diff := cmp.Diff(map[string]string{"#w0": "0.0", "#w1": "0.1", "#f": JobFailed}, names); got != want || diff != "" {
		t.Errorf("got %q, names (-want +got):\n%s", got, diff)
	}
	if got := HoldJobs(nil, names); got != "" {
		t.Errorf("without jobs: %q", got)
	}
	for want, tt := range map[string]struct {
		all  []store.Decision
		args []string
	}{
		" AND attribute_not_exists(settled)":                                   {nil, nil},
		" AND size(settled) = :decided AND settled[1].i = :decision":           {[]store.Decision{{ID: "a"}, {ID: "b"}}, []string{"2", "b"}},
		" AND size(settled) = :decided AND attribute_not_exists(settled[0].i)": {[]store.Decision{{}}, []string{"1"}},
	} {
		args := Map{}
		got := HoldDecisions(tt.all, args)
		var values []string
		if n, ok := args[":decided"].(*types.AttributeValueMemberN); ok {
			values = append(values, n.Value)
		}
		if s, ok := args[":decision"].(*types.AttributeValueMemberS); ok {
			values = append(values, s.Value)
		}
		if got != want || !slices.Equal(values, tt.args) || len(args) != len(tt.args) {
			t.Errorf("got %q with %q, want %q with %q", got, values, want, tt.args)
		}
	}
}

// Where a record stands comes back from its entry, and what it has not is not there.
func TestWaitInRoundTrip(t *testing.T) {
	t.Parallel()
	for _, w := range []state.Wait{{}, {Phase: "p"}, {Job: "0.0", Kind: "mail", Failed: "bad", Tries: 1}} {
		v := new(Values).WaitIn(w)
		if got := (&Decoder{It: Map{AttrWaitIn: v}}).WaitIn(); got != w {
			t.Errorf("got %+v, want %+v", got, w)
		}
		n := 0
		for _, there := range []bool{w.Phase != "", w.Job != "", w.Kind != "", w.Failed != "", w.Tries != 0} {
			if there {
				n++
			}
		}
		if got := len(v.(*types.AttributeValueMemberM).Value); got != n {
			t.Errorf("%+v has %d parts, want %d", w, got, n)
		}
	}
	none := &Decoder{}
	if got := none.WaitIn(); got != (state.Wait{}) || none.Err != nil {
		t.Errorf("without one: %+v, %v", got, none.Err)
	}
}
