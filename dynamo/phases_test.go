package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

type counter struct {
	ID string `dynamodbav:"id"`
	N  int    `dynamodbav:"n"`
}

type order struct {
	ID     string `dynamodbav:"id" json:"id"`
	Charge string `dynamodbav:"charge,omitempty" json:"charge,omitempty"`
}

// buy has the phases of Rocket Rides.
func buy(app string, calls *atomic.Int64, opts ...idem.PhaseOption) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		op, _ := idem.FromContext(ctx)
		o, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (order, error) {
			o := order{ID: op.ID()}
			tx.Write(dynamo.Put(app, o).If("attribute_not_exists(id)"), dynamo.Put(app, order{ID: "audit-" + o.ID}))
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
		//nolint:paralleltest // the calls are counted on one table
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

// Each of two requests reads both items and writes one of them, as long as the
// other is untouched. Run one after the other, one of them finds it touched; so
// both must never commit.
func TestWriteSkewIsRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	engine := tab.Engine()
	onCall := func(round, me int) func(context.Context) (idem.Response, error) {
		return func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
				left := 0
				for doctor := range 2 {
					var c counter
					if _, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID(fmt.Sprint(round, "-", doctor)), &c); err != nil {
						return idem.Response{}, err
					}
					left += c.N
				}
				if left < 2 {
					return idem.Response{Status: 409}, nil
				}
				tx.Write(dynamo.Put(app, counter{ID: fmt.Sprint(round, "-", me), N: 0}))
				return idem.Response{Status: 200}, nil
			})
		}
	}
	for round := range 40 {
		for doctor := range 2 {
			putItem(t, tab, app, counter{ID: fmt.Sprint(round, "-", doctor), N: 1})
		}
		var wg sync.WaitGroup
		for me := range 2 {
			wg.Go(func() {
				if err := persist(t, engine, onCall(round, me)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		a, _ := tabletest.Read[counter](t, tab.Table, app, fmt.Sprint(round, "-0"))
		b, _ := tabletest.Read[counter](t, tab.Table, app, fmt.Sprint(round, "-1"))
		if a.N+b.N != 1 {
			t.Fatalf("round %d: %d and %d are left, want one", round, a.N, b.N)
		}
	}
}

func putItem(t testing.TB, tab *table, name string, v any) {
	t.Helper()
	it, err := attributevalue.MarshalMap(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Direct.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
		t.Fatal(err)
	}
}

// Read, add one, write: the check of what was read is folded into the write, as
// DynamoDB takes an item once.
func TestReadModifyWriteUnderContention(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	engine := tab.Engine()
	var wg sync.WaitGroup
	const n = 12
	for range n {
		wg.Go(func() {
			err := persist(t, engine, func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					c := counter{ID: "hits"}
					if _, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID("hits"), &c); err != nil {
						return idem.Response{}, err
					}
					c.N++
					tx.Write(dynamo.Put(app, c))
					return idem.Response{Status: 200}, nil
				})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c, _ := tabletest.Read[counter](t, tab.Table, app, "hits"); c.N != n {
		t.Errorf("the counter is %d after %d requests", c.N, n)
	}
}

// A false condition of the user's is told as such even on an item that was read
// too; a change of what was read runs the phase again.
func TestConditionAndChangeAreToldApart(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	engine := tab.Engine()
	for name, tc := range map[string]struct {
		cond     string
		meddle   bool // somebody changes the item after the first read
		wantErr  error
		wantRuns int
	}{
		"both hold":        {"n < :max", false, nil, 1},
		"condition false":  {"n > :max", false, idem.ErrCondition, 1},
		"changed":          {"n < :max", true, nil, 2},
		"changed to false": {"n > :max", true, idem.ErrCondition, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := tabletest.NewKey()
			putItem(t, tab, app, counter{ID: item, N: 1})
			runs := 0
			_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
				return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					runs++
					var c counter
					if _, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID(item), &c); err != nil {
						return idem.Response{}, err
					}
					if tc.meddle && runs == 1 {
						putItem(t, tab, app, counter{ID: item, N: 2})
					}
					tx.Write(dynamo.Update(app, tabletest.ID(item), "SET n = :n", dynamo.Args{":n": c.N + 1}).If(tc.cond, dynamo.Args{":max": 10}))
					return idem.Response{Status: 200}, nil
				})
			})
			if !errors.Is(err, tc.wantErr) || (err == nil) != (tc.wantErr == nil) || runs != tc.wantRuns {
				t.Errorf("%v after %d runs, want %v after %d", err, runs, tc.wantErr, tc.wantRuns)
			}
		})
	}
}

type everything struct {
	ID    string            `dynamodbav:"id"`
	Str   string            `dynamodbav:"str"`
	Empty string            `dynamodbav:"empty"`
	Bin   []byte            `dynamodbav:"bin"`
	Set   []string          `dynamodbav:"set,stringset"`
	Nums  []int             `dynamodbav:"nums,numberset"`
	List  []any             `dynamodbav:"list"`
	Map   map[string]string `dynamodbav:"map"`
	Null  *int              `dynamodbav:"null"`
	Float float64           `dynamodbav:"float"`
	Opt   string            `dynamodbav:"opt,omitempty"`
	Inner `dynamodbav:",omitempty"`
}

