package dynamo_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
)

// Calls and write units per path are the product's number: design part 5.
//
//nolint:tparallel // the steps are one story on one table
func TestCallsPerRequest(t *testing.T) {
	t.Parallel()
	callsPerRequest(t, newTable(t))
}

func callsPerRequest(t *testing.T, tab *table) {
	t.Helper()
	ctx := t.Context() // a slow machine takes minutes for the large bodies
	engine := tab.Engine()
	const reply = `{"id":"order-1","amount":2000,"currency":"usd"}`

	expect := func(t *testing.T, want calls) {
		t.Helper()
		if diff := cmp.Diff(want, tab.Transport.Calls()); diff != "" {
			t.Errorf("DynamoDB calls (-want +got):\n%s", diff)
		}
		tab.Transport.Reset()
	}
	req := tabletest.Post(tabletest.NewKey(), `{"amount":2000}`)

	t.Run("a new request takes two calls and two write units", func(t *testing.T) {
		units := 0
		_, err := engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
			units += writeUnits(tab.Items(t)[0]) // the claim's
			return tabletest.Created(reply)(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 1, "UpdateItem": 1})
		items := tab.Items(t)
		if len(items) != 1 {
			t.Fatalf("%d items, want 1", len(items))
		}
		units += writeUnits(items[0]) // the finish's: an update costs the larger of before and after
		if units != 2 {
			t.Errorf("a new request takes %d write units, want 2", units)
		}
	})
	t.Run("a replay takes one", func(t *testing.T) {
		res, err := engine.Do(ctx, req, tabletest.NeverRuns(t))
		if err != nil || !res.Replayed || string(res.Body) != reply {
			t.Fatalf("got %+v, %v", res, err)
		}
		expect(t, calls{"PutItem": 1})
	})
	t.Run("a tracer changes neither calls nor units", func(t *testing.T) {
		var tracer tracetest.Recorder
		engine := tab.Engine(func(o *idem.Options) { o.Tracer = &tracer })
		req := tabletest.Post(tabletest.NewKey(), `{"amount":2000}`)
		if _, err := engine.Do(ctx, req, tabletest.Created(reply)); err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 1, "UpdateItem": 1})
		first := tracer.Spans()
		if res, err := engine.Do(ctx, req, tabletest.NeverRuns(t)); err != nil || !res.Replayed {
			t.Fatalf("got %+v, %v", res, err)
		}
		expect(t, calls{"PutItem": 1})
		if again := tracer.Spans(); again[0].Outcome.Origin != first[0].Identity() {
			t.Errorf("the replay names %+v, want the first operation's %+v", again[0].Outcome.Origin, first[0].Identity())
		}
		for _, it := range tab.Items(t) {
			if units := writeUnits(it); units != 1 {
				t.Errorf("a write of the record takes %d units, want 1", units)
			}
		}
	})
	t.Run("a mismatch takes one", func(t *testing.T) {
		other := req
		other.Body = []byte(`{"amount":1}`)
		if _, err := engine.Do(ctx, other, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrMismatch) {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 1})
	})
	t.Run("in flight takes one", func(t *testing.T) {
		req := tabletest.Post(tabletest.NewKey(), "{}")
		_, err := engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
			tab.Transport.Reset()
			// Another client, not a nested call: a context of its own.
			if _, err := engine.Do(context.WithoutCancel(t.Context()), req, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrInFlight) {
				t.Error(err)
			}
			expect(t, calls{"PutItem": 1})
			return idem.Response{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tab.Transport.Reset()
	})
	t.Run("a released request takes two, and its retry one more", func(t *testing.T) {
		req := tabletest.Post(tabletest.NewKey(), "{}")
		failing := errors.New("down")
		if _, err := engine.Do(ctx, req, func(context.Context) (idem.Response, error) { return idem.Response{}, failing }); !errors.Is(err, failing) {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 1, "UpdateItem": 1})
		if _, err := engine.Do(ctx, req, tabletest.Created("{}")); err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 2, "UpdateItem": 1})
	})
	t.Run("a retry that says so takes a read, and no claim that is refused", func(t *testing.T) {
		retry := tabletest.Post(tabletest.NewKey(), "{}")
		retry.Header = http.Header{"Retry-Attempt": {"1"}}
		failing := errors.New("down")
		if _, err := engine.Do(ctx, retry, func(context.Context) (idem.Response, error) { return idem.Response{}, failing }); !errors.Is(err, failing) {
			t.Fatal(err)
		}
		expect(t, calls{"GetItem": 1, "PutItem": 1, "UpdateItem": 1}) // it lies
		if _, err := engine.Do(ctx, retry, func(ctx context.Context) (idem.Response, error) {
			expect(t, calls{"GetItem": 1, "PutItem": 1}) // over the freed record
			if _, err := engine.Do(context.WithoutCancel(t.Context()), retry, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrInFlight) {
				t.Error(err)
			}
			expect(t, calls{"GetItem": 1})
			return tabletest.Created("{}")(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"UpdateItem": 1})
		if res, err := engine.Do(ctx, retry, tabletest.NeverRuns(t)); err != nil || !res.Replayed {
			t.Fatalf("got %+v, %v", res, err)
		}
		expect(t, calls{"GetItem": 1})
		other := retry
		other.Body = []byte("another")
		if _, err := engine.Do(ctx, other, tabletest.NeverRuns(t)); !errors.Is(err, idem.ErrMismatch) {
			t.Fatal(err)
		}
		expect(t, calls{"GetItem": 1})
	})
	t.Run("a handler that outlives its time takes one more for each renewal", func(t *testing.T) {
		virtual(t, func(t *testing.T, tab *table) {
			short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			engine := tab.Engine(func(o *idem.Options) { o.Reserve, o.LeaseMargin = 10*time.Millisecond, defaults.MinLeaseMargin })
			res, err := engine.Do(short, req, func(ctx context.Context) (idem.Response, error) {
				<-time.After(3 * time.Second)
				<-time.After(defaults.MinLeaseMargin)
				return tabletest.Created("{}")(ctx)
			})
			if diff := cmp.Diff(calls{"PutItem": 1, "UpdateItem": 2}, tab.Transport.Calls()); diff != "" || err != nil || res.Expires.IsZero() {
				t.Errorf("got %+v, %v; DynamoDB calls (-want +got):\n%s", res, err, diff)
			}
		})
	})
	t.Run("a body over the inline limit takes a companion, and its replay a read", func(t *testing.T) {
		req := tabletest.Post(tabletest.NewKey(), "{}")
		body := randomText(20 << 10)
		if _, err := engine.Do(ctx, req, tabletest.Created(body)); err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 2, "UpdateItem": 1})
		res, err := engine.Do(ctx, req, tabletest.NeverRuns(t))
		if err != nil || string(res.Body) != body {
			t.Fatalf("got %d bytes, %v", len(res.Body), err)
		}
		expect(t, calls{"PutItem": 1, "GetItem": 1})
	})
	t.Run("a body over 390 KB takes one batch, and its replay another", func(t *testing.T) {
		engine := tab.Engine(func(o *idem.Options) { o.MaxBody = 1 << 20 })
		req, body := tabletest.Post(tabletest.NewKey(), "{}"), randomText(1<<20)
		if _, err := engine.Do(ctx, req, tabletest.Created(body)); err != nil {
			t.Fatal(err)
		}
		expect(t, calls{"PutItem": 1, "BatchWriteItem": 1, "UpdateItem": 1})
		res, err := engine.Do(ctx, req, tabletest.NeverRuns(t))
		if err != nil || string(res.Body) != body {
			t.Fatalf("got %d bytes, %v", len(res.Body), err)
		}
		expect(t, calls{"PutItem": 1, "BatchGetItem": 1})
	})
	t.Run("a stored request over the inline limit takes two more: written, and emptied", func(t *testing.T) {
		engine := tab.Engine(func(o *idem.Options) { o.Function, o.Resumable = "f", true })
		for _, size := range []int{20 << 10, 600 << 10} {
			req := tabletest.Post(tabletest.NewKey(), randomText(size))
			if _, err := engine.Do(ctx, req, tabletest.Created("{}")); err != nil {
				t.Fatal(err)
			}
			if size > 390<<10 {
				expect(t, calls{"PutItem": 1, "UpdateItem": 1, "BatchWriteItem": 2})
			} else {
				expect(t, calls{"PutItem": 2, "UpdateItem": 2})
			}
			if _, err := engine.Do(ctx, req, tabletest.NeverRuns(t)); err != nil {
				t.Fatal(err)
			}
			expect(t, calls{"PutItem": 1})
		}
	})
}

