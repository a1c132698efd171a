package calls_test

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// The program of docs/start/jobs.md, which is compiled, and not run.
var _ = func() { // jobs
	type Receipt struct{ Ride string }
	_ = func(ctx context.Context) error {
		if err := idem.Stage(ctx, idem.NewJob("look_for_driver", "ride_1")); err != nil { // between phases: in the next commit
			return err
		}
		_, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("send_receipt", Receipt{Ride: "ride_1"})) // in a phase: with it
			return "ride_1", nil
		})
		return err
	}
}
