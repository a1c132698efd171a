package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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
	"github.com/samekey/samekey/internal/testkit/tabletest"
	"github.com/samekey/samekey/internal/testkit/tracetest"
)

// Calls and write units per path are the product's number: design part 5.
func TestCallsPerRequest(t *testing.T) {
	t.Parallel()
	callsPerRequest(t, newTable(t))
}

// callsPerRequest expects every record to stay within a unit.
func callsPerRequest(t *testing.T, tab *table) {
	t.Helper()
	type handler = func(context.Context) (idem.Response, error)
	step := func(what string, e *idem.Engine, req idem.Request, fn handler, wantErr error, want calls) {
		t.Helper()
		tab.Transport.Reset()
		if _, err := e.Do(t.Context(), req, fn); !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: got %v, want %v", what, err, wantErr)
		}
		if diff := cmp.Diff(want, tab.Transport.Calls()); diff != "" {
			t.Errorf("%s: DynamoDB calls (-want +got):\n%s", what, diff)
		}
	}
	post := func(body string) idem.Request { return tabletest.Post(tabletest.NewKey(), body) }
	another := func(req idem.Request) idem.Request { req.Body = []byte("another"); return req }
	engine, never, failing := tab.Engine(), tabletest.NeverRuns(t), errors.New("down")
	fails := func(context.Context) (idem.Response, error) { return idem.Response{}, failing }
	created := func(ctx context.Context) (idem.Response, error) {
		for _, it := range tab.Items(t) {
			if units := writeUnits(it); it["st"] != nil && units != 1 {
				t.Errorf("a record takes %d units, want 1", units)
			}
		}
		return tabletest.Created(`{"id":"order-1","amount":2000,"currency":"usd"}`)(ctx)
	}
	// meets has a second client come while the request is in flight.
	meets := func(req idem.Request) handler {
		return func(ctx context.Context) (idem.Response, error) {
			if _, err := engine.Do(context.WithoutCancel(t.Context()), req, never); !errors.Is(err, idem.ErrInFlight) {
				t.Errorf("in flight: got %v", err)
			}
			return created(ctx)
		}
	}
	claim, both := calls{"PutItem": 1}, calls{"PutItem": 1, "UpdateItem": 1}

	req := post(`{"amount":2000}`)
	step("a new request", engine, req, created, nil, both)
	step("its replay", engine, req, never, nil, claim)
	step("a mismatch", engine, another(req), never, idem.ErrMismatch, claim)
	req = post("{}")
	step("a request that another meets", engine, req, meets(req), nil, calls{"PutItem": 2, "UpdateItem": 1})
	req = post("{}")
	step("a request that fails", engine, req, fails, failing, both)
	step("its retry", engine, req, created, nil, calls{"PutItem": 2, "UpdateItem": 1})
	traced := tab.Engine(func(o *idem.Options) { o.Tracer = &tracetest.Recorder{} })
	req = post("{}")
	step("a new request with a tracer", traced, req, created, nil, both)
	step("its replay", traced, req, never, nil, claim)

	retry := post("{}")
	retry.Header = http.Header{"Retry-Attempt": {"1"}}
	step("a retry that says so, though it is none", engine, retry, fails, failing, calls{"GetItem": 1, "PutItem": 1, "UpdateItem": 1})
	step("over a freed record, and another meets it", engine, retry, meets(retry), nil, calls{"GetItem": 2, "PutItem": 1, "UpdateItem": 1})
	step("its replay", engine, retry, never, nil, calls{"GetItem": 1})
	step("its mismatch", engine, another(retry), never, idem.ErrMismatch, calls{"GetItem": 1})

	large := tab.Engine(func(o *idem.Options) { o.MaxBody = 1 << 20 })
	req = post("{}")
	step("an answer over the inline limit", large, req, tabletest.Created(randomText(20<<10)), nil, calls{"PutItem": 2, "UpdateItem": 1})
	step("its replay", large, req, never, nil, calls{"PutItem": 1, "GetItem": 1})
	req = post("{}")
	step("an answer over 390 KB", large, req, tabletest.Created(randomText(1<<20)), nil, calls{"PutItem": 1, "BatchWriteItem": 1, "UpdateItem": 1})
	step("its replay", large, req, never, nil, calls{"PutItem": 1, "BatchGetItem": 1})
	// A stored request is written, and emptied.
	storing := tab.Engine(resumable)
	for size, want := range map[int]calls{20 << 10: {"PutItem": 2, "UpdateItem": 2}, 600 << 10: {"PutItem": 1, "UpdateItem": 1, "BatchWriteItem": 2}} {
		req = post(randomText(size))
		step(fmt.Sprint("a stored request of ", size), storing, req, tabletest.Created("{}"), nil, want)
		step("its replay", storing, req, never, nil, claim)
	}
}

