package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/metrics"
)

// Only the outcome that a human must hear of is counted.
func TestResumedCountsWhatHasNoHandler(t *testing.T) {
	t.Parallel()
	for _, kind := range []completer.TicketOutcomeKind{
		completer.TicketNotMine, completer.TicketDone, completer.TicketMoved, completer.TicketFailed, completer.TicketStuck, completer.TicketInFlight,
	} {
		var log bytes.Buffer
		resumed(metrics.New(&log, "app"))(t.Context(), jobs.Ticket{Function: "rides"}, completer.TicketOutcome{Kind: kind})
		counted := 0.0
		if log.Len() > 0 {
			var line map[string]any
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			counted, _ = line[metrics.NotMine].(float64)
		}
		if want := kind == completer.TicketNotMine; (counted == 1) != want || (log.Len() > 0) != want {
			t.Errorf("%s: %s", kind, log.Bytes())
		}
	}
}
