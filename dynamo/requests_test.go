package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// A large request is completed from its record, by a ticket that counts once, and no input is at rest
// after the answer.
func TestLargeStoredRequestIsResumedAndThenEmptied(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine(resumable)
	req := tabletest.Post(tabletest.NewKey(), noise(700<<10))
	if _, err := engine.Do(t.Context(), req, down); err == nil {
		t.Fatal("no error")
	}
	ticket := state.TicketFor(tab.Only(t))
	for _, want := range []error{nil, jobs.ErrMoved} {
		if _, err := engine.Resume(t.Context(), ticket, func(ctx context.Context, in *idem.Request) (idem.Response, error) {
			if !bytes.Equal(in.Body, req.Body) || in.Path != req.Path {
				t.Errorf("the handler sees %s with %d bytes", in.Path, len(in.Body))
			}
			return up("made")(ctx)
		}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	tabletest.Replays(t, engine, req, "made")
	noInput(t, tab)
}

// A client may send bytes in its query that no text of an item can hold. The resumed run
// reads the same parameters.
func TestQueryThatIsNotUTF8IsResumed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine(resumable)
	req := tabletest.Post(tabletest.NewKey(), "{}")
	req.Query = "name=caf\xe9&more=\xc3\xa9&plain=a+b%20c"
	want, err := url.ParseQuery(req.Query)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
		t.Fatal("no error")
	}
	if _, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
		got, err := url.ParseQuery(in.Query)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v: the parameters of the resumed run (-want +got):\n%s", err, diff)
		}
		return tabletest.Created("made")(ctx)
	}); err != nil {
		t.Error(err)
	}
}

// A process that dies between its claim and the companion of its request leaves a
// record that its client's retry carries on, with the request: from then on a
// completer can end it too.
func TestClaimThatDiesBeforeItsCompanion(t *testing.T) {
	t.Parallel()
	for name, died := range map[string]func(tab *table, dead func()){
		"at the companion": func(tab *table, dead func()) {
			tab.Transport.Fault = func(op string, n int) dbfault.Fault {
				if op == "PutItem" && n == 1 {
					return nil
				}
				dead()
				return dbfault.LoseRequest
			}
		},
		"at the claim's answer": func(tab *table, dead func()) {
			tab.Transport.Fault = func(op string, n int) dbfault.Fault {
				if op == "PutItem" && n == 1 {
					dead()
					return dbfault.LoseAnswer
				}
				return dbfault.LoseRequest
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, tab *table) {
				clock := idemtest.NewClock()
				resumable := func(o *idem.Options) { o.Function, o.Resumable, o.Now = "f", true, clock.Now }
				dies := func(o *idem.Options) { o.Lease = 5 * time.Second } // it asks the table until its time is over
				req := tabletest.Post(tabletest.NewKey(), randomText(40<<10))
				completer := func(runs *int) error {
					_, err := tab.Engine(resumable).Resume(t.Context(), state.TicketFor(tab.Only(t)),
						func(ctx context.Context, in *idem.Request) (idem.Response, error) {
							if *runs++; !bytes.Equal(in.Body, req.Body) {
								t.Errorf("the completer's handler sees %d bytes", len(in.Body))
							}
							return tabletest.Created("made")(ctx)
						})
					return err
				}

				ctx, cancel := context.WithCancel(t.Context())
				died(tab, cancel)
				dying := idemtest.Faulty(tab.Store, idemtest.At("Claim", 1, idemtest.Fault{Crash: true, Applied: true}))
				if _, err := idem.New(dying, callertest.Anybody, resumable, dies).Do(ctx, req, tabletest.NeverRuns(t)); err == nil {
					t.Fatal("no error")
				}
				tab.Transport.Fault = nil

				clock.Advance(time.Hour)
				runs := 0
				if err := completer(&runs); !errors.Is(err, idem.ErrNotKept) || runs != 0 {
					t.Errorf("the completer got %v, ran %d times", err, runs)
				}
				if rec := tab.Only(t); rec.State != store.Open {
					t.Fatalf("the record is %s: %s", rec.State, rec.LastErr)
				}

				// The client's retry, which dies too, in its handler.
				again := idemtest.Faulty(tab.Store, nil)
				_, _ = idem.New(again, callertest.Anybody, tabletest.Unhurried, resumable).Do(t.Context(), req, func(context.Context) (idem.Response, error) {
					again.Crash()
					return idem.Response{}, errors.New("dead")
				})
				clock.Advance(time.Hour)
				if err := completer(&runs); err != nil || runs != 1 {
					t.Errorf("the completer got %v, ran %d times", err, runs)
				}
				tabletest.Replays(t, tab.Engine(resumable), req, "made")
				noInput(t, tab)
			})
		})
	}
}

