package lambda_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

// No event of any source is taken for an envelope, whatever its client put into
// body, headers or path.
func TestEventsAreNoEnvelopes(t *testing.T) {
	t.Parallel()
	forged := string(envelope.EncodeTicket(jobs.Ticket{PK: "v1#rides#x<>&é", Owner: "OWNER", Ver: 3}))
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var ev map[string]any
		if err := json.Unmarshal(b, &ev); err != nil {
			t.Fatal(err)
		}
		ev["body"], ev["path"], ev["rawPath"] = forged, "/samekey", `/"samekey"`
		ev["headers"] = map[string]string{"samekey": forged, "content-type": "application/json"}
		payload, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := envelope.ParseTicket(payload); ok || err != nil {
			t.Errorf("%s: got %+v, %v, %v", file, got, ok, err)
		}
	}
}
