package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

func only(t *testing.T, tab *table) *store.Record {
	t.Helper()
	for _, it := range tab.items(t) {
		if it["st"] == nil {
			continue
		}
		r, err := tab.store.Load(t.Context(), it["pk"].(*types.AttributeValueMemberS).Value)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatal("no record")
	return nil
}

// With tombstones on, an operation with a job has none once the job is delivered: the late retry charges again.
func TestTombstoneOfAnOperationWithJobs(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	clock := idemtest.NewClock()
	e := idem.New(tab.store, func(o *idem.Options) { o.Now, o.Retention, o.Tombstone = clock.Now, time.Hour, 24*time.Hour })
	charges := 0
	buy := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			charges++
			tx.Stage(idem.NewJob("receipt", 1))
			return idem.Response{Status: 201}, nil
		})
	}
	if _, err := e.Do(t.Context(), post("k", "1"), buy); err != nil {
		t.Fatal(err)
	}
	r := only(t, tab)
	if err := tab.store.Ack(t.Context(), r, "0.0"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Hour)
	_, err := e.Do(t.Context(), post("k", "1"), buy)
	if !errors.Is(err, idem.ErrExpired) || charges != 1 {
		t.Errorf("late retry: %v, charged %d times; exp_s %v, until_s %v, tombstone 24h", err, charges, r.Expires, r.Until)
	}
}

// An item that changed between two Gets of one run: the Atomic isn't run again, but ErrCondition returned.
func TestTwoGetsOfOneItem(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.app(t)
	set := func(n int) {
		if _, err := tab.direct.PutItem(t.Context(), rawPut(app, n)); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	runs := 0
	_, err := idem.New(tab.store).Do(t.Context(), post("k", "1"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "debit", func(ctx context.Context, tx *idem.Tx) (int, error) {
			runs++
			var a, b counter
			if _, err := dynamo.Get(ctx, tx, tab.direct, app, id("c"), &a); err != nil {
				return 0, err
			}
			if runs == 1 {
				set(2) // somebody else writes in between, once
			}
			if _, err := dynamo.Get(ctx, tx, tab.direct, app, id("c"), &b); err != nil {
				return 0, err
			}
			tx.Write(dynamo.Put(app, counter{ID: "c", N: b.N + 1}))
			return b.N, nil
		})
		return idem.Response{Status: 201}, err
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, ErrCondition %v: %v", runs, errors.Is(err, idem.ErrCondition), err)
	}
}

// A name in on that the item and the struct don't have guards nothing.
func TestGetOnAMisspeltAttribute(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.app(t)
	set := func(n int) {
		if _, err := tab.direct.PutItem(t.Context(), rawPut(app, n)); err != nil {
			t.Fatal(err)
		}
	}
	set(100)
	_, err := idem.New(tab.store).Do(t.Context(), post("k", "1"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "debit", func(ctx context.Context, tx *idem.Tx) (int, error) {
			var c counter
			if _, err := dynamo.Get(ctx, tx, tab.direct, app, id("c"), &c, "N"); err != nil { // the attribute is "n"
				return 0, err
			}
			if c.N == 100 {
				set(10) // somebody else takes 90
			}
			tx.Write(dynamo.Put(app, counter{ID: "c", N: c.N - 90}))
			return 0, nil
		})
		return idem.Response{Status: 201}, err
	})
	c, _ := read[counter](t, tab, app, "c")
	if err == nil && c.N == 10 {
		t.Errorf("180 were taken from 100, balance %d: the check compared nothing", c.N)
	}
}

// The answer to a claim is lost; the claim is applied; the request's body is never stored: a crash later makes it stuck.
func TestLargeRequestAfterALostClaimAnswer(t *testing.T) {
	t.Parallel()
	withRetries(t, func(t *testing.T, tab *table) {
		clock := idemtest.NewClock()
		opt := func(o *idem.Options) { o.Now, o.Resumable = clock.Now, true }
		lost := false
		tab.tr.Fault = func(op string, n int) dynamotest.Fault {
			if op == "PutItem" && !lost {
				lost = true
				return dynamotest.LoseAnswer
			}
			return nil
		}
		dying := idemtest.Faulty(tab.store, nil)

		var b strings.Builder
		for range 1000 {
			b.WriteString(rand.Text())
		}
		body := b.String()
		_, _ = idem.New(dying, opt).Do(t.Context(), post("k", body), func(context.Context) (idem.Response, error) {
			dying.Crash()
			return idem.Response{}, errors.New("dead")
		})
		clock.Advance(time.Hour)
		r := only(t, tab)
		_, err := idem.New(tab.store, opt).Resume(t.Context(), jobs.TicketFor(r), func(_ context.Context, req *idem.Request) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte{byte(len(req.Body))}}, nil
		})
		if err != nil {
			t.Errorf("completer: %v; record: %s, %s", err, only(t, tab).State, only(t, tab).LastErr)
		}
	})
}

// A status out of range commits the user's writes under a record that nobody can read any more.
func TestStatusOutOfRange(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	e := idem.New(tab.store)
	h := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("receipt", 1))
			return idem.Response{Status: 20}, nil
		})
	}
	first, err1 := e.Do(t.Context(), post("k", "1"), h)
	_, err2 := e.Do(t.Context(), post("k", "1"), h)
	if err1 == nil && errors.Is(err2, idem.ErrCorrupt) {
		t.Errorf("first %d; retry: %v", first.Status, err2)
	}
}

// The cache replays after the key has expired and another operation has it.
func TestCacheOfAnOperationWithJobs(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	clock := idemtest.NewClock()
	engine := func() *idem.Engine {
		return idem.New(tab.store, func(o *idem.Options) { o.Now, o.Retention, o.CacheBytes = clock.Now, time.Hour, 1<<20 })
	}
	a, b := engine(), engine()
	finish := func(body string) func(ctx context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Stage(idem.NewJob("receipt", 1))
				return idem.Response{Status: 201, Body: []byte(body)}, nil
			})
		}
	}
	if _, err := a.Do(t.Context(), post("k", "1"), finish("ride 1")); err != nil {
		t.Fatal(err)
	}
	if err := tab.store.Ack(t.Context(), only(t, tab), "0.0"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(30 * time.Hour)
	second, err := b.Do(t.Context(), post("k", "1"), finish("ride 2")) // expired: a new operation
	if err != nil {
		t.Fatal(err)
	}
	third, err := a.Do(t.Context(), post("k", "1"), finish("ride 3"))
	if err != nil || string(third.Body) != string(second.Body) {
		t.Errorf("one sandbox says %q, another %q (replayed %v)", second.Body, third.Body, third.Replayed)
	}
}

func rawPut(table string, n int) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{"id": str("c"), "n": num(int64(n))}}
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
		now, err := tab.store.Fail(t.Context(), r, failures, 1)
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
		if _, err := tab.store.Redrive(t.Context(), r.PK, r.ID); err != nil {
			t.Errorf("%d jobs redriven: %.300v", n, err)
		}
		if err := tab.store.Ack(t.Context(), r, names...); err != nil {
			t.Errorf("%d jobs acked: %.300v", n, err)
		}
	}
}
