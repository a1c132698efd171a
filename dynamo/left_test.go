package dynamo_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// aWeek leaves stored requests to TTL.
const aWeek = 7 * 24 * time.Hour

func keeping(o *dynamo.Options) { o.KeepRequests = aWeek }

func storing(clock *idemtest.Clock) func(*idem.Options) {
	return func(o *idem.Options) { o.Function, o.Resumable, o.Now = "f", true, clock.Now }
}

// one is the first phase of these operations.
func one(ctx context.Context) error {
	_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	return err
}

// down is a handler that fails after its first phase.
func down(ctx context.Context) (idem.Response, error) {
	return idem.Response{}, errors.Join(one(ctx), errors.New("down"))
}

// up is a handler that answers after its first phase.
func up(answer string) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		if err := one(ctx); err != nil {
			return idem.Response{}, err
		}
		return tabletest.Created(answer)(ctx)
	}
}

// noise returns n bytes that don't compress.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return string(b)
}

// parts returns the companions that hold a part of a body, by their keys.
func (tab *table) parts(t *testing.T) map[string]map[string]types.AttributeValue {
	t.Helper()
	all := make(map[string]map[string]types.AttributeValue)
	for _, it := range tab.Items(t) {
		if it["st"] == nil && it["b"] != nil {
			all[it["pk"].(*types.AttributeValueMemberS).Value] = it
		}
	}
	return all
}

// expire deletes a companion, as TTL does.
func (tab *table) expire(t *testing.T, pk string) {
	t.Helper()
	if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &tab.Name, Key: map[string]types.AttributeValue{"pk": tabletest.Str(pk)},
	}); err != nil {
		t.Fatal(err)
	}
}

// A request that is left to TTL is paid once, and ends as long after its claim as the
// option says: beside an answer, and beside a refusal that frees the key.
func TestRequestLeftToTTL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size, status int
		calls        calls
		units, parts int
	}{
		"20 KB":            {20 << 10, 201, calls{"PutItem": 2, "UpdateItem": 1}, 23, 1},
		"20 KB, refused":   {20 << 10, 400, calls{"PutItem": 2, "UpdateItem": 1}, 23, 1},
		"600 KB, in parts": {600 << 10, 201, calls{"PutItem": 1, "BatchWriteItem": 1, "UpdateItem": 1}, 604, 2},
		"in its record":    {100, 201, calls{"PutItem": 1, "UpdateItem": 1}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, keeping)
			req := tabletest.Post(tabletest.NewKey(), noise(tt.size))
			before, units := time.Now(), 0
			_, err := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true }).Do(t.Context(), req, func(context.Context) (idem.Response, error) {
				for _, it := range tab.Items(t) {
					units += writeUnits(it)
				}
				return idem.Response{Status: tt.status, Body: []byte("{}")}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.calls, tab.Transport.Calls()); diff != "" {
				t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
			}
			rec := tab.Only(t)
			if units++; units != tt.units { // and the last write, of a record of one unit
				t.Errorf("%d write units, want %d", units, tt.units)
			}
			if rec.Input != nil {
				t.Error("the request is still in its record")
			}
			parts := tab.parts(t)
			if len(parts) != tt.parts {
				t.Errorf("%d parts of the request, want %d", len(parts), tt.parts)
			}
			for pk, it := range parts {
				s, _ := it["exp_s"].(*types.AttributeValueMemberN)
				end, err := strconv.ParseInt(s.Value, 10, 64)
				if err != nil || end < before.Add(aWeek).Unix() || end > time.Now().Add(aWeek).Unix() {
					t.Errorf("%s ends at %s, want a week after its claim: %v", pk, s.Value, err)
				}
			}
		})
	}
}

