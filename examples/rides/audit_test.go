package rides_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/google/go-cmp/cmp"
)

// Who did what to which thing, with what, and from where.
func TestAuditRecord(t *testing.T) {
	t.Parallel()
	st := onDynamoDB(t)
	ride := st.post(t, jane, "k", trip).is(t, 201).ride(t)
	got := make(map[string]any)
	for _, it := range scan(t, st.direct, st.app.AuditTable) {
		if err := attributevalue.UnmarshalMap(it, &got); err != nil {
			t.Fatal(err)
		}
	}
	if got["id"] == nil || got["created_at"] == nil {
		t.Errorf("no id or no time: %v", got)
	}
	delete(got, "id")
	delete(got, "created_at")
	var asked map[string]any
	if err := json.Unmarshal([]byte(trip), &asked); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"action": "ride.created", "user": jane, "origin_ip": "192.0.2.1", "resource_type": "ride", "resource_id": ride.ID,
		"data": asked,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit record (-want +got):\n%s", diff)
	}
}