type Inner struct {
	Deep string `dynamodbav:"deep,omitempty"`
}

// Whatever is read compares equal to itself, and a field that comes to be is a
// change too.
func TestGetChecksEveryAttribute(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	whole := everything{
		ID: "all", Str: "s", Bin: []byte{0, 1}, Set: []string{"b", "a"}, Nums: []int{3, 1}, List: []any{"x", 1.5, nil},
		Map: map[string]string{"k": "v"}, Float: 1.10,
	}
	commit := func(item string, out any, meddle func(), on ...string) (bool, error) {
		var found bool
		runs := 0
		err := persist(t, tab.Engine(), func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (_ idem.Response, err error) {
				if runs++; runs > 1 {
					return idem.Response{}, errChanged
				}
				found, err = dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID(item), out, on...)
				meddle()
				return idem.Response{Status: 200}, err
			})
		})
		return found, err
	}
	nothing := func() {}
	putItem(t, tab, app, whole)
	if found, err := commit("all", &everything{}, nothing); err != nil || !found {
		t.Errorf("unchanged: %t, %v", found, err)
	}
	for name, change := range map[string]func(*everything){
		"string":   func(e *everything) { e.Str = "t" },
		"set":      func(e *everything) { e.Set = []string{"a"} },
		"map":      func(e *everything) { e.Map["k"] = "w" },
		"number":   func(e *everything) { e.Float = 1.11 },
		"new":      func(e *everything) { e.Opt = "there" },
		"promoted": func(e *everything) { e.Deep = "there" },
	} {
		e := whole
		e.Map = map[string]string{"k": "v"}
		change(&e)
		putItem(t, tab, app, whole)
		if _, err := commit("all", &everything{}, func() { putItem(t, tab, app, e) }); !errors.Is(err, errChanged) {
			t.Errorf("%s changed: %v", name, err)
		}
	}
	del := func() {
		_, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &app, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "all"}}})
		if err != nil {
			t.Error(err)
		}
	}
	putItem(t, tab, app, tabletest.ID("all")) // nothing but its key
	if _, err := commit("all", &order{}, del); !errors.Is(err, errChanged) {
		t.Errorf("deleted: %v", err)
	}
	if found, err := commit("none", &order{}, nothing); err != nil || found {
		t.Errorf("no item: %t, %v", found, err)
	}
	if _, err := commit("none", &order{}, func() { putItem(t, tab, app, tabletest.ID("none")) }); !errors.Is(err, errChanged) {
		t.Errorf("an item came to be: %v", err)
	}
	putItem(t, tab, app, whole)
	if _, err := commit("all", &everything{}, func() { e := whole; e.Str = "t"; putItem(t, tab, app, e) }, "float"); err != nil {
		t.Errorf("another attribute than the one named: %v", err)
	}
	wide := map[string]any{"id": "wide"}
	for i := range 141 {
		wide[fmt.Sprint("a", i)] = i
	}
	putItem(t, tab, app, wide)
	if _, err := commit("wide", &map[string]any{}, nothing); err == nil || !strings.Contains(err.Error(), "name those that matter") {
		t.Errorf("141 attributes: %v", err)
	}
}

var errChanged = errors.New("ran again")

