package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// getting is a table of the user's with one item, or an error.
type getting struct {
	item map[string]types.AttributeValue
	err  error
}

func (g getting) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if !aws.ToBool(in.ConsistentRead) {
		return nil, errors.New("a weak read")
	}
	return &dynamodb.GetItemOutput{Item: g.item}, g.err
}

type stock struct {
	PK   string `dynamodbav:"pk"`
	N    int    `dynamodbav:"n"`
	Note string `dynamodbav:"note"`
}

// What was read is compared when the phase commits: all of it, or what is named, and the
// absence of what the struct has beside.
func TestGetComparesWhatWasRead(t *testing.T) {
	t.Parallel()
	str, num := tabletest.Str, tabletest.Num
	key := map[string]string{"pk": "1"}
	type attributes = map[string]types.AttributeValue
	read := attributes{"pk": str("1"), "n": num(5)}
	many := func(n int) attributes {
		it := attributes{"pk": str("1")}
		for i := range n {
			it[fmt.Sprint("a", i)] = num(1)
		}
		return it
	}
	var into map[string]any
	for name, tt := range map[string]struct {
		key   any
		read  getting
		out   any
		on    []string
		now   attributes // when the phase commits
		found bool
		err   string // of Get
		stays bool   // the phase commits, since all is as it was read
	}{
		"unchanged":                      {read: getting{item: read}, now: read, found: true, stays: true},
		"another value":                  {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(6)}, found: true},
		"what was absent has come":       {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(5), "note": str("x")}, found: true},
		"what no field knows has come":   {read: getting{item: read}, now: attributes{"pk": str("1"), "n": num(5), "x": str("x")}, found: true, stays: true},
		"gone":                           {read: getting{item: read}, found: true},
		"nothing, and still nothing":     {stays: true},
		"nothing, and then a key":        {now: attributes{"pk": str("1")}},
		"nothing, and then an item":      {now: read},
		"a key and nothing else":         {read: getting{item: attributes{"pk": str("1")}}, now: attributes{"pk": str("1")}, found: true, stays: true},
		"of a key the rest has come":     {read: getting{item: attributes{"pk": str("1")}}, now: read, found: true},
		"a key that is gone":             {read: getting{item: attributes{"pk": str("1")}}, found: true},
		"the named one, unchanged":       {read: getting{item: read}, on: []string{"n"}, now: attributes{"pk": str("1"), "n": num(5), "note": str("x")}, found: true, stays: true},
		"the named one, changed":         {read: getting{item: read}, on: []string{"n"}, now: attributes{"pk": str("1"), "n": num(6)}, found: true},
		"a named one of the struct only": {read: getting{item: read}, on: []string{"note"}, now: attributes{"pk": str("1"), "n": num(6)}, found: true, stays: true},
		"it has come":                    {read: getting{item: read}, on: []string{"note"}, now: attributes{"pk": str("1"), "note": str("x")}, found: true},
		"a named one of the item only":   {read: getting{item: attributes{"pk": str("1"), "x": num(1)}}, on: []string{"x"}, now: attributes{"pk": str("1"), "x": num(2)}, found: true},
		"a named one of neither":         {read: getting{item: read}, on: []string{"N"}, err: `has an attribute "N"`},
		"any name, into a map":           {read: getting{item: read}, out: &into, on: []string{"x"}, now: attributes{"pk": str("1"), "x": num(2)}, found: true},
		"140 attributes":                 {read: getting{item: many(140)}, out: &into, now: many(140), found: true, stays: true},
		"141 attributes":                 {read: getting{item: many(141)}, out: &into, err: "141 attributes can't be compared"},
		"141, of which one is named":     {read: getting{item: many(141)}, out: &into, on: []string{"a7"}, now: many(8), found: true, stays: true},
		"no key":                         {key: 1, err: "key: "},
		"no answer":                      {read: getting{err: errors.New("connection reset")}, err: "connection reset"},
		"another type":                   {read: getting{item: attributes{"pk": str("1"), "n": str("five")}}, err: "dynamo: get stock: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // a phase is run again for five seconds
				var db fakedynamo.DB
				st, err := dynamo.New(&db, "records")
				if err != nil {
					t.Fatal(err)
				}
				if tt.now != nil {
					if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("stock"), Item: tt.now}); err != nil {
						t.Fatal(err)
					}
				}
				if tt.key == nil {
					tt.key = key
				}
				if tt.out == nil {
					tt.out = &stock{N: -1}
				}
				var found bool
				var failed error
				_, err = idem.New(st, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/"}, func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
						found, failed = dynamo.Get(ctx, tx, tt.read, "stock", tt.key, tt.out, tt.on...)
						return idem.Response{Status: 201}, failed
					})
				})
				if found != tt.found || (failed != nil) != (tt.err != "") || failed != nil && !strings.Contains(failed.Error(), tt.err) {
					t.Fatalf("found: %t, %v", found, failed)
				}
				if failed == nil && (err == nil) != tt.stays || !tt.stays && failed == nil && !errors.Is(err, idem.ErrConflict) {
					t.Errorf("the phase: %v, want it to commit: %t", err, tt.stays)
				}
				if s, ok := tt.out.(*stock); ok && failed == nil && !tt.found && s.N != -1 {
					t.Errorf("nothing was read into %+v", s)
				}
			})
		})
	}
}

