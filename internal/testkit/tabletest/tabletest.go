// Package tabletest makes fresh tables, in memory or on DynamoDB Local, for the tests of packages
// dynamo and internal/background/stream. It also has requests and handlers that both packages'
// tests use.
package tabletest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/servers/line"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// Table is a fresh table with a store. Transport counts the store's requests, and can
// inject faults into them.
type Table struct {
	Name      string
	Store     *dynamo.Store
	Transport *dbfault.Transport
	Client    *dynamodb.Client // the store's client
	Direct    *dynamodb.Client // a client without Transport, for the test's own requests

	changes []events.DynamoDBEventRecord // the changes so far, if the table is in memory
	server  *fakedynamo.Server
}

// New returns a fresh table in memory. The table evaluates expressions as DynamoDB
// does, and answers each call at once. TestStoresAgree in internal/testkit/fakedynamo
// compares such tables with DynamoDB Local.
func New(t testing.TB, optFns ...func(*dynamo.Options)) *Table {
	t.Helper()
	tab := &Table{Name: "t-" + rand.Text(), server: &fakedynamo.Server{}}
	tab.server.DB.Changed = func(c fakedynamo.Change) {
		if c.Table == tab.Name {
			tab.changes = append(tab.changes, streamimage.Record(c.Old, c.New, c.Time.Truncate(time.Second), strconv.Itoa(1+len(tab.changes))))
		}
	}
	tab.Transport = &dbfault.Transport{Base: inMemory{tab.server}}
	tab.Direct = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", HTTPClient: tab.server, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	tab.Client = dynamodb.New(tab.Direct.Options(), dynamo.Tune, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tab.Transport} })
	return tab.open(t, optFns)
}

// Local is like New, but the table is on DynamoDB Local. Use Local in tests of capacity
// units, reserved names, types of keys, a missing index, or simultaneous writes.
func Local(t testing.TB, optFns ...func(*dynamo.Options)) *Table {
	t.Helper()
	db := dynamotest.Start(t)
	tab := &Table{Name: "t-" + rand.Text(), Direct: db.Client()}
	// The table has no TTL, because DynamoDB Local would delete expired items within a
	// second. It has no stream, because a stream slows all writes.
	in := dynamo.CreateTableInput(tab.Name)
	in.StreamSpecification = nil
	if _, err := tab.Direct.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(tab.Direct, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &tab.Name}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 64
	base.MaxConnsPerHost = 64 // DynamoDB Local resets connections if it has some hundreds
	t.Cleanup(base.CloseIdleConnections)
	var seen faults
	t.Cleanup(func() { seen.tell(t) })
	tab.Transport = &dbfault.Transport{Base: &line.Transport{Base: base, Note: seen.note}}
	tab.Client = db.Client(dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: tab.Transport, Timeout: 10 * time.Minute}
	})
	return tab.open(t, optFns)
}

func (tab *Table) open(t testing.TB, optFns []func(*dynamo.Options)) *Table {
	t.Helper()
	var err error
	if tab.Store, err = dynamo.New(tab.Client, tab.Name, optFns...); err != nil {
		t.Fatal(err)
	}
	return tab
}

// Virtual runs test in a bubble of testing/synctest, with a table in memory, so that waits
// take no real time.
func Virtual(t *testing.T, test func(t *testing.T, tab *Table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, New(t))
	})
}

type inMemory struct{ server *fakedynamo.Server }

func (m inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return m.server.Do(req)
}

// Feed returns a function that reads the table's stream. The function's first call
// returns the changes since Feed was called. Each later call returns the changes since
// the previous call. Feed needs a table in memory.
func (tab *Table) Feed() (read func() events.DynamoDBEvent) {
	var all []events.DynamoDBEventRecord
	get := func() { tab.server.Locked(func(*fakedynamo.DB) { all = slices.Clone(tab.changes) }) }
	get()
	seen := len(all)
	return func() (ev events.DynamoDBEvent) {
		get()
		ev.Records, seen = all[seen:], len(all)
		return ev
	}
}

// Lease is how long an attempt without a deadline holds its record. It is long because
// a request can take minutes on a machine that is busy with other tests.
const Lease = 150 * time.Second

// Unhurried is an option of an engine. It sets Options.Lease to [Lease], and
// Options.MaxRequest to the largest allowed size.
func Unhurried(o *idem.Options) { o.Lease, o.MaxRequest = Lease, defaults.MaxStoredRequest }

// Engine returns an [Unhurried] engine on the table's store.
func (tab *Table) Engine(optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(tab.Store, append([]func(*idem.Options){Unhurried}, optFns...)...)
}

