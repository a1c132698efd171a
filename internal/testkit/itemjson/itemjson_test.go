package itemjson_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/itemjson"
)

// An item comes back as it was, with each type that a record has; a set is refused.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	const text = `{"b":{"B":"AAE="},"l":{"L":[{"S":"x"},{"N":"1"}]},"m":{"M":{"y":{"BOOL":true}}},"n":{"NULL":true}}`
	var it itemjson.Item
	if err := json.Unmarshal([]byte(text), &it); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(it)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"s":{"SS":["x"]}}`), &it); err == nil {
		t.Error("a set was read")
	}
}
