package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
)

// Only the outcome that a human must hear of is counted.
func TestResumedCountsWhatHasNoHandler(t *testing.T) {
	t.Parallel()
	for _, kind := range []completer.TicketOutcomeKind{
		completer.TicketNotMine, completer.TicketDone, completer.TicketMoved, completer.TicketFailed, completer.TicketStuck, completer.TicketInFlight,
	} {
		var log bytes.Buffer
		resumed(rides.NewMetrics(&log))(t.Context(), jobs.Ticket{Function: "rides"}, completer.TicketOutcome{Kind: kind})
		counted := 0.0
		if log.Len() > 0 {
			var line map[string]any
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			counted, _ = line[rides.MetricNotMine].(float64)
		}
		if want := kind == completer.TicketNotMine; (counted == 1) != want || (log.Len() > 0) != want {
			t.Errorf("%s: %s", kind, log.Bytes())
		}
	}
}