// Put writes an item by hand, without the store.
func (tab *Table) Put(t testing.TB, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := tab.Direct.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tab.Name, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// Items returns all items of the table.
func (tab *Table) Items(t testing.TB) (items []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(tab.Direct, &dynamodb.ScanInput{TableName: &tab.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

// Planted is in the query of each request that [Post] returns, and in the args of jobs.
// The command "make sealed" checks that neither logs nor tables with encrypted records
// contain Planted.
const Planted = "card=" + leaktest.Card + "&mail=" + leaktest.Mail + "&token=" + leaktest.Token

// Post returns a POST with a key.
func Post(key, body string) idem.Request {
	return idem.Request{
		Key: key, Method: "POST", Path: "/orders", Route: "POST /orders", Query: Planted, Body: []byte(body),
		Identity: idem.Identity{Kind: "jwt", Subject: "jane"},
	}
}

// Created returns a handler that answers 201 with body.
func Created(body string) func(context.Context) (store.Response, error) {
	return func(context.Context) (store.Response, error) {
		return store.Response{
			Status: http.StatusCreated,
			Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/orders/1"}},
			Body:   []byte(body),
		}, nil
	}
}

// NewKey returns a unique key.
func NewKey() string { return rand.Text() }

// Only returns the table's only record. It fails the test if the table has no record or
// several.
func (tab *Table) Only(t testing.TB) *store.Record {
	t.Helper()
	var pks []string
	for _, it := range tab.Items(t) {
		if pk := it["pk"].(*types.AttributeValueMemberS).Value; it["st"] != nil {
			pks = append(pks, pk)
		}
	}
	if len(pks) != 1 {
		t.Fatalf("%d records", len(pks))
	}
	r, err := tab.Store.Load(t.Context(), pks[0])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// WithRetries runs test twice, each time with another client. One client sends each
// request once, so the engine must find out whether a write without an answer was
// applied. The other client has the retryer of dynamo.Tune, which sends the same bytes
// again.
func WithRetries(t *testing.T, test func(t *testing.T, tab *Table)) {
	t.Helper()
	for name, once := range map[string]bool{"retried by the client": false, "sent once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Virtual(t, func(t *testing.T, tab *Table) {
				t.Helper()
				if once {
					tab.SendOnce(t)
				}
				test(t, tab)
			})
		})
	}
}

// SendOnce replaces tab.Store by a store whose client sends each request once.
func (tab *Table) SendOnce(t testing.TB) {
	t.Helper()
	once := dynamodb.New(tab.Client.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	var err error
	if tab.Store, err = dynamo.New(once, tab.Name); err != nil {
		t.Fatal(err)
	}
}

// On returns a function for Transport.Fault. The function injects a fault into the
// first n requests of the operation op.
func On(op string, n int, fault dbfault.Fault) func(string, int) dbfault.Fault {
	return func(o string, i int) dbfault.Fault {
		if o == op && i <= n {
			return fault
		}
		return nil
	}
}

// Ambiguous has faults of a write. Under some of them the write is applied, under the
// others it isn't.
var Ambiguous = map[string]dbfault.Fault{
	"the request is lost":              dbfault.LoseRequest,
	"the answer is lost":               dbfault.LoseAnswer,
	"the answer is torn":               dbfault.TearAnswer,
	"a 500 before it is applied":       dbfault.Answer500,
	"a 500 after it is applied":        dbfault.Answer500Applied,
	"throttled":                        dbfault.Throttle,
	"a conflict with another write":    dbfault.Conflict,
	"a transaction is still in flight": dbfault.AnswerError(http.StatusBadRequest, "TransactionInProgressException", "injected"),
}

// Replays fails t unless the engine answers req with a replay of body.
func Replays(t *testing.T, engine *idem.Engine, req idem.Request, body string) {
	t.Helper()
	res, err := engine.Do(t.Context(), req, NeverRuns(t))
	if err != nil || !res.Replayed || string(res.Body) != body {
		t.Errorf("replay got %+v, %v; want %q", res, err, body)
	}
}

// Ahead returns an option that sets an engine's clock forward by d.
func Ahead(d time.Duration) func(*idem.Options) {
	return func(o *idem.Options) { o.Now = func() time.Time { return time.Now().Add(d) } }
}

// Abandon claims the key of req and leaves the record open, as if the handler's process
// had died after the claim.
func (tab *Table) Abandon(t *testing.T, req idem.Request) {
	t.Helper()
	died := make(chan struct{})
	go func() {
		defer close(died)
		defer func() { _ = recover() }()
		_, _ = idem.New(DeadAfterClaim{tab.Store}).Do(t.Context(), req, func(context.Context) (store.Response, error) {
			panic("killed") //nolint:forbidigo // the death of the process
		})
	}()
	<-died
}

// DeadAfterClaim is a store that accepts claims and fails all commits, as if the
// process had died after the claim.
type DeadAfterClaim struct{ store.Store }

// Commit fails.
func (DeadAfterClaim) Commit(context.Context, store.Commit) (*store.Record, error) {
	return nil, errors.New("the process is dead")
}

// App makes a table for a user's data, beside the table of records, and returns the name
// of the new table.
func (tab *Table) App(t testing.TB) string {
	t.Helper()
	name := tab.Name + "-app"
	if tab.server != nil {
		return name // in memory, the first item makes the table
	}
	_, err := tab.Direct.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Read returns the item whose key is id, from the user's table with the given name.
func Read[T any](t testing.TB, tab *Table, name, id string) (v T, found bool) {
	t.Helper()
	out, err := tab.Direct.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := attributevalue.UnmarshalMap(out.Item, &v); err != nil {
		t.Fatal(err)
	}
	return v, len(out.Item) > 0
}

// ID returns the key of the item s in a user's table.
func ID(s string) map[string]string { return map[string]string{"pk": s} }

// NeverRuns returns a handler that fails t if it runs.
func NeverRuns(t *testing.T) func(context.Context) (store.Response, error) {
	t.Helper()
	return func(context.Context) (store.Response, error) {
		t.Error("handler ran")
		return store.Response{}, errors.New("handler ran")
	}
}

// Str returns s as an attribute value.
func Str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Num returns n as an attribute value.
func Num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
