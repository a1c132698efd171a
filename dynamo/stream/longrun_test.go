package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A handler that took 40 minutes and failed has told its client: its key is free,
// and nothing was forgotten when the record goes.
func TestKeyFreedByALongHandlerRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	feed := tab.tail(t)
	clock := idemtest.NewClock()
	failsLate(t, tab, clock)
	if rep := look(t, tab, func(o *stream.SweepOptions) { o.Now = clock.Now }); len(rep.Entries) != 0 {
		t.Errorf("listed %+v", rep.Entries)
	}
	feed.event(t)
	if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(tab.Only(t).PK)},
	}); err != nil {
		t.Fatal(err)
	}
	completer := stream.NewCompleter(&tickets{}, func(o *stream.CompleterOptions) {
		o.Hooks.ExpiredOpen = func(_ context.Context, e stream.Entry) { t.Errorf("told %+v", e) }
	})
	if seq := handle(t, completer, feed.event(t)); seq != "" {
		t.Errorf("reported %q", seq)
	}
}

// What such a handler gives back is its client's for a whole grace: the sweep
// neither lists it at once nor hands it to the completer.
func TestSweepLeavesWhatALongHandlerGaveBackToItsClient(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		later          time.Duration
		listed, queued int
	}{
		"at once":                       {0, 0, 0},
		"before the grace":              {jobs.DefaultGrace - time.Minute, 0, 0},
		"after the grace":               {jobs.DefaultGrace + time.Minute, 1, 0},
		"the completer has not seen it": {jobs.DefaultGrace + 16*time.Minute, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab, clock, queue := newTable(t), idemtest.NewClock(), &tickets{}
			failsLate(t, tab, clock, resumable)
			clock.Advance(tt.later)
			rep, err := tab.sweep(func(o *stream.SweepOptions) { o.Now, o.Queue = clock.Now, queue }).Run(t.Context())
			if err != nil || rep.ByReason[stream.ReasonOpen].Count != tt.listed || len(rep.Entries) != tt.listed || rep.Queued != tt.queued {
				t.Errorf("got %+v, %v", rep, err)
			}
		})
	}
}

func failsLate(t *testing.T, tab *table, clock *idemtest.Clock, optFns ...func(*idem.Options)) {
	t.Helper()
	down := errors.New("down")
	engine := idem.New(tab.Store, append([]func(*idem.Options){callertest.Anybody}, append(optFns, func(o *idem.Options) { o.Now = clock.Now })...)...)
	_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		clock.Advance(40 * time.Minute)
		return idem.Response{}, down
	})
	if !errors.Is(err, down) {
		t.Fatal(err)
	}
}

// The jobs of such a handler have waited since its finish, not since its begin.
func TestSweepLeavesALongHandlersJobsToTheDrain(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	engine := idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) { o.Now = clock.Now })
	if _, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		clock.Advance(40 * time.Minute)
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1))
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1} {
		if rep := look(t, tab, func(o *stream.SweepOptions) { o.Now = clock.Now }); rep.ByReason[stream.ReasonUndelivered].Count != want {
			t.Errorf("listed %+v, want %d", rep, want)
		}
		clock.Advance(16 * time.Minute)
	}
}
