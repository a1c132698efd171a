package rides_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// R104: who did what to which thing, and from where.
func TestAuditRecord(t *testing.T) {
	t.Parallel()
	st := onDynamoDB(t)
	ride := st.post(t, jane, "k", trip).is(t, 201).ride(t)
	got := make(map[string]string)
	for _, it := range scan(t, st.direct, st.app.AuditTable) {
		for name, v := range it {
			got[name] = text(t, v)
		}
	}
	if got["id"] == "" || got["created_at"] == "" {
		t.Errorf("no id or no time: %v", got)
	}
	delete(got, "id")
	delete(got, "created_at")
	want := map[string]string{
		"action": "ride.created", "user": jane, "origin_ip": "192.0.2.1", "resource_type": "ride", "resource_id": ride.ID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit record (-want +got):\n%s", diff)
	}
}