// A handler that outlives its time takes one more call for each renewal.
func TestCallsOfARenewal(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, tab *table) {
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		engine := tab.Engine(func(o *idem.Options) { o.LeaseMargin = defaults.MinLeaseMargin })
		res, err := engine.Do(short, tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
			<-time.After(3 * time.Second)
			<-time.After(defaults.MinLeaseMargin)
			return tabletest.Created("{}")(ctx)
		})
		if diff := cmp.Diff(calls{"PutItem": 1, "UpdateItem": 2}, tab.Transport.Calls()); diff != "" || err != nil || res.Expires.IsZero() {
			t.Errorf("got %+v, %v; DynamoDB calls (-want +got):\n%s", res, err, diff)
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
		takes calls
		ends  calls
	}{
		"given back": {false, `{"amount":2000}`, one, one},
		"abandoned":  {true, `{"amount":2000}`, one, one},
		// It is looked for before it is taken, and emptied after the answer.
		"its request is beside its record": {false, randomText(20 << 10), calls{"UpdateItem": 2, "GetItem": 1}, calls{"UpdateItem": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
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
			ticket := state.TicketFor(tab.Only(t))
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

// Calls of a request with phases: design part 5.
//
//nolint:tparallel // the calls are counted on one table
func TestCallsPerPhase(t *testing.T) {
	t.Parallel()
	plain := func(*idem.Options) {}
	calling := func(o *idem.Options) { o.CallsOut = true }
	tab := newTable(t)
	app := tab.App(t)
	write := func(tx *idem.Tx) { tx.Write(dynamo.Put(app, order{ID: tabletest.NewKey()})) }
	phases := func(k int, writes bool) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			for i := range k - 1 {
				_, err := idem.Atomic(ctx, fmt.Sprint("phase", i), func(_ context.Context, tx *idem.Tx) (int, error) {
					if writes {
						write(tx)
					}
					return i, nil
				})
				if err != nil {
					return idem.Response{}, err
				}
			}
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				write(tx)
				return idem.Response{Status: 201}, nil
			})
		}
	}
	var charges atomic.Int64
	for name, tc := range map[string]struct {
		opt  func(*idem.Options)
		fn   func(context.Context) (idem.Response, error)
		want calls
	}{
		"rides":                      {calling, buy(app, &charges), calls{"PutItem": 1, "TransactWriteItems": 2, "UpdateItem": 1}},
		"rides, undeclared":          {plain, buy(app, &charges), calls{"PutItem": 1, "TransactWriteItems": 2, "UpdateItem": 2}},
		"finish only":                {plain, phases(1, true), calls{"PutItem": 1, "TransactWriteItems": 1}},
		"five phases":                {plain, phases(5, true), calls{"PutItem": 1, "TransactWriteItems": 5}},
		"five without items":         {plain, phases(5, false), calls{"PutItem": 1, "UpdateItem": 4, "TransactWriteItems": 1}},
		"a call first":               {calling, callOut(), calls{"PutItem": 1, "UpdateItem": 2}},
		"a call first, undeclared":   {plain, callOut(), calls{"PutItem": 1, "UpdateItem": 3}},
		"a NotIdempotent call first": {plain, callOut(idem.NotIdempotent()), calls{"PutItem": 1, "UpdateItem": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			engine := tab.Engine(tc.opt)
			req := tabletest.Post(tabletest.NewKey(), "{}")
			tab.Transport.Reset()
			if _, err := engine.Do(t.Context(), req, tc.fn); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tab.Transport.Calls()); diff != "" {
				t.Errorf("calls of a new request (-want +got):\n%s", diff)
			}
			if tc.want["GetItem"] > 0 {
				return
			}
			tab.Transport.Reset()
			replay := tab.Engine()
			if res, err := replay.Do(t.Context(), req, tabletest.NeverRuns(t)); err != nil || !res.Replayed {
				t.Fatalf("%+v, %v", res, err)
			}
			if diff := cmp.Diff(calls{"PutItem": 1}, tab.Transport.Calls()); diff != "" {
				t.Errorf("calls of a replay (-want +got):\n%s", diff)
			}
		})
	}
}