// No input is at rest after the answer, whatever got lost on the way.
func TestLostAnswersLeaveNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    string
		nth   int
		fault dbfault.Fault
	}{
		"the claim is lost":                 {"PutItem", 1, dbfault.LoseRequest},
		"the claim's answer is lost":        {"PutItem", 1, dbfault.LoseAnswer},
		"a conflict at the claim":           {"PutItem", 1, dbfault.Conflict},
		"the companion's answer is lost":    {"PutItem", 2, dbfault.LoseAnswer},
		"the release's answer is lost":      {"UpdateItem", 1, dbfault.LoseAnswer},
		"the ticket's refusal is lost":      {"UpdateItem", 2, dbfault.LoseAnswer},
		"the take-over's answer is lost":    {"UpdateItem", 3, dbfault.LoseAnswer},
		"the finish is lost":                {"UpdateItem", 4, dbfault.LoseRequest},
		"the finish's answer is lost":       {"UpdateItem", 4, dbfault.LoseAnswer},
		"the finish's answer is torn":       {"UpdateItem", 4, dbfault.TearAnswer},
		"a 500 after the finish is applied": {"UpdateItem", 4, dbfault.Answer500Applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withRetries(t, func(t *testing.T, tab *table) {
				tab.Transport.Fault = func(op string, n int) dbfault.Fault {
					if op == tt.op && n == tt.nth {
						return tt.fault
					}
					return nil
				}
				engine := tab.Engine(resumable)
				req := tabletest.Post(tabletest.NewKey(), randomText(10<<10))
				fail := func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }
				for range 2 { // a claim that was lost and sent once is refused
					if _, err := engine.Do(t.Context(), req, fail); err == nil {
						t.Fatal("no error")
					} else if !errors.Is(err, idem.ErrUnavailable) {
						break
					}
				}
				if _, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
					if !bytes.Equal(in.Body, req.Body) {
						t.Errorf("the handler sees %d bytes", len(in.Body))
					}
					return tabletest.Created("made")(ctx)
				}); err != nil {
					t.Fatal(err)
				}
				tabletest.Replays(t, engine, req, "made")
				noInput(t, tab)
			})
		})
	}
}

// A completer finds the request of its operation, although that of an earlier operation
// under the same key is still there, and even if another process begins to count its
// companions anew. Encrypted or not.
func TestRequestsLeftUnderOneKey(t *testing.T) {
	t.Parallel()
	for name, optFns := range map[string][]func(*dynamo.Options){
		"plain":  nil,
		"sealed": {sealing(newProvider(t, "one"))},
	} {
		for kind, size := range map[string]int{"one part": 20 << 10, "two parts": 600 << 10} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, optFns...)
				clock, key := idemtest.NewClock(), tabletest.NewKey()
				for round, body := range []string{noise(size), noise(size)} {
					tab.Store = tab.process(t, optFns...)
					engine := tab.Engine(storing(clock))
					req := tabletest.Post(key, body)
					if _, err := engine.Do(t.Context(), req, down); err == nil {
						t.Fatal("no error")
					}
					for pk, it := range tab.parts(t) {
						b, there := it["b"].(*types.AttributeValueMemberB)
						if !there {
							continue // of the earlier operation, emptied
						}
						if plain := strings.Contains(body, string(b.Value[100:200])); plain && strings.HasPrefix(name, "sealed") {
							t.Errorf("%s is plain", pk)
						}
					}
					clock.Advance(time.Hour)
					if _, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
						if !bytes.Equal(in.Body, req.Body) {
							t.Errorf("round %d: the handler sees another request of %d bytes", round, len(in.Body))
						}
						return up(strconv.Itoa(round))(ctx)
					}); err != nil {
						t.Fatal(err)
					}
					tabletest.Replays(t, engine, req, strconv.Itoa(round))
					clock.Advance(defaults.Retention + time.Hour)
				}
			})
		}
	}
}

