package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An item that changed between two Gets of one run: the Atomic isn't run again, but ErrCondition returned.
func TestTwoGetsOfOneItem(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	set := func(n int) {
		if _, err := tab.Direct.PutItem(t.Context(), rawPut(app, n)); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	runs := 0
	_, err := tab.Engine().Do(t.Context(), tabletest.Post("k", "1"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "debit", func(ctx context.Context, tx *idem.Tx) (int, error) {
			runs++
			var a, b counter
			if _, err := dynamo.Get(ctx, tx, tab.Direct, app, tabletest.ID("c"), &a); err != nil {
				return 0, err
			}
			if runs == 1 {
				set(2) // somebody else writes in between, once
			}
			if _, err := dynamo.Get(ctx, tx, tab.Direct, app, tabletest.ID("c"), &b); err != nil {
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
	app := tab.App(t)
	set := func(n int) {
		if _, err := tab.Direct.PutItem(t.Context(), rawPut(app, n)); err != nil {
			t.Fatal(err)
		}
	}
	set(100)
	_, err := tab.Engine().Do(t.Context(), tabletest.Post("k", "1"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "debit", func(ctx context.Context, tx *idem.Tx) (int, error) {
			var c counter
			if _, err := dynamo.Get(ctx, tx, tab.Direct, app, tabletest.ID("c"), &c, "N"); err != nil { // the attribute is "n"
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
	c, _ := tabletest.Read[counter](t, tab.Table, app, "c")
	if err == nil && c.N == 10 {
		t.Errorf("180 were taken from 100, balance %d: the check compared nothing", c.N)
	}
}

// The answer to a claim is lost; the claim is applied; the request's body is never stored: a crash later makes it stuck.
func TestLargeRequestAfterALostClaimAnswer(t *testing.T) {
	t.Parallel()
	withRetries(t, func(t *testing.T, tab *table) {
		clock := idemtest.NewClock()
		opt := func(o *idem.Options) { o.Function, o.Now, o.Resumable = "f", clock.Now, true }
		lost := false
		tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
			if op == "PutItem" && !lost {
				lost = true
				return dynamotest.LoseAnswer
			}
			return nil
		}
		dying := idemtest.Faulty(tab.Store, nil)

		var b strings.Builder
		for range 1000 {
			b.WriteString(rand.Text())
		}
		body := b.String()
		_, _ = idem.New(dying, callertest.Anybody, tabletest.Unhurried, opt).Do(t.Context(), tabletest.Post("k", body), func(context.Context) (idem.Response, error) {
			dying.Crash()
			return idem.Response{}, errors.New("dead")
		})
		clock.Advance(time.Hour)
		r := tab.Only(t)
		_, err := tab.Engine(opt).Resume(t.Context(), jobs.TicketFor(r), func(_ context.Context, req *idem.Request) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte{byte(len(req.Body))}}, nil
		})
		if err != nil {
			t.Errorf("completer: %v; record: %s, %s", err, tab.Only(t).State, tab.Only(t).LastErr)
		}
	})
}

// A status out of range commits the user's writes under a record that nobody can read any more.
func TestStatusOutOfRange(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	e := tab.Engine()
	h := func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("receipt", 1))
			return idem.Response{Status: 20}, nil
		})
	}
	first, err1 := e.Do(t.Context(), tabletest.Post("k", "1"), h)
	_, err2 := e.Do(t.Context(), tabletest.Post("k", "1"), h)
	if err1 == nil && errors.Is(err2, idem.ErrCorrupt) {
		t.Errorf("first %d; retry: %v", first.Status, err2)
	}
}

func rawPut(table string, n int) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{"id": tabletest.Str("c"), "n": tabletest.Num(int64(n))}}
}
