package dynamo_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, fault := range tabletest.Ambiguous {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("at the claim: the handler runs once, its answer replays", func(t *testing.T) {
				withRetries(t, func(t *testing.T, tab *table) {
					tab.Transport.Fault = tabletest.On("PutItem", 1, fault)
					engine, req, runs := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}"), 0
					res, err := engine.Do(t.Context(), req, counted(&runs, tabletest.Created("once")))
					switch {
					case errors.Is(err, idem.ErrUnavailable):
						// Sent once and never applied: refused, and nothing is in the way of a retry.
						if runs != 0 {
							t.Fatalf("refused, but the handler ran")
						}
						if res, err = engine.Do(t.Context(), req, counted(&runs, tabletest.Created("once"))); err != nil {
							t.Fatal(err)
						}
					case err != nil:
						t.Fatal(err)
					}
					if runs != 1 || string(res.Body) != "once" || res.Replayed {
						t.Fatalf("ran %d times, answered %+v", runs, res)
					}
					tabletest.Replays(t, engine, req, "once")
				})
			})
			t.Run("at the finish: the answer is stored", func(t *testing.T) {
				withRetries(t, func(t *testing.T, tab *table) {
					tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
					engine, req, runs := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}"), 0
					if _, err := engine.Do(t.Context(), req, counted(&runs, tabletest.Created("once"))); err != nil {
						t.Fatal(err)
					}
					tabletest.Replays(t, engine, req, "once")
				})
			})
			t.Run("at the release: the key is free at once", func(t *testing.T) {
				withRetries(t, func(t *testing.T, tab *table) {
					tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
					engine, req, down := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}"), errors.New("down")
					_, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, down })
					if !errors.Is(err, down) {
						t.Fatal(err)
					}
					req.Body = []byte(`{"corrected":true}`) // another fingerprint: only a freed key takes it
					if _, err := engine.Do(t.Context(), req, tabletest.Created("second")); err != nil {
						t.Fatal(err)
					}
					tabletest.Replays(t, engine, req, "second")
				})
			})
			t.Run("at the take-over: one winner, and its answer replays", func(t *testing.T) {
				withRetries(t, func(t *testing.T, tab *table) {
					req := tabletest.Post(tabletest.NewKey(), "{}")
					tab.Abandon(t, req)
					tab.Transport.Reset()
					tab.Transport.Fault = tabletest.On("UpdateItem", 1, fault)
					later := tab.Engine(tabletest.Ahead(time.Minute))
					res, err := later.Do(t.Context(), req, tabletest.Created("second"))
					if err != nil || string(res.Body) != "second" {
						t.Fatalf("got %+v, %v", res, err)
					}
					tabletest.Replays(t, later, req, "second")
				})
			})
		})
	}
}

// A store that stays away: refused before the handler runs (A31, bad input 27).
func TestStoreDown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"unreachable":      dynamotest.LoseRequest,
		"throttled":        dynamotest.Throttle,
		"broken":           dynamotest.Answer500,
		"access denied":    dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected"),
		"KMS denied":       dynamotest.AnswerError(http.StatusBadRequest, "KMSAccessDeniedException", "injected"),
		"table is missing": dynamotest.AnswerError(http.StatusBadRequest, "ResourceNotFoundException", "injected"),
	} {
		t.Run("BadInput27 "+name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				tab.Transport.Fault = func(string, int) dynamotest.Fault { return fault }
				short := func() context.Context {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					t.Cleanup(cancel)
					return ctx
				}

				engine := tab.Engine()
				req := tabletest.Post(tabletest.NewKey(), "{}")
				req.Header = http.Header{idem.KeyHeader: {req.Key}}
				req.Key = ""
				res, err := engine.Serve(short(), req, tabletest.NeverRuns(t))
				if err != nil || res.Status != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
					t.Errorf("got %d %v %s, %v", res.Status, res.Header, res.Body, err)
				}

				opened := 0
				open := tab.Engine(func(o *idem.Options) {
					o.Mode = idem.ModeOpen
					o.Hooks.Unprotected = func(context.Context, idem.Event) { opened++ }
				})
				want, runs := http.StatusCreated, 1
				if strings.Contains(name, "denied") || strings.Contains(name, "missing") { // the table has answered
					want, runs = http.StatusServiceUnavailable, 0
				}
				if res, err = open.Serve(short(), req, tabletest.Created("unprotected")); err != nil || res.Status != want || opened != runs {
					t.Errorf("ModeOpen got %d %s, %v, and ran %d times unprotected; want %d, %d", res.Status, res.Body, err, opened, want, runs)
				}
			})
		})
	}
}

// The handler's effect has happened: what can't be stored is still answered,
// and not run again before the lease ends.
func TestFinishFailsForGood(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		tab.Transport.Fault = func(op string, _ int) dynamotest.Fault {
			if op == "UpdateItem" {
				return dynamotest.LoseRequest
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var failed error
		engine := tab.Engine(func(o *idem.Options) {
			o.Hooks.Failed = func(_ context.Context, ev idem.Event) { failed = ev.Err }
		})
		req := tabletest.Post(tabletest.NewKey(), "{}")
		if res, err := engine.Do(ctx, req, tabletest.Created("done")); err != nil || string(res.Body) != "done" || !res.Unstored {
			t.Fatalf("got %+v, %v, want the answer, marked as unstored", res, err)
		}
		if !errors.Is(failed, store.ErrUnknown) {
			t.Errorf("Hooks.Failed was told %v", failed)
		}
		if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrInFlight) {
			t.Errorf("a retry within the lease got %v, want in flight", err)
		}
	})
}

