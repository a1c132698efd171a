package main

import (
	"context"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/completer"
)

// resumed counts the outcome that a human must hear of. The sweep and the hooks of the
// stream count the others.
func resumed(m *rides.Metrics) func(context.Context, jobs.Ticket, completer.TicketOutcome) {
	return func(_ context.Context, t jobs.Ticket, o completer.TicketOutcome) {
		if o.Kind == completer.TicketNotMine {
			m.NotMine(t, o.Error)
		}
	}
}