// An item that changed between two Gets of one run has it run again.
func TestTwoGetsOfOneItem(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	putItem(t, tab, app, counter{ID: "c", N: 1})
	runs := 0
	_, err := tab.Engine().Do(t.Context(), tabletest.Post("k", "1"), func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "debit", func(ctx context.Context, tx *idem.Tx) (int, error) {
			var a, b counter
			_, err := dynamo.Get(ctx, tx, tab.Direct, app, tabletest.ID("c"), &a)
			if runs++; runs == 1 { // somebody else writes in between, once
				putItem(t, tab, app, counter{ID: "c", N: 2})
			}
			_, err2 := dynamo.Get(ctx, tx, tab.Direct, app, tabletest.ID("c"), &b)
			tx.Write(dynamo.Put(app, counter{ID: "c", N: b.N + 1}))
			return b.N, errors.Join(err, err2)
		})
		return idem.Response{Status: 201}, err
	})
	if c, _ := tabletest.Read[counter](t, tab.Table, app, "c"); err != nil || runs != 2 || c.N != 3 {
		t.Errorf("%d after %d runs, %v; want 3 after 2", c.N, runs, err)
	}
}

// Whatever the SDK reads compares equal to itself, and a change of it is one.
func TestGetChecksEveryType(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	whole := everything{
		ID: "all", Str: "s", Bin: []byte{0, 1}, Set: []string{"b", "a"}, Nums: []int{3, 1}, List: []any{"x", 1.5, nil},
		Map: map[string]string{"k": "v"}, Float: 1.10,
	}
	for name, change := range map[string]func(*everything){
		"nothing":  nil,
		"string":   func(e *everything) { e.Str = "t" },
		"set":      func(e *everything) { e.Set = []string{"a"} },
		"map":      func(e *everything) { e.Map = map[string]string{"k": "w"} },
		"number":   func(e *everything) { e.Float = 1.11 },
		"new":      func(e *everything) { e.Opt = "there" },
		"promoted": func(e *everything) { e.Deep = "there" },
	} {
		putItem(t, tab, app, whole)
		runs := 0
		err := persist(t, tab.Engine(), func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
				if runs++; runs > 1 {
					return idem.Response{}, errChanged
				}
				_, err := dynamo.Get(ctx, tx, tab.Client, app, tabletest.ID("all"), &everything{})
				if change != nil {
					e := whole
					change(&e)
					putItem(t, tab, app, e)
				}
				return idem.Response{Status: 200}, err
			})
		})
		if (err == nil) != (change == nil) || err != nil && !errors.Is(err, errChanged) {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

type everything struct {
	ID    string            `dynamodbav:"pk"`
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

var errChanged = errors.New("ran again")

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

// What the service would refuse is refused before it is sent.
func TestWritesThatCannotCommit(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	app := tab.App(t)
	many := func(n, size int) (out []idem.Write) {
		for i := range n {
			out = append(out, dynamo.Put(app, map[string]string{"pk": fmt.Sprint(i), "x": strings.Repeat("x", size)}))
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
		"two writes on one item": {[]idem.Write{dynamo.Put(app, tabletest.ID("a")), dynamo.Delete(app, tabletest.ID("a"))}, "two writes on one item"},
		"an empty item":          {[]idem.Write{dynamo.Put(app, 5)}, "empty item"},
		"a foreign write":        {[]idem.Write{foreignWrite{}}, "not of this package"},
		"raw, without its value": {[]idem.Write{dynamo.Raw(types.TransactWriteItem{Update: &types.Update{
			TableName: &app, Key: map[string]types.AttributeValue{"pk": tabletest.Str("a")}, UpdateExpression: aws.String("SET n = :n"),
		}})}, `":n" stands for nothing`},
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

type foreignWrite struct{}

func (foreignWrite) Err() error { return nil }

func (foreignWrite) String() string { return "foreign" }

// A mistake in a write that only the service can find is the program's, and
// nothing that a retry could help: it is ErrWrite, whatever the commit.
func TestMistakesTheServiceFinds(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	for name, writes := range map[string][]idem.Write{
		"a reserved word":             {dynamo.Update(app, tabletest.ID("a"), "SET name = :n", dynamo.Args{":n": 1})},
		"an expression, half":         {dynamo.Check(app, tabletest.ID("a"), "attribute_exists(")},
		"two puts on one item":        {dynamo.Put(app, counter{ID: "a", N: 1}), dynamo.Put(app, counter{ID: "a", N: 2})},
		"a key of another name":       {dynamo.Delete(app, map[string]string{"id": "a"})},
		"a key of another type":       {dynamo.Put(app, map[string]int{"pk": 1})},
		"adding to what is no number": {dynamo.Put(app, tabletest.ID("b")), dynamo.Update(app, tabletest.ID("text"), "SET n = pk + :n", dynamo.Args{":n": 1})},
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

// Check writes nothing and lets the phase commit only if its condition holds. Raw sends a write of
// the SDK as it is, of each kind, with its condition.
func TestCheckAndRaw(t *testing.T) {
	t.Parallel()
	tab := newLocal(t)
	app := tab.App(t)
	engine := tab.Engine()
	is := aws.String("n = :n")
	key := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": tabletest.Str(id)}
	}
	n := func(n int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{":n": tabletest.Num(n)}
	}
	for name, tt := range map[string]struct {
		write func(id string, n int64) *dynamo.Write // on condition that n is the item's
		after int
	}{
		"check": {func(id string, n int64) *dynamo.Write {
			return dynamo.Check(app, tabletest.ID(id), "n >= :n", dynamo.Args{":n": n}).If("n < :most", dynamo.Args{":most": 4})
		}, 3},
		"raw put": {func(id string, v int64) *dynamo.Write {
			it := key(id)
			it["n"] = tabletest.Num(7)
			return dynamo.Raw(types.TransactWriteItem{Put: &types.Put{TableName: &app, Item: it, ConditionExpression: is, ExpressionAttributeValues: n(v)}})
		}, 7},
		"raw update": {func(id string, v int64) *dynamo.Write {
			return dynamo.Raw(types.TransactWriteItem{Update: &types.Update{
				TableName: &app, Key: key(id), UpdateExpression: aws.String("SET n = n + :n"), ConditionExpression: is, ExpressionAttributeValues: n(v),
			}})
		}, 6},
		"raw delete": {func(id string, v int64) *dynamo.Write {
			return dynamo.Raw(types.TransactWriteItem{Delete: &types.Delete{TableName: &app, Key: key(id), ConditionExpression: is, ExpressionAttributeValues: n(v)}})
		}, 0},
		"raw check": {func(id string, v int64) *dynamo.Write {
			return dynamo.Raw(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &app, Key: key(id), ConditionExpression: is, ExpressionAttributeValues: n(v)}})
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			putItem(t, tab, app, counter{ID: name, N: 3})
			for _, step := range []struct {
				n        int64
				want     error
				item, n2 int // then, of the item and of the phase's other write
			}{{4, idem.ErrCondition, 3, 0}, {3, nil, tt.after, 1}} {
				_, err := engine.Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(ctx context.Context) (idem.Response, error) {
					return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(tt.write(name, step.n), dynamo.Put(app, counter{ID: "order of " + name, N: 1}))
						return idem.Response{Status: 201}, nil
					})
				})
				it, _ := tabletest.Read[counter](t, tab.Table, app, name)
				other, _ := tabletest.Read[counter](t, tab.Table, app, "order of "+name)
				if !errors.Is(err, step.want) || (err == nil) != (step.want == nil) || it.N != step.item || other.N != step.n2 {
					t.Errorf("if n is %d: %v, the item has %d, the other write %d; want %v, %d, %d", step.n, err, it.N, other.N, step.want, step.item, step.n2)
				}
			}
		})
	}
}
