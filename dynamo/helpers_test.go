package dynamo_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	_ = os.Unsetenv("AWS_REGION")                  // a record tells its Region; fails never
	os.Exit(dynamotest.MainSeparate(m))
}

// table is a fresh table with a store on it.
type table struct{ *tabletest.Table }

// held claims a record, and brings it to version 2.
func (tab *table) held(t testing.TB) *store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##" + (rand.Text() + rand.Text())[:43], State: store.Open, Owner: rand.Text(), Ver: 1, ID: rand.Text(), Fingerprint: "f",
		Lease: now.Add(time.Minute), Keep: store.KeepOpen, Created: now, Run: now, Input: &store.Input{Method: "POST", Path: "/"},
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	next := r.Clone()
	next.Ver, next.LastErr = 2, "it failed"
	if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	return next
}

// process returns the store of another process on the table.
func (tab *table) process(t testing.TB, optFns ...func(*dynamo.Options)) *dynamo.Store {
	t.Helper()
	s, err := dynamo.New(tab.Client, tab.Name, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unchanged fails t unless the table holds before.
func (tab *table) unchanged(t *testing.T, before []map[string]types.AttributeValue) {
	t.Helper()
	if diff := cmp.Diff(before, tab.Items(t), anyValue); diff != "" {
		t.Errorf("items (-before +after):\n%s", diff)
	}
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

// newTable is in memory, newLocal on DynamoDB Local.
func newTable(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	return &table{tabletest.New(t, optFns...)}
}

func newLocal(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	return &table{tabletest.Local(t, optFns...)}
}

// virtual is [tabletest.Virtual].
func virtual(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.Virtual(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

// withRetries runs test with a client that repeats requests, and with one that doesn't.
func withRetries(t *testing.T, test func(t *testing.T, tab *table)) {
	t.Helper()
	tabletest.WithRetries(t, func(t *testing.T, tab *tabletest.Table) {
		t.Helper()
		test(t, &table{tab})
	})
}

// persist sends a new request until no conflict is in its way: on a slow machine a
// conflict may outlast the five seconds for which the engine runs a phase again.
func persist(t *testing.T, engine *idem.Engine, fn func(context.Context) (idem.Response, error)) error {
	t.Helper()
	for {
		_, err := engine.Do(context.WithoutCancel(t.Context()), tabletest.Post(tabletest.NewKey(), "{}"), fn)
		if !errors.Is(err, idem.ErrConflict) {
			return err
		}
	}
}

type calls = map[string]int

// seen is r as somebody saw it who is late.
func seen(r *store.Record) map[string]*store.Record {
	other, old, newer := r.Clone(), r.Clone(), r.Clone()
	other.Owner = rand.Text()
	old.Ver--
	newer.Ver++
	return map[string]*store.Record{"another owner": other, "an old version": old, "a later version": newer}
}

// anyValue compares attribute values, whose types have unexported fields.
var anyValue = cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
	types.AttributeValueMemberM{}, types.AttributeValueMemberL{}, types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{})

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

// noInput fails t if a part of a request lies anywhere.
func noInput(t *testing.T, tab *table) {
	t.Helper()
	for _, it := range tab.Items(t) {
		if it["req"] != nil || it["st"] == nil && it["b"] != nil {
			t.Errorf("a part of a request is still there: %v", it["pk"])
		}
	}
}

type counter struct {
	ID string `dynamodbav:"pk"`
	N  int    `dynamodbav:"n"`
}

type order struct {
	ID     string `dynamodbav:"pk" json:"id"`
	Charge string `dynamodbav:"charge,omitempty" json:"charge,omitempty"`
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

// randomText is text that doesn't compress well.
func randomText(n int) string { return base64.StdEncoding.EncodeToString([]byte(noise(n)))[:n] }

// writeUnits is what writing an item costs: one for each begun KB. DynamoDB
// Local miscounts transactions, so tests compute units themselves.
func writeUnits(item map[string]types.AttributeValue) int { return (itemsize.Of(item) + 1023) / 1024 }

func counted(n *int, fn func(context.Context) (idem.Response, error)) func(context.Context) (idem.Response, error) {
	return func(ctx context.Context) (idem.Response, error) {
		*n++
		return fn(ctx)
	}
}

type attributes = map[string]types.AttributeValue

// serve answers a POST with engine, whose handler is fn.
func serve(ctx context.Context, s store.Store, key string, fn func(context.Context) (idem.Response, error), optFns ...func(*idem.Options)) idem.Response {
	return ask(ctx, s, key, false, fn, optFns...)
}

// ask is serve for a request that may be read first.
func ask(ctx context.Context, s store.Store, key string, readFirst bool, fn func(context.Context) (idem.Response, error), optFns ...func(*idem.Options)) idem.Response {
	engine := idem.New(s, append([]func(*idem.Options){callertest.Anybody, tabletest.Unhurried, idem.OneScope, func(o *idem.Options) { o.MaxBody = 1 << 20 }}, optFns...)...)
	req := tabletest.Post(key, `{"amount":2000}`)
	req.Header, req.ReadFirst = http.Header{"Idempotency-Key": {key}}, readFirst
	res, _ := engine.Serve(ctx, req, fn)
	return res.Response
}

func isProblem(t *testing.T, re idem.Response, status int, code string) {
	t.Helper()
	if re.Status != status || !strings.Contains(string(re.Body), `"`+code+`"`) || (status == 503) != (re.Header.Get("Retry-After") != "") {
		t.Errorf("the answer is %d %v %s, want %d %s", re.Status, re.Header, re.Body, status, code)
	}
}