// A ticket that is taken up: one update brings the request along, whether its
// attempt gave it back or never came back, and what can't be used costs no more.
func TestCallsOfATicket(t *testing.T) {
	t.Parallel()
	one := calls{"UpdateItem": 1}
	for name, tt := range map[string]struct {
		dies  bool
		body  string
		keep  time.Duration
		takes calls
		ends  calls
	}{
		"given back": {false, `{"amount":2000}`, 0, one, one},
		"abandoned":  {true, `{"amount":2000}`, 0, one, one},
		// It is looked for before it is taken, and emptied after the answer.
		"its request is beside its record": {false, randomText(20 << 10), 0, calls{"UpdateItem": 2, "GetItem": 1}, calls{"UpdateItem": 2}},
		"the same, left to TTL":            {false, randomText(20 << 10), aWeek, calls{"UpdateItem": 2, "GetItem": 1}, one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t, func(o *dynamo.Options) { o.KeepRequests = tt.keep })
			clock := idemtest.NewClock()
			options := func(o *idem.Options) { o.Resumable, o.Function, o.Now = true, "rides", clock.Now }
			req := tabletest.Post(tabletest.NewKey(), tt.body)
			phase := func(ctx context.Context) error {
				_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
				return err
			}
			process := idemtest.Faulty(tab.Store, nil)
			_, err := idem.New(process, callertest.Anybody, tabletest.Unhurried, options).Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				err := phase(ctx)
				if tt.dies {
					process.Crash()
				}
				return idem.Response{}, errors.Join(err, errors.New("down"))
			})
			if err == nil {
				t.Fatal("no error")
			}
			clock.Advance(time.Hour)
			engine := tab.Engine(options)
			expect := func(what string, want calls) {
				t.Helper()
				if diff := cmp.Diff(want, tab.Transport.Calls()); diff != "" {
					t.Errorf("%s: DynamoDB calls (-want +got):\n%s", what, diff)
				}
				tab.Transport.Reset()
			}
			ticket := jobs.TicketFor(tab.Only(t))
			tab.Transport.Reset()
			other := tab.Engine(options, func(o *idem.Options) { o.Function = "refunds" })
			if _, err := other.Resume(t.Context(), ticket, nil); !errors.Is(err, jobs.ErrNotMine) {
				t.Fatal(err)
			}
			expect("another function's", calls{"UpdateItem": 1})
			if _, err := engine.Resume(t.Context(), ticket, func(ctx context.Context, in *idem.Request) (idem.Response, error) {
				if string(in.Body) != string(req.Body) {
					t.Errorf("the handler got %q", in.Body)
				}
				expect("taken up", tt.takes)
				if err := phase(ctx); err != nil {
					return idem.Response{}, err
				}
				return tabletest.Created("{}")(ctx)
			}); err != nil {
				t.Fatal(err)
			}
			expect("its answer", tt.ends)
			if _, err := engine.Resume(t.Context(), ticket, nil); !errors.Is(err, jobs.ErrMoved) {
				t.Fatal(err)
			}
			expect("out of date", calls{"UpdateItem": 1})
		})
	}
}