// An answer the table refuses for good: that it is done is what counts.
func TestFinishRefusedStoresTheStatus(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.Transport.Fault = tabletest.On("UpdateItem", 2, dynamotest.AnswerError(http.StatusBadRequest, "ValidationException", "Item size has exceeded"))
	engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
	if res, err := engine.Do(t.Context(), req, tabletest.Created("done")); err != nil || string(res.Body) != "done" {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("a retry got %v, want not kept", err)
	}
}

// A companion that can't be written in all the time there is must not leave the
// record unfinished.
func TestCompanionRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
			if op == "PutItem" && n > 1 {
				return dynamotest.Throttle
			}
			return nil
		}
		engine, req := tab.Engine(func(o *idem.Options) { o.Lease = 5 * time.Second }), tabletest.Post(tabletest.NewKey(), "{}")
		body := randomText(20 << 10)
		if res, err := engine.Do(t.Context(), req, tabletest.Created(body)); err != nil || string(res.Body) != body {
			t.Fatalf("got %d bytes, %v", len(res.Body), err)
		}
		tab.Transport.Fault = nil
		if _, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
			t.Errorf("a retry got %v, want not kept", err)
		}
	})
}

// A transaction that is cancelled because the table is short of capacity, or by
// another write, wrote nothing and is sent again.
func TestCancelledForWantOfCapacityIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict"} {
		for at, reasons := range map[string][]string{"the record": {reason, ""}, "the user's item": {"", reason}} {
			t.Run(reason+" for "+at, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t)
				app := tab.App(t)
				tab.Transport.Fault = tabletest.On("TransactWriteItems", 2, dynamotest.CancelTransaction(reasons...))
				engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
				_, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(dynamo.Put(app, counter{ID: "c", N: 1}))
						return idem.Response{Status: 201, Body: []byte("made")}, nil
					})
				})
				if err != nil {
					t.Fatal(err)
				}
				if c, found := tabletest.Read[counter](t, tab.Table, app, "c"); !found || c.N != 1 {
					t.Errorf("the item is %+v, %t", c, found)
				}
				tabletest.Replays(t, tab.Engine(), req, "made")
			})
		}
	}
}

// In a global table with strong consistency a write may meet one of another
// Region: it was not applied, and is sent again.
func TestConflictWithAnotherRegionIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"PutItem", "UpdateItem"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			withRetries(t, func(t *testing.T, tab *table) {
				tab.Transport.Fault = tabletest.On(op, 2, dynamotest.AnswerError(http.StatusBadRequest, "ReplicatedWriteConflictException", "injected"))
				engine, req := tab.Engine(), tabletest.Post(tabletest.NewKey(), "{}")
				if _, err := engine.Do(t.Context(), req, tabletest.Created("made")); err != nil {
					t.Fatal(err)
				}
				if n := tab.Transport.Calls()["GetItem"]; n != 0 {
					t.Errorf("%d reads: what was refused needs none", n)
				}
				tabletest.Replays(t, engine, req, "made")
			})
		})
	}
}

// An attempt that hangs is given up and sent again.
func TestHangingAttemptIsSentAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		tab.Transport.Fault = tabletest.On("PutItem", 1, dynamotest.Hang)
		client := dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = &http.Client{Transport: tab.Transport, Timeout: time.Second}
		})
		store, err := dynamo.New(client, tab.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := idem.New(store, callertest.Anybody, tabletest.Unhurried).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), tabletest.Created("{}")); err != nil {
			t.Fatal(err)
		}
		if got := tab.Transport.Calls(); !maps.Equal(got, calls{"PutItem": 2, "UpdateItem": 1}) {
			t.Errorf("calls %v, want the claim sent again, and the finish", got)
		}
	})
}

// frozen is a context of a sandbox that slept past its deadline: the timer,
// which stood still, has not fired, but the wall clock has gone on.
type frozen struct{ context.Context }

func (frozen) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour).Round(0), true }

func TestNothingIsSentPastTheDeadlineByTheWallClock(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	rec := &store.Record{PK: "v1##" + tabletest.NewKey(), State: store.Open, Owner: tabletest.NewKey(), Ver: 1, ID: tabletest.NewKey(), Expires: time.Now().Add(time.Hour)}
	_, err := tab.Store.Claim(frozen{t.Context()}, store.Claim{Next: rec, Now: time.Now()})
	if !errors.Is(err, store.ErrUnknown) || tab.Transport.Total() != 0 {
		t.Errorf("got %v after %d requests, want unknown after none", err, tab.Transport.Total())
	}
}

func counted(n *int, fn func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		*n++
		return fn(ctx)
	}
}
