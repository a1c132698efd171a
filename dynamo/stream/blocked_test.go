package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// After a deploy that renames a recorded phase the operation is listed at once,
// with its cause, however often its client tries again; the completer and its
// client go on as ever, and once it is done nothing is listed.
func TestBlockedIsListedAtOnce(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine, req := idem.New(tab.Store, callertest.Anybody, resumable), tabletest.Post(tabletest.NewKey(), "{}")
	version := func(phase string, then error) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, phase, func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{Status: 201}, errors.Join(err, then)
		}
	}
	if _, err := engine.Do(t.Context(), req, version("ride_created", errors.New("down"))); err == nil {
		t.Fatal("answered")
	}
	if rep := look(t, tab); len(rep.Entries) != 0 {
		t.Fatalf("listed %+v before it is refused", rep.Entries)
	}
	for range 3 {
		if _, err := engine.Do(t.Context(), req, version("booked", nil)); !errors.Is(err, idem.ErrPhaseOrder) {
			t.Fatal(err)
		}
		rep := look(t, tab)
		if len(rep.Entries) != 1 || rep.Entries[0].Reason != stream.ReasonBlocked || rep.ByReason[stream.ReasonBlocked].Count != 1 ||
			!strings.Contains(rep.Entries[0].LastErr, `"booked" is next, but "ride_created" is recorded there`) {
			t.Fatalf("listed %+v", rep.Entries)
		}
	}

	queue := &tickets{} // the sweep stands in for the stream, as with anything that is open
	rep, err := tab.sweep(in(time.Hour), func(o *stream.SweepOptions) { o.Queue = queue }).Run(t.Context())
	if err != nil || rep.Queued != 1 || len(rep.Entries) != 1 || rep.Entries[0].Reason != stream.ReasonBlocked {
		t.Errorf("an hour later %+v, %v", rep, err)
	}
	if res, err := engine.Do(t.Context(), req, version("ride_created", nil)); err != nil || res.Status != 201 {
		t.Fatalf("after the rollback %+v, %v", res, err)
	}
	if rep := look(t, tab, in(time.Hour)); len(rep.Entries) != 0 {
		t.Errorf("done, and listed %+v", rep.Entries)
	}
}
