package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A large request is completed from its record, and no input is at rest after
// the answer.
func TestLargeStoredRequestIsResumedAndThenEmptied(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
	req := tabletest.Post(tabletest.NewKey(), randomText(700<<10))
	down := true
	handler := func(ctx context.Context, in *idem.Request) (idem.Response, error) {
		if !bytes.Equal(in.Body, req.Body) || in.Path != req.Path || in.Route != req.Route {
			t.Errorf("the handler sees %s with %d bytes", in.Path, len(in.Body))
		}
		if _, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return idem.Response{}, err
		}
		if down {
			return idem.Response{}, errors.New("provider is down")
		}
		return idem.Response{Status: 201, Body: []byte("made")}, nil
	}
	if _, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) { return handler(ctx, &req) }); err == nil {
		t.Fatal("no error")
	}
	ticket := func() jobs.Ticket {
		for _, it := range tab.Items(t) {
			if pk := it["pk"].(*types.AttributeValueMemberS).Value; strings.Count(pk, "#") == 2 {
				rec, err := tab.Store.Load(t.Context(), pk)
				if err != nil {
					t.Fatal(err)
				}
				return jobs.TicketFor(rec)
			}
		}
		t.Fatal("no record")
		return jobs.Ticket{}
	}
	stale := ticket()
	down = false
	if _, err := engine.Resume(t.Context(), stale, handler); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Resume(t.Context(), stale, handler); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("a ticket used twice: %v", err)
	}
	res, err := engine.Do(t.Context(), req, tabletest.NeverRuns(t))
	if err != nil || !res.Replayed || string(res.Body) != "made" {
		t.Errorf("%+v, %v", res, err)
	}
	for _, it := range tab.Items(t) {
		if _, is := it["req"]; is {
			t.Error("the request is still in its record")
		}
		if _, is := it["st"]; is {
			continue
		}
		if _, is := it["b"]; is {
			t.Error("a part of the request is still beside its record")
		}
	}
}

// Only the owner of a lost companion is told, and nobody runs half a request:
// when its client won't come any more, the operation waits for an operator.
func TestStoredRequestThatIsGoneGetsStuck(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	clock := idemtest.NewClock()
	engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable, o.Now = "f", true, clock.Now })
	_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), randomText(10<<10)), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return idem.Response{}, errors.Join(err, errors.New("died"))
	})
	if err == nil {
		t.Fatal("no error")
	}
	var pk string
	for _, it := range tab.Items(t) {
		if id := it["pk"].(*types.AttributeValueMemberS); it["st"] != nil {
			pk = id.Value
		} else {
			delete(it, "b")
			tab.Put(t, it)
		}
	}
	rec, err := tab.Store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	resume := func() error {
		_, err := engine.Resume(t.Context(), jobs.TicketFor(rec), func(context.Context, *idem.Request) (idem.Response, error) {
			t.Error("ran without its request")
			return idem.Response{}, nil
		})
		return err
	}
	clock.Advance(defaults.Retention - time.Minute)
	if err := resume(); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("while its client may still come, a completer got %v", err)
	}
	if now, err := tab.Store.Load(t.Context(), pk); err != nil || now.Ver != rec.Ver {
		t.Errorf("the completer has written the record: %+v, %v", now, err)
	}
	clock.Advance(2 * time.Minute)
	if err := resume(); !errors.Is(err, idem.ErrStuck) {
		t.Errorf("got %v", err)
	}
}

