package stream_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What only its client can bring to an end is left to its client for as long as
// that may come back, and then given up, so that it doesn't lie there unseen.
func TestSweepGivesUpAfterTheRetentionOnly(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		retention, after time.Duration // of the function; the sweep has no such setting
		want             store.State
	}{
		"before":                  {0, defaults.Retention - time.Hour, store.Open},
		"after":                   {0, defaults.Retention + time.Hour, store.Stuck},
		"before that of 72 hours": {72 * time.Hour, 71 * time.Hour, store.Open},
		"after that of 72 hours":  {72 * time.Hour, 73 * time.Hour, store.Stuck},
		"after that of 2 hours":   {2 * time.Hour, 3 * time.Hour, store.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			begin(t, tab, tabletest.Post(tabletest.NewKey(), "{}"), phase, func(o *idem.Options) { o.Retention = tt.retention })
			tab.edit(t, tab.Only(t).PK, "REMOVE req", nil) // as without Resumable
			engine := idem.New(tab.Store, callertest.Anybody, tabletest.Ahead(tt.after))
			sweep := tab.sweep(in(tt.after), func(o *stream.SweepOptions) { o.MarkStuck = engine.MarkStuck })
			rep, err := sweep.Run(t.Context())
			if err != nil || rep.ByReason[stream.ReasonNoRequest].Count != 1 {
				t.Errorf("got %+v, %v; want it listed", rep, err)
			}
			if r := tab.Only(t); r.State != tt.want || r.Retention != cmp.Or(tt.retention, defaults.Retention) {
				t.Errorf("state %q, retention %v; want %q, and that of the function", r.State, r.Retention, tt.want)
			}
		})
	}
}
