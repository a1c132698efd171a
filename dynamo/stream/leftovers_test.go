package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// What TTL will delete costs a pass nothing but its reading: the pass writes its own place,
// and nothing else, before the items' time and long after it.
func TestPassLeavesToTTLWhatTTLDeletes(t *testing.T) {
	t.Parallel()
	tab := newTable(t, func(o *dynamo.Options) { o.KeepRequests = 24 * time.Hour })
	run(t, tab.Engine(callertest.Anybody), tabletest.Created("finished"))
	run(t, tab.Engine(callertest.Anybody, func(o *idem.Options) { o.Tombstone = 48 * time.Hour }), tabletest.Created("with a tombstone"))
	run(t, tab.Engine(callertest.Anybody), tabletest.Created(noise(50_000))) // in parts beside the record
	stored := tabletest.Post(tabletest.NewKey(), noise(50_000))              // with a request beside it
	if _, err := tab.Engine(callertest.Anybody, resumable).Do(t.Context(), stored, tabletest.Created("resumable")); err != nil {
		t.Fatal(err)
	}
	tab.Abandon(t, tabletest.Post(tabletest.NewKey(), "{}")) // nothing is committed
	down := errors.New("down")
	_, err := tab.Engine(callertest.Anybody).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (store.Response, error) { return store.Response{}, down })
	if !errors.Is(err, down) { // given back
		t.Fatal(err)
	}
	before := tab.Items(t)
	for _, it := range before {
		if it["exp_s"] == nil {
			t.Fatalf("TTL doesn't delete %v", it)
		}
	}
	for _, after := range []time.Duration{0, time.Hour, 25 * time.Hour, 60 * 24 * time.Hour} {
		queue := &tickets{}
		tab.Transport.Reset()
		rep, err := tab.sweep(in(after), func(o *stream.SweepOptions) {
			o.Drain, o.Queue, o.MarkStuck = stream.NewDrain(tab.Store, &outbox{}), queue, tab.Engine(callertest.Anybody, tabletest.Ahead(after)).MarkStuck
		}).Run(t.Context())
		if err != nil || !rep.Complete || rep.Scanned < len(before) {
			t.Fatalf("after %v: %+v, %v", after, rep, err)
		}
		want := calls{"Scan": rep.Pages, "GetItem": 1, "UpdateItem": 1} // of its place
		if diff := cmp.Diff(want, tab.Transport.Calls()); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", after, diff)
		}
		left := tab.Items(t)
		records := make([]map[string]types.AttributeValue, 0, len(left))
		for _, it := range left {
			if it["pk"].(*types.AttributeValueMemberS).Value != "samekey#sweep#" {
				records = append(records, it)
			}
		}
		if diff := cmp.Diff(before, records, anyValue); diff != "" || len(queue.all()) > 0 {
			t.Errorf("after %v the items (-before +after):\n%s; tickets %v", after, diff, queue.all())
		}
	}
}

var anyValue = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{})