// buy has the phases of Rocket Rides.
func buy(app string, calls *atomic.Int64, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		op, _ := idem.FromContext(ctx)
		o, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (order, error) {
			o := order{ID: op.ID()}
			tx.Write(dynamo.Put(app, o).If("attribute_not_exists(pk)"), dynamo.Put(app, order{ID: "audit-" + o.ID}))
			return o, nil
		})
		if err != nil {
			return idem.Response{}, err
		}
		o.Charge, err = idem.Foreign(ctx, "charge_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			calls.Add(1)
			return "ch_" + tx.Key("payments"), nil
		}, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(dynamo.Update(app, tabletest.ID(o.ID), "SET charge = :c", dynamo.Args{":c": o.Charge}))
			tx.Stage(idem.NewJob("receipt", o))
			return idem.Response{Status: http.StatusCreated, Body: []byte(o.ID + o.Charge)}, nil
		})
	}
}

// callOut has one call to somebody else, and the finish.
func callOut(opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "call", func(_ context.Context, tx *idem.Tx) (string, error) { return tx.Key("payments"), nil }, opts...)
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
	}
}

// The meter of a request and the hook see each call that reaches DynamoDB, with the
// units that it costs, also if it is refused. Without Units nobody asks for them.
func TestCallsAndUnitsAreTold(t *testing.T) {
	t.Parallel()
	for _, units := range []bool{true, false} {
		var told []string
		var costs []store.Cost
		tab := newLocal(t, func(o *dynamo.Options) {
			o.Units = units
			o.Hooks.Called = func(_ context.Context, c store.Call) {
				told = append(told, fmt.Sprintf("%s %g+%g", c.Op, c.ReadUnits, c.WriteUnits))
				if c.Duration <= 0 || c.Begun.IsZero() || c.Fault != "" {
					t.Errorf("told %+v", c)
				}
			}
		})
		app := tab.App(t)
		engine := tab.Engine(func(o *idem.Options) {
			o.MaxBody, o.Hooks.Ended = 1<<20, func(_ context.Context, s idem.Summary) { costs = append(costs, s.Cost) }
		})
		do := func(key string, fn func(context.Context) (idem.Response, error)) {
			t.Helper()
			for range 2 { // a new request, then its replay
				if _, err := engine.Do(t.Context(), tabletest.Post(key, "{}"), fn); err != nil {
					t.Fatal(err)
				}
			}
		}
		do("small", tabletest.Created("{}"))
		do("of-2-KB", tabletest.Created(noise(1500)))
		do("in-companions", tabletest.Created(noise(500<<10)))
		do("with-an-item", func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				tx.Write(dynamo.Put(app, counter{ID: "c", N: 1}))
				return idem.Response{Status: 201}, nil
			})
		})
		if _, err := tab.Store.Load(t.Context(), "nothing"); err != nil { // a strong read of a missing item costs a unit
			t.Fatal(err)
		}
		want := []string{
			"PutItem 0+1", "UpdateItem 0+1", "PutItem 0+1", "PutItem 0+1", "UpdateItem 0+2", "PutItem 0+2",
			"PutItem 0+1", "BatchWriteItem 0+502", "UpdateItem 0+1", "PutItem 0+1", "BatchGetItem 126+0",
			"PutItem 0+1", "TransactWriteItems 0+4", "PutItem 0+1", "GetItem 1+0",
		}
		wantCosts := []store.Cost{{Calls: 2, WriteUnits: 2}, {Calls: 1, WriteUnits: 1}, {Calls: 2, WriteUnits: 3}, {Calls: 1, WriteUnits: 2}}
		if !units {
			for i, call := range want {
				op, _, _ := strings.Cut(call, " ")
				want[i] = op + " 0+0"
			}
			for i := range wantCosts {
				wantCosts[i].WriteUnits = 0
			}
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("units %v: told (-want +got):\n%s", units, diff)
		}
		if diff := cmp.Diff(wantCosts, costs[:4]); diff != "" {
			t.Errorf("units %v: costs (-want +got):\n%s", units, diff)
		}
	}
}

