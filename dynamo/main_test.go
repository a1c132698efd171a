package dynamo_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	os.Exit(dynamotest.Main(m))
}

// table is a fresh table, with a store on it whose requests can be counted and
// spoiled.
type table struct {
	name   string
	store  *dynamo.Store
	tr     *dynamotest.Transport
	client *dynamodb.Client // the store's
	direct *dynamodb.Client // past the transport, for looking at items
}

func newTable(t testing.TB, optFns ...func(*dynamo.Options)) *table {
	t.Helper()
	db := dynamotest.Start(t)
	tab := &table{name: "t-" + rand.Text(), direct: db.Client()}
	// Without TTL: DynamoDB Local deletes what has expired within a second, at any
	// moment of a test. That conditions alone decide is what is tested.
	if _, err := tab.direct.CreateTable(t.Context(), dynamo.CreateTableInput(tab.name)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(tab.direct, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &tab.name}, time.Minute); err != nil {
		t.Fatal(err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 64
	base.MaxConnsPerHost = 64 // DynamoDB Local resets connections beyond some hundreds
	t.Cleanup(base.CloseIdleConnections)
	tab.tr = &dynamotest.Transport{Base: base}
	tab.client = db.Client(dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: tab.tr, Timeout: 20 * time.Second}
	})
	var err error
	if tab.store, err = dynamo.New(tab.client, tab.name, optFns...); err != nil {
		t.Fatal(err)
	}
	return tab
}

// put writes an item by hand, as no store would.
func (tab *table) put(t testing.TB, item map[string]types.AttributeValue) {
	t.Helper()
	if _, err := tab.direct.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tab.name, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// items returns all items of the table.
func (tab *table) items(t testing.TB) (items []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(tab.direct, &dynamodb.ScanInput{TableName: &tab.name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func post(key, body string) idem.Request {
	return idem.Request{Key: key, Method: "POST", Path: "/orders", Route: "POST /orders", Body: []byte(body)}
}

func created(body string) func(context.Context) (idem.Response, error) {
	return func(context.Context) (idem.Response, error) {
		return idem.Response{
			Status: http.StatusCreated,
			Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/orders/1"}},
			Body:   []byte(body),
		}, nil
	}
}

func newKey() string { return rand.Text() }
