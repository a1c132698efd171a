package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An operator's decision starts the sweep's times anew: the operation is not
// given up again a minute later, for having lain there before, but a retention
// later.
func TestSweepLeavesASettlementToItsClient(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	onClock := func(o *idem.Options) { o.Now = clock.Now }
	begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return err
	}, onClock)
	pk := tab.Only(t).PK
	tab.edit(t, pk, "REMOVE req", nil) // as without Resumable
	engine := idem.New(tab.Store, callertest.Anybody, onClock)
	sweep := tab.sweep(func(o *stream.SweepOptions) { o.Now, o.MarkStuck = clock.Now, engine.MarkStuck })
	for _, step := range []struct {
		later  time.Duration
		settle bool
		state  store.State
		listed stream.Reason
	}{
		{26 * time.Hour, false, store.Stuck, stream.ReasonNoRequest},
		{26 * time.Hour, false, store.Stuck, stream.ReasonStuck}, // nobody looks for a day
		{time.Minute, true, store.Open, ""},
		{10 * time.Minute, false, store.Open, stream.ReasonNoRequest},
		{23 * time.Hour, false, store.Open, stream.ReasonNoRequest},
		{2 * time.Hour, false, store.Stuck, stream.ReasonNoRequest},
	} {
		if step.settle {
			if err := engine.Settle(t.Context(), pk, idem.Settlement{By: "jane"}); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(step.later)
		rep, err := sweep.Run(t.Context())
		listed := step.listed == "" && len(rep.Entries) == 0 || rep.ByReason[step.listed].Count == 1
		if r := tab.Only(t); err != nil || r.State != step.state || !listed {
			t.Fatalf("%+v: state %q, got %+v, %v", step, r.State, rep, err)
		}
	}
	if r := tab.Only(t); len(r.Settled) != 1 || r.Settled[0].By != "jane" {
		t.Errorf("settled: %+v", r.Settled)
	}
}