// A client may send bytes in its query that no text of an item can hold. The resumed run
// reads the same parameters.
func TestQueryThatIsNotUTF8IsResumed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
	req := tabletest.Post(tabletest.NewKey(), "{}")
	req.Query = "name=caf\xe9&more=\xc3\xa9&plain=a+b%20c"
	want, err := url.ParseQuery(req.Query)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
		t.Fatal("no error")
	}
	if _, err := engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
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
			tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
				if op == "PutItem" && n == 1 {
					return nil
				}
				dead()
				return dynamotest.LoseRequest
			}
		},
		"at the claim's answer": func(tab *table, dead func()) {
			tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
				if op == "PutItem" && n == 1 {
					dead()
					return dynamotest.LoseAnswer
				}
				return dynamotest.LoseRequest
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
					_, err := tab.Engine(resumable).Resume(t.Context(), jobs.TicketFor(tab.Only(t)),
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
				dying := idemtest.Faulty(tab.Store, idemtest.At(idemtest.Claim, 1, idemtest.Fault{Crash: true, Applied: true}))
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

// noInput fails t if a part of a request lies anywhere.
func noInput(t *testing.T, tab *table) {
	t.Helper()
	for _, it := range tab.Items(t) {
		if it["req"] != nil || it["st"] == nil && it["b"] != nil {
			t.Errorf("a part of a request is still there: %v", it["pk"])
		}
	}
}

// No input is at rest after the answer, whatever got lost on the way.
func TestLostAnswersLeaveNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    string
		nth   int
		fault dynamotest.Fault
	}{
		"the claim is lost":                 {"PutItem", 1, dynamotest.LoseRequest},
		"the claim's answer is lost":        {"PutItem", 1, dynamotest.LoseAnswer},
		"a conflict at the claim":           {"PutItem", 1, dynamotest.Conflict},
		"the companion's answer is lost":    {"PutItem", 2, dynamotest.LoseAnswer},
		"the release's answer is lost":      {"UpdateItem", 1, dynamotest.LoseAnswer},
		"the ticket's refusal is lost":      {"UpdateItem", 2, dynamotest.LoseAnswer},
		"the take-over's answer is lost":    {"UpdateItem", 3, dynamotest.LoseAnswer},
		"the finish is lost":                {"UpdateItem", 4, dynamotest.LoseRequest},
		"the finish's answer is lost":       {"UpdateItem", 4, dynamotest.LoseAnswer},
		"the finish's answer is torn":       {"UpdateItem", 4, dynamotest.TearAnswer},
		"a 500 after the finish is applied": {"UpdateItem", 4, dynamotest.Answer500Applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withRetries(t, func(t *testing.T, tab *table) {
				tab.Transport.Fault = func(op string, n int) dynamotest.Fault {
					if op == tt.op && n == tt.nth {
						return tt.fault
					}
					return nil
				}
				engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
				req := tabletest.Post(tabletest.NewKey(), randomText(10<<10))
				fail := func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }
				for range 2 { // a claim that was lost and sent once is refused
					if _, err := engine.Do(t.Context(), req, fail); err == nil {
						t.Fatal("no error")
					} else if !errors.Is(err, idem.ErrUnavailable) {
						break
					}
				}
				if _, err := engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
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

// A part of a request that TTL has deleted must not come back when it is emptied.
func TestDeletedPartOfARequestStaysDeleted(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
	if _, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), randomText(10<<10)), func(ctx context.Context) (idem.Response, error) {
		for _, it := range tab.Items(t) {
			if it["st"] == nil {
				if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
					TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": it["pk"]},
				}); err != nil {
					t.Error(err)
				}
			}
		}
		return tabletest.Created("made")(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if items := tab.Items(t); len(items) != 1 {
		t.Errorf("%d items, want the record only", len(items))
	}
}

// The largest request that is taken comes back; a larger one is refused before
// anything is sent: its record could never be read.
func TestLargestStoredRequest(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	body := make([]byte, store.MaxStoredRequest)
	_, _ = rand.Read(body)
	claim := func(n int) (string, error) {
		next := &store.Record{
			PK: "v1##" + tabletest.NewKey(), State: store.Open, Keep: store.KeepOpen, Owner: tabletest.NewKey(), Ver: 1, ID: tabletest.NewKey(), Fingerprint: "f",
			Created: time.Now(), Run: time.Now(), Input: &store.Input{Method: "POST", Path: "/", Body: append(body, 0)[:n]},
		}
		_, err := tab.Store.Claim(t.Context(), store.Claim{Next: next, Now: time.Now()})
		return next.PK, err
	}
	if _, err := claim(store.MaxStoredRequest + 1); !errors.Is(err, store.ErrTooLarge) || tab.Transport.Total() != 0 {
		t.Errorf("got %v after %d requests", err, tab.Transport.Total())
	}
	pk, err := claim(store.MaxStoredRequest)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := tab.Store.Load(t.Context(), pk)
	if err == nil {
		err = tab.Store.LoadBody(t.Context(), rec)
	}
	if err != nil || !bytes.Equal(rec.Input.Body, body) {
		t.Errorf("the largest request doesn't come back: %v", err)
	}
	if c := tab.Transport.Calls(); c["BatchWriteItem"] != 4 || c["BatchGetItem"] != 4 {
		t.Errorf("calls %v, want four batches to write it, and as many to read it", c)
	}
}