// A part of a request that TTL has deleted before its operation ends doesn't come back, emptied.
func TestDeletedPartOfARequestStaysDeleted(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	if _, err := tab.Engine(storing(idemtest.NewClock())).Do(t.Context(), tabletest.Post(tabletest.NewKey(), noise(10<<10)), func(ctx context.Context) (idem.Response, error) {
		for pk := range tab.parts(t) {
			tab.expire(t, pk)
		}
		return tabletest.Created("made")(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if items := tab.Items(t); len(items) != 1 {
		t.Errorf("%d items, want the record only", len(items))
	}
}

// Whoever comes after the request has ended, in whole or in part, never runs with less
// than all of it, and writes nothing while its client may come: whose retry brings the request again,
// for a full time. Without it the operation waits for people, who may answer it.
func TestRequestThatEndedBeforeItsOperation(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, tab *table, pk string, it map[string]types.AttributeValue){
		"all parts": func(t *testing.T, tab *table, pk string, _ map[string]types.AttributeValue) { tab.expire(t, pk) },
		"one of two": func(t *testing.T, tab *table, pk string, _ map[string]types.AttributeValue) {
			if strings.HasSuffix(pk, "#1") {
				tab.expire(t, pk)
			}
		},
		"emptied": func(t *testing.T, tab *table, _ string, it map[string]types.AttributeValue) {
			delete(it, "b")
			tab.Put(t, it)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			clock := idemtest.NewClock()
			engine := tab.Engine(storing(clock))
			req := tabletest.Post(tabletest.NewKey(), noise(600<<10))
			if _, err := engine.Do(t.Context(), req, down); err == nil {
				t.Fatal("no error")
			}
			ends := func() {
				t.Helper()
				for pk, it := range tab.parts(t) {
					end(t, tab, pk, it)
				}
			}
			resume := func(when string, want error) {
				t.Helper()
				_, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(context.Context, *idem.Request) (idem.Response, error) {
					t.Error("ran without its whole request")
					return idem.Response{}, nil
				})
				if !errors.Is(err, want) {
					t.Errorf("%s a completer got %v, want %v", when, err, want)
				}
			}
			ends()
			before := tab.Only(t).Ver
			if resume("while its client may come,", idem.ErrNotKept); tab.Only(t).Ver != before {
				t.Error("the completer has written the record")
			}

			// Its client comes, and fails again: the request is there again.
			clock.Advance(time.Hour)
			if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
				t.Fatal("no error")
			}
			if n := len(tab.parts(t)); n != 2 {
				t.Errorf("%d parts after the client's retry, want 2", n)
			}
			ends()
			clock.Advance(defaults.Retention + time.Hour)
			resume("once its client has gone,", idem.ErrStuck)
			rec := tab.Only(t)
			if rec.State != store.Stuck || !strings.Contains(rec.LastErr, "the stored request is gone") {
				t.Errorf("the record is %s: %s", rec.State, rec.LastErr)
			}
			if err := engine.Settle(t.Context(), rec.PK, idem.Settlement{Answer: &idem.Response{Status: 202, Body: []byte("by hand")}}); err != nil {
				t.Fatal(err)
			}
			tabletest.Replays(t, engine, req, "by hand")
		})
	}
}

// Without its request, and with nothing done, an operation waits for nobody: its key is
// freed.
func TestRequestThatEndedWithNothingDone(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	clock := idemtest.NewClock()
	engine := tab.Engine(storing(clock))
	req := tabletest.Post(tabletest.NewKey(), noise(600<<10))
	if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
		t.Fatal("no error")
	}
	for pk := range tab.parts(t) {
		tab.expire(t, pk)
	}
	clock.Advance(defaults.Retention + time.Hour)
	_, err := engine.Resume(t.Context(), state.TicketFor(tab.Only(t)), func(context.Context, *idem.Request) (idem.Response, error) {
		t.Error("ran without its request")
		return idem.Response{}, nil
	})
	if r := tab.Only(t); !errors.Is(err, jobs.ErrMoved) || !state.Freed(r) {
		t.Errorf("%v; the record is %s, kept for %q: %s", err, r.State, r.Keep, r.LastErr)
	}
}

// What people end keeps nothing of its request.
func TestOperatorsLeaveNoRequest(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(ctx context.Context, e *idem.Engine, rec *store.Record) error{
		"forgotten": func(ctx context.Context, e *idem.Engine, rec *store.Record) error {
			_, err := e.Forget(ctx, state.TicketFor(rec), "jane", idem.Loss{Work: true})
			return err
		},
		"settled with an answer": func(ctx context.Context, e *idem.Engine, rec *store.Record) error {
			return e.Settle(ctx, rec.PK, idem.Settlement{Answer: &idem.Response{Status: 200}, By: "jane"})
		},
	} {
		for kind, tt := range map[string]struct {
			size   int
			optFns []func(*dynamo.Options)
		}{
			"one part":         {20 << 10, nil},
			"two parts":        {600 << 10, nil},
			"two sealed parts": {600 << 10, []func(*dynamo.Options){sealing(newProvider(t, "one"))}},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, tt.optFns...)
				engine := tab.Engine(resumable)
				if _, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), noise(tt.size)), down); err == nil {
					t.Fatal("no error")
				}
				if len(tab.parts(t)) == 0 {
					t.Fatal("no request beside its record")
				}
				if err := ends(t.Context(), engine, tab.Only(t)); err != nil {
					t.Fatal(err)
				}
				noInput(t, tab)
			})
		}
	}
}
