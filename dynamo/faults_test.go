package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
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

// A store that stays away: refused before the handler runs.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dbfault.Fault{
		"unreachable":      dbfault.LoseRequest,
		"throttled":        dbfault.Throttle,
		"broken":           dbfault.Answer500,
		"access denied":    dbfault.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected"),
		"KMS denied":       dbfault.AnswerError(http.StatusBadRequest, "KMSAccessDeniedException", "injected"),
		"table is missing": dbfault.AnswerError(http.StatusBadRequest, "ResourceNotFoundException", "injected"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				tab.Transport.Fault = func(string, int) dbfault.Fault { return fault }
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
		tab.Transport.Fault = func(op string, _ int) dbfault.Fault {
			if op == "UpdateItem" {
				return dbfault.LoseRequest
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

// The table's write cap is reached, in each form in which DynamoDB says so. Before the
// handler runs, the answer is 503 and the key is free; after that, the write waits.
func TestWriteCapIsReached(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			tab.SendOnce(t)
			engine, throttle := tab.Engine(), dbfault.AnswerError(http.StatusBadRequest, code, "injected")
			// on throttles some requests of an operation.
			on := func(op string, which func(n int) bool) {
				tab.Transport.Reset()
				tab.Transport.Fault = func(o string, n int) dbfault.Fault {
					if o == op && which(n) {
						return throttle
					}
					return nil
				}
			}
			serve := func(key string, fn func(context.Context) (idem.Response, error)) idem.Result {
				t.Helper()
				r := tabletest.Post("", "{}")
				r.Header = http.Header{"Idempotency-Key": {key}}
				res, err := engine.Serve(t.Context(), r, fn)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}

			on("PutItem", func(int) bool { return true })
			if res := serve("claim", tabletest.NeverRuns(t)); res.Status != 503 || res.Header.Get("Retry-After") != "1" {
				t.Errorf("the claim: %d %v %s", res.Status, res.Header, res.Body)
			}
			if items := tab.Items(t); len(items) != 0 {
				t.Errorf("the refused claim left %v", items)
			}
			tab.Transport.Fault = nil
			if res := serve("claim", tabletest.Created("{}")); res.Status != 201 || res.Replayed {
				t.Errorf("the claim, below the cap: %+v", res)
			}

			// The phase is number 1 after its throttled tries, then comes the finish.
			on("UpdateItem", func(n int) bool { return n <= 3 || n > 4 && n <= 7 })
			runs := 0
			phased := func(ctx context.Context) (idem.Response, error) {
				if _, err := idem.Atomic(ctx, "made", func(context.Context, *idem.Tx) (int, error) { runs++; return 1, nil }); err != nil {
					return idem.Response{}, err
				}
				return tabletest.Created("{}")(ctx)
			}
			if res := serve("phase", phased); res.Status != 201 || res.Unstored || runs != 1 {
				t.Errorf("phase and finish: %+v after %d runs", res, runs)
			}
			if n := tab.Transport.Calls()["UpdateItem"]; n != 8 {
				t.Errorf("%d updates, want 6 throttled ones and 2", n)
			}
			if res := serve("phase", tabletest.NeverRuns(t)); !res.Replayed {
				t.Errorf("its retry: %+v", res)
			}

			on("UpdateItem", func(n int) bool { return n <= 3 })
			if res := serve("release", func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); res.Status != 500 {
				t.Errorf("release: %+v", res)
			}
			if res := serve("release", tabletest.Created("{}")); res.Status != 201 || res.Replayed {
				t.Errorf("the freed key: %+v", res)
			}
		})
	}
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
				tab.Transport.Fault = tabletest.On("TransactWriteItems", 2, dbfault.CancelTransaction(reasons...))
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
				tab.Transport.Fault = tabletest.On(op, 2, dbfault.AnswerError(http.StatusBadRequest, "ReplicatedWriteConflictException", "injected"))
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
		tab.Transport.Fault = tabletest.On("PutItem", 1, dbfault.Hang)
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

// cancelling is a table that cancels transactions for reasons, and counts them.
type cancelling struct {
	*fakedynamo.DB
	reasons []string // nil: as the items are
	n       int
}

func (c *cancelling) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.n++
	if c.reasons == nil {
		return c.DB.TransactWriteItems(ctx, in, opts...)
	}
	e := &types.TransactionCanceledException{}
	for _, code := range c.reasons {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return nil, e
}

// told serves a POST with a key within 20 s, and returns the answer's status and code.
func told(t *testing.T, api dynamo.API, key string, fn func(context.Context) (idem.Response, error)) (status int, code string) {
	t.Helper()
	st, err := dynamo.New(api, "records")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req := idem.Request{Method: "POST", Path: "/", Header: http.Header{idem.KeyHeader: {key}}}
	res, err := idem.New(st, callertest.Anybody).Serve(ctx, req, fn)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(res.Body, &problem) // an answer of the handler has no code
	return res.Status, problem.Code
}

// A client hears of a commit that is refused for now whether another request was in the way,
// or the table.
func TestCommitIsRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reasons []string
		status  int
		code    string
	}{
		"the record is throttled":     {[]string{"ThrottlingError", "None"}, 503, "store_unavailable"},
		"the item is throttled":       {[]string{"None", "ThrottlingError"}, 503, "store_unavailable"},
		"the item has no units":       {[]string{"None", "ProvisionedThroughputExceeded"}, 503, "store_unavailable"},
		"another write of the item":   {[]string{"None", "TransactionConflict"}, 409, "conflict"},
		"another write of the record": {[]string{"TransactionConflict", "None"}, 409, "conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				status, code := told(t, &cancelling{DB: &fakedynamo.DB{}, reasons: tt.reasons}, "k", func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(dynamo.Put("app", counter{ID: "c", N: 1}))
						return idem.Response{Status: 201}, nil
					})
				})
				if status != tt.status || code != tt.code {
					t.Errorf("got %d %s, want %d %s", status, code, tt.status, tt.code)
				}
			})
		})
	}
}

// Every third answer is lost, and requests too: still one order, one charge key
// and one answer for each client's key.
func TestPhasesSurviveLostAnswers(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	var n atomic.Int64
	faults := []dbfault.Fault{dbfault.LoseAnswer, dbfault.TearAnswer, dbfault.LoseRequest, dbfault.Answer500Applied}
	tab.Transport.Fault = func(string, int) dbfault.Fault {
		if i := n.Add(1); i%3 == 0 {
			return faults[int(i/3)%len(faults)]
		}
		return nil
	}
	engine := tab.Engine()
	const keys = 10
	for range keys {
		var charges atomic.Int64
		req := tabletest.Post(tabletest.NewKey(), "{}")
		var body string
		for try := range 3 {
			res, err := engine.Do(t.Context(), req, buy(app, &charges))
			if err != nil {
				t.Fatal(err)
			}
			if try == 0 {
				body = string(res.Body)
			} else if string(res.Body) != body {
				t.Fatalf("answers %q and %q", body, res.Body)
			}
		}
		if charges.Load() != 1 {
			t.Errorf("%d calls of the provider", charges.Load())
		}
	}
	count, err := tab.Direct.Scan(t.Context(), &dynamodb.ScanInput{TableName: &app, Select: types.SelectCount})
	if err != nil || count.Count != 2*keys {
		t.Errorf("%d items, %v, want an order and an audit record for each of %d keys", count.Count, err, keys)
	}
}