// A completer finds the request of its operation, although that of an earlier operation
// under the same key is still there, and even if another process begins to count its
// companions anew. Encrypted or not.
func TestRequestsLeftUnderOneKey(t *testing.T) {
	t.Parallel()
	for name, optFns := range map[string][]func(*dynamo.Options){
		"plain":  {keeping},
		"sealed": {keeping, sealing(newProvider(t, "one"))},
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
					clock.Advance(time.Hour)
					if _, err := engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(ctx context.Context, in *idem.Request) (idem.Response, error) {
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
				want := 2
				if size > 390<<10 {
					want = 4
				}
				if n := len(tab.parts(t)); n != want {
					t.Errorf("%d parts of two requests, want %d", n, want)
				}
			})
		}
	}
}

// Whoever comes after the request has ended, in whole or in part, never runs with less
// than all of it. Its client's retry brings the request again, for a full time. Without
// it the operation waits for people, who may answer it.
func TestRequestThatEndedBeforeItsOperation(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"all parts": true, "one of two": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, keeping)
			clock := idemtest.NewClock()
			engine := tab.Engine(storing(clock))
			req := tabletest.Post(tabletest.NewKey(), noise(600<<10))
			if _, err := engine.Do(t.Context(), req, down); err == nil {
				t.Fatal("no error")
			}
			end := func() {
				t.Helper()
				for pk := range tab.parts(t) {
					if whole || strings.HasSuffix(pk, "#1") {
						tab.expire(t, pk)
					}
				}
			}
			resume := func() error {
				_, err := engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(context.Context, *idem.Request) (idem.Response, error) {
					t.Error("ran without its whole request")
					return idem.Response{}, nil
				})
				return err
			}
			end()
			if err := resume(); !errors.Is(err, idem.ErrNotKept) {
				t.Errorf("while its client may come, a completer got %v", err)
			}

			// Its client comes, and fails again: the request is there again.
			clock.Advance(time.Hour)
			if _, err := engine.Do(t.Context(), req, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("down") }); err == nil {
				t.Fatal("no error")
			}
			if n := len(tab.parts(t)); n != 2 {
				t.Errorf("%d parts after the client's retry, want 2", n)
			}
			end()
			clock.Advance(defaults.Retention + time.Hour)
			if err := resume(); !errors.Is(err, idem.ErrStuck) {
				t.Errorf("once its client has gone, a completer got %v", err)
			}
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
	tab := newTable(t, keeping)
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
	_, err := engine.Resume(t.Context(), jobs.TicketFor(tab.Only(t)), func(context.Context, *idem.Request) (idem.Response, error) {
		t.Error("ran without its request")
		return idem.Response{}, nil
	})
	if r := tab.Only(t); !errors.Is(err, jobs.ErrMoved) || !state.Freed(r) {
		t.Errorf("%v; the record is %s, kept for %q: %s", err, r.State, r.Keep, r.LastErr)
	}
}

// What people end keeps nothing of its request, whatever the option says.
func TestOperatorsLeaveNoRequest(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(ctx context.Context, e *idem.Engine, rec *store.Record) error{
		"forgotten": func(ctx context.Context, e *idem.Engine, rec *store.Record) error {
			_, err := e.Forget(ctx, jobs.TicketFor(rec), "jane", idem.Loss{Work: true})
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
			"one part":         {20 << 10, []func(*dynamo.Options){keeping}},
			"two parts":        {600 << 10, []func(*dynamo.Options){keeping}},
			"two sealed parts": {600 << 10, []func(*dynamo.Options){keeping, sealing(newProvider(t, "one"))}},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				tab := newTable(t, tt.optFns...)
				engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
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

// Who ends the operation decides: a program without the option empties a request that
// another would have left.
func TestEndDecidesAboutTheRequest(t *testing.T) {
	t.Parallel()
	tab := newTable(t, keeping)
	req := tabletest.Post(tabletest.NewKey(), noise(20<<10))
	resumable := func(o *idem.Options) { o.Function, o.Resumable = "f", true }
	if _, err := tab.Engine(resumable).Do(t.Context(), req, down); err == nil {
		t.Fatal("no error")
	}
	if _, err := idem.New(tab.process(t), callertest.Anybody, tabletest.Unhurried, resumable).Do(t.Context(), req, up("made")); err != nil {
		t.Fatal(err)
	}
	noInput(t, tab)
}
