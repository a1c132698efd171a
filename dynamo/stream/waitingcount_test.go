package stream_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/lambda/worker"
)

// A worker counts what waits on a schedule of its own, zero included, and neither scans
// nor writes for that.
func TestWorkerCountsWhatWaits(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	var got []*stream.Counted
	w := worker.New(tab.Client, tab.Store, asSQS(&tickets{}), func(o *worker.Options) {
		o.Hooks.Counted = func(_ context.Context, c *stream.Counted) { got = append(got, c) }
	})
	const event = `{"source":"aws.scheduler","task":"count"}`
	if out, err := w.Invoke(t.Context(), []byte(event)); err != nil ||
		string(out) != `{"count":0,"oldest_s":0,"by_reason":{"blocked":{"count":0,"oldest_s":0},"parked":{"count":0,"oldest_s":0},`+
			`"stuck":{"count":0,"oldest_s":0},"unknown":{"count":0,"oldest_s":0},"unreadable":{"count":0,"oldest_s":0}}}` {
		t.Errorf("answered %s, %v", out, err)
	}
	crowd(t, tab)
	swept(t, tab)
	tab.Transport.Reset()
	if _, err := w.Invoke(t.Context(), []byte(event)); err != nil {
		t.Fatal(err)
	}
	if calls := tab.Transport.Calls(); calls["Query"] == 0 || calls["Query"]+1 != tab.Transport.Total() || calls["GetItem"] != 1 /* the sweep's place */ {
		t.Errorf("a count took %v", calls)
	}
	counts := make(map[stream.Reason]int)
	for why, tally := range got[1].ByReason {
		counts[why] = tally.Count
		if tally.Count > 0 != (tally.Oldest > 0) && why == stream.ReasonStuck { // a minute old
			t.Errorf("%s: %+v", why, tally)
		}
	}
	want := map[stream.Reason]int{stream.ReasonUnknown: 0, stream.ReasonStuck: 1, stream.ReasonBlocked: 0, stream.ReasonParked: 1, stream.ReasonUnreadable: 1}
	if diff := cmp.Diff(want, counts); diff != "" || len(got) != 2 || got[0].Count != 0 || got[1].Count != 3 || got[1].Oldest < 50 {
		t.Errorf("counted %+v (-want +got):\n%s", got[1], diff)
	}
}
