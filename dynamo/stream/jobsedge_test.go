package stream_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// With tombstones on, an operation with a job has none once the job is delivered: the late retry charges again.
func TestTombstoneOfAnOperationWithJobs(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	clock := idemtest.NewClock()
	e := idem.New(tab.Store, callertest.Anybody, func(o *idem.Options) { o.Now, o.Retention, o.Tombstone = clock.Now, time.Hour, 24*time.Hour })
	charges := 0
	buy := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			charges++
			tx.Stage(idem.NewJob("receipt", 1))
			return idem.Response{Status: 201}, nil
		})
	}
	if _, err := e.Do(t.Context(), tabletest.Post("k", "1"), buy); err != nil {
		t.Fatal(err)
	}
	r := tab.Only(t)
	if err := stream.Ack(t.Context(), tab.Store, r, "0.0"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Hour)
	_, err := e.Do(t.Context(), tabletest.Post("k", "1"), buy)
	if !errors.Is(err, idem.ErrExpired) || charges != 1 {
		t.Errorf("late retry: %v, charged %d times; exp_s %v, until_s %v, tombstone 24h", err, charges, r.Expires, r.Until)
	}
}

// An operation with 50 jobs that can't be delivered is never parked: its records come again for ever.
func TestFiftyFailingJobsAreParked(t *testing.T) {
	t.Parallel()
	for _, n := range []int{40, 43, 50} {
		tab := newTable(t)
		var names []string
		failures := map[string]error{}
		for i := range n {
			names = append(names, "0."+strconv.Itoa(i))
			failures["0."+strconv.Itoa(i)] = errors.New("no sink for jobs of this kind")
		}
		r := tab.finished(t, nil, names...)
		now, err := stream.Fail(t.Context(), tab.Store, r, failures, 1)
		if err != nil {
			t.Errorf("%d jobs: %.300v", n, err)
			continue
		}
		for _, j := range now.Jobs {
			if j.Failed == "" {
				t.Errorf("%d jobs: not parked", n)
				break
			}
		}
		if _, err := stream.Redrive(t.Context(), tab.Store, r.PK, r.ID, "jane"); err != nil {
			t.Errorf("%d jobs redriven: %.300v", n, err)
		}
		if err := stream.Ack(t.Context(), tab.Store, r, names...); err != nil {
			t.Errorf("%d jobs acked: %.300v", n, err)
		}
	}
}
