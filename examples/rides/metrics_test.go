package rides_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda/metrics"
)

// counted are the names of the metrics in a log, in order, without those that every
// request has.
func counted(t *testing.T, log []byte) (names []string) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var values map[string]any
		if err := json.Unmarshal(line, &values); err != nil {
			t.Fatal(err)
		}
		for _, m := range metrics.All() {
			if _, there := values[m.Name]; there && !slices.Contains(always, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

var always = []string{"Requests", "Duration", "PhaseDuration", "JobsStaged", "StoreCalls"}

// What happens to requests is counted, and neither keys nor bodies get out.
func TestMetricsOfRequests(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	st := inMemory(t, func(o *idem.Options) { o.Hooks = metrics.New(&log, rides.MetricsApp).Hooks() })
	st.post(t, jane, "my-key", trip).is(t, 201)
	_ = st.post(t, jane, "my-key", trip)
	st.post(t, jane, "my-key", other).is(t, 422)
	want := []string{"Claimed", "Replayed", "Mismatch"}
	if diff := cmp.Diff(want, counted(t, log.Bytes())); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for _, secret := range []string{"my-key", "37.7", jane} {
		if bytes.Contains(log.Bytes(), []byte(secret)) {
			t.Errorf("%s is in the log: %s", secret, &log)
		}
	}
}