// Bad input 30: what the service would refuse is refused before it is sent.
func TestBadInput30WritesThatCannotCommit(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	many := func(n, size int) (out []idem.Write) {
		for i := range n {
			out = append(out, dynamo.Put(app, map[string]string{"id": fmt.Sprint(i), "x": strings.Repeat("x", size)}))
		}
		return out
	}
	engine := tab.Engine()
	for name, tc := range map[string]struct {
		writes []idem.Write
		says   string
	}{
		"100 items and the record": {many(100, 1), "101 items"},
		"over 4 MB":                {many(12, 390<<10), "bytes in one commit"},
		"an item over 400 KB":      {many(1, 401<<10), "at most 409600"},
		"our own table":            {[]idem.Write{dynamo.Delete(tab.Name, map[string]string{"pk": "v1#x"})}, "table of the records"},
		"our own table by its ARN": {
			[]idem.Write{dynamo.Delete("arn:aws:dynamodb:us-east-1:000000000000:table/"+tab.Name, map[string]string{"pk": "v1#x"})}, "table of the records",
		},
		"two writes on one item":    {[]idem.Write{dynamo.Put(app, tabletest.ID("a")), dynamo.Delete(app, tabletest.ID("a"))}, "two writes on one item"},
		"an empty item":             {[]idem.Write{dynamo.Put(app, 5)}, "empty item"},
		"a foreign write":           {[]idem.Write{foreignWrite{}}, "not of this package"},
		"a bad placeholder":         {[]idem.Write{dynamo.Update(app, tabletest.ID("a"), "SET x = :x", dynamo.Args{"x": 1})}, "placeholder"},
		"a value that is not there": {[]idem.Write{dynamo.Update(app, tabletest.ID("a"), "SET n = n + :by, m = :b", dynamo.Args{":b": 1})}, `":by" stands for nothing`},
		"a name that is not there":  {[]idem.Write{dynamo.Check(app, tabletest.ID("a"), "attribute_exists(#n)")}, `"#n" stands for nothing`},
		"a value in no expression":  {[]idem.Write{dynamo.Put(app, tabletest.ID("a")).If("attribute_exists(id)", dynamo.Args{":a": 1})}, `":a" is in no expression`},
		"a name in no expression":   {[]idem.Write{dynamo.Delete(app, tabletest.ID("a")).If("attribute_exists(id)", dynamo.Args{"#a": "a"})}, `"#a" is in no expression`},
		"raw, without its value": {[]idem.Write{dynamo.Raw(types.TransactWriteItem{Update: &types.Update{
			TableName: &app, Key: map[string]types.AttributeValue{"id": tabletest.Str("a")}, UpdateExpression: aws.String("SET n = :n"),
		}})}, `":n" stands for nothing`},
		"the same put twice": {[]idem.Write{dynamo.Put(app, tabletest.ID("a")), dynamo.Put(app, tabletest.ID("a"))}, "two writes on one item"},
	} {
		if !strings.HasPrefix(name, "our own") { // a store in memory has no table
			t.Run("in memory, "+name, func(t *testing.T) {
				t.Parallel()
				var memory idem.MemoryStore
				_, err := idem.New(&memory, callertest.Anybody).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(tc.writes...)
						return idem.Response{}, nil
					})
				})
				if foreign := name == "a foreign write"; !foreign && !errors.Is(err, idem.ErrWrite) || len(memory.Writes()) != 0 && !foreign {
					t.Errorf("got %v, and %d writes", err, len(memory.Writes()))
				}
			})
		}
		//nolint:paralleltest // counts calls
		t.Run(name, func(t *testing.T) {
			_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
				tab.Transport.Reset()
				res, err := idem.Atomic(ctx, "p", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(tc.writes...); return 1, nil })
				if c := tab.Transport.Calls(); len(c) != 0 {
					t.Errorf("sent %v", c)
				}
				return idem.Response{Status: 200 + res}, err
			})
			if !errors.Is(err, idem.ErrWrite) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want ErrWrite that says %q", err, tc.says)
			}
		})
	}
	if _, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(many(99, 1)...)
			return idem.Response{Status: 201}, nil
		})
	}); err != nil {
		t.Errorf("99 writes: %v", err)
	}
}

// A mistake in a write that only the service can find is the program's, and
// nothing that a retry could help: it is ErrWrite, whatever the commit.
func TestMistakesTheServiceFinds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	for name, writes := range map[string][]idem.Write{
		"a reserved word":             {dynamo.Update(app, tabletest.ID("a"), "SET name = :n", dynamo.Args{":n": 1})},
		"an expression, half":         {dynamo.Check(app, tabletest.ID("a"), "attribute_exists(")},
		"two puts on one item":        {dynamo.Put(app, counter{ID: "a", N: 1}), dynamo.Put(app, counter{ID: "a", N: 2})},
		"a key of another name":       {dynamo.Delete(app, map[string]string{"pk": "a"})},
		"a key of another type":       {dynamo.Put(app, map[string]int{"id": 1})},
		"adding to what is no number": {dynamo.Put(app, tabletest.ID("b")), dynamo.Update(app, tabletest.ID("text"), "SET id2 = id + :n", dynamo.Args{":n": 1})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed error
			engine := tab.Engine()
			req := tabletest.Post("", "{}")
			req.Header = http.Header{idem.KeyHeader: {tabletest.NewKey()}}
			res, err := engine.Serve(t.Context(), req, func(ctx context.Context) (idem.Response, error) {
				res, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(writes...)
					return idem.Response{Status: 201}, nil
				})
				failed = err
				return res, err
			})
			if err != nil || res.Status != http.StatusInternalServerError || !errors.Is(failed, idem.ErrWrite) {
				t.Errorf("got %d, %v: %v", res.Status, err, failed)
			}
		})
	}
}

type foreignWrite struct{}

func (foreignWrite) Err() error     { return nil }
func (foreignWrite) String() string { return "foreign" }

// Every third answer is lost, and requests too: still one order, one charge key
// and one answer for each client's key.
func TestPhasesSurviveLostAnswers(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]func(*idem.Options){
		"claim first": func(*idem.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			app := tab.App(t)
			var n atomic.Int64
			faults := []dynamotest.Fault{dynamotest.LoseAnswer, dynamotest.TearAnswer, dynamotest.LoseRequest, dynamotest.Answer500Applied}
			tab.Transport.Fault = func(string, int) dynamotest.Fault {
				if i := n.Add(1); i%3 == 0 {
					return faults[int(i/3)%len(faults)]
				}
				return nil
			}
			engine := tab.Engine(opt)
			const keys = 30
			for range keys {
				var charges atomic.Int64
				req := tabletest.Post(tabletest.NewKey(), "{}")
				var body string
				for try := range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					res, err := engine.Do(ctx, req, buy(app, &charges))
					cancel()
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
		})
	}
}