// What the client sends again is told to all hooks, whether the call succeeds in the end or not.
func TestRetriesOfTheClientAreTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failures, want int
		fault          store.Fault
	}{"none": {0, 0, ""}, "two": {2, 2, ""}, "too many": {100, 5, store.Throttled}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []store.Call
			client := stubOf(&throttles{failures: tt.failures})
			st, err := dynamo.New(client, "table", func(o *dynamo.Options) {
				tell := dynamo.Hooks{Called: func(_ context.Context, c store.Call) { told = append(told, c) }}
				o.Hooks = dynamo.Join(o.Hooks, tell, dynamo.Hooks{}, tell)
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = st.Load(t.Context(), "pk")
			if len(told) != 2 || told[0].Retries != tt.want || told[0].Fault != tt.fault {
				t.Errorf("told %+v, want %d retries", told, tt.want)
			}
		})
	}
}

// throttles refuses the first requests.
type throttles struct{ failures int }

func (s *throttles) Do(r *http.Request) (*http.Response, error) {
	body, status := "{}", http.StatusOK
	if s.failures--; s.failures >= 0 {
		body, status = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}`, http.StatusBadRequest
	}
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// A request that goes well doesn't know of the index: no write of it names one of the
// index's attributes, and it takes no unit of the index. The same goes for its replays,
// its failures and its take-overs. To be stuck takes one.
func TestOnlyWhatWaitsWritesTheIndex(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	heard, spoken := hear(t, tab)
	engine := idem.New(heard, callertest.Anybody, tabletest.Unhurried, func(o *idem.Options) { o.Function, o.Resumable, o.Retention = "f", true, defaults.Retention })
	req, down := tabletest.Post(tabletest.NewKey(), "{}"), errors.New("down")
	fails := true
	handler := func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("mail", 1))
			return 1, nil
		})
		if err == nil && fails {
			err = down
		}
		if err != nil {
			return idem.Response{}, err
		}
		return tabletest.Created("{}")(ctx)
	}
	for range 2 {
		if _, err := engine.Do(t.Context(), req, handler); !errors.Is(err, down) {
			t.Fatal(err)
		}
	}
	fails = false
	for range 2 {
		if _, err := engine.Do(t.Context(), req, handler); err != nil {
			t.Fatal(err)
		}
	}
	if said := spoken.bodies.String(); !strings.Contains(said, "lease_ms") || strings.Contains(said, "wait") {
		t.Errorf("requests that wait for nobody said: %s", said)
	}
	if spoken.index != 0 {
		t.Errorf("they took %v units of the index", spoken.index)
	}
	_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "fax", func(context.Context, *idem.Tx) (int, error) { return 0, down }, idem.NotIdempotent())
		return idem.Response{}, err
	})
	if !errors.Is(err, idem.ErrStuck) || spoken.index != 1 {
		t.Errorf("stuck: %v; it took %v units of the index, want 1", err, spoken.index)
	}
}

// spoken keeps the bodies of a store's requests, and adds up the units of its writes.
type spoken struct {
	*dynamodb.Client
	mu     sync.Mutex
	bodies strings.Builder
	index  float64
}

func (s *spoken) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := s.Client.UpdateItem(ctx, in, opts...)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, index := range out.ConsumedCapacity.GlobalSecondaryIndexes {
			s.index += aws.ToFloat64(index.CapacityUnits)
		}
	}
	return out, err
}

// hear returns a store whose requests and index units are kept.
func hear(t *testing.T, tab *table) (*dynamo.Store, *spoken) {
	t.Helper()
	s := &spoken{}
	s.Client = dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = listener{o.HTTPClient, s}
	})
	heard, err := dynamo.New(s, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	return heard, s
}

type listener struct {
	dynamodb.HTTPClient
	s *spoken
}

func (l listener) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.s.mu.Lock()
	l.s.bodies.Write(body)
	l.s.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return l.HTTPClient.Do(r)
}