// The sizes the layout was designed for: spike part 2.
func TestRecordSizes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := tab.Engine()
	req := tabletest.Post("8e03978e-40d5-43e8-bc93-6894a57f9324", randomText(200))
	req.Scope = "jwt:3f0e2b1c-5f6a-4a7b-9c8d-0e1f2a3b4c5d"

	var claimed int
	_, err := engine.Do(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
		claimed = itemsize.Of(tab.Items(t)[0])
		return tabletest.Created(randomText(300))(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	done := itemsize.Of(tab.Items(t)[0])
	t.Logf("claimed %d bytes, done %d bytes", claimed, done)
	if claimed > 512 {
		t.Errorf("a claim has %d bytes, want at most 512", claimed)
	}
	if done > 1024 {
		t.Errorf("a finished record has %d bytes, want at most 1024: it would cost two units", done)
	}
}

func TestCallsAreCountedByOperation(t *testing.T) { // the counter itself, or zeros would prove nothing
	t.Parallel()
	tab := newTable(t)
	if _, err := tab.Store.Load(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := tab.Transport.Calls(); !maps.Equal(got, calls{"GetItem": 1}) {
		t.Errorf("counted %v", got)
	}
}

// While the scope of keys changes, a claim is one transaction of two items, at two units
// each, and no call more. A key's record is found in one call under either scope.
func TestCallsWhileTheScopeChanges(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	release := func(claims bool) func(*idem.Options) {
		return func(o *idem.Options) { o.Former = &idem.Former{OneScope: true, Claims: claims} }
	}
	for name, at := range map[string]struct{ claims, retried bool }{
		"in the former scope, retried in the second release": {true, false},
		"in the new scope, retried in the first release":     {false, true},
	} {
		req := tabletest.Post(tabletest.NewKey(), "{}")
		req.Identity = idem.Identity{Kind: "jwt", Subject: "jane"}
		if _, err := idem.New(tab.Store, tabletest.Unhurried, release(at.claims)).Do(t.Context(), req, tabletest.Created("{}")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(calls{"TransactWriteItems": 1, "UpdateItem": 1}, tab.Transport.Calls()); diff != "" {
			t.Errorf("%s: DynamoDB calls of a new request (-want +got):\n%s", name, diff)
		}
		tab.Transport.Reset()
		res, err := idem.New(tab.Store, tabletest.Unhurried, release(at.retried)).Do(t.Context(), req, tabletest.NeverRuns(t))
		if err != nil || !res.Replayed {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		if diff := cmp.Diff(calls{"TransactWriteItems": 1}, tab.Transport.Calls()); diff != "" {
			t.Errorf("%s: DynamoDB calls of a replay (-want +got):\n%s", name, diff)
		}
		tab.Transport.Reset()
	}
}
