package calls_test

import (
	"crypto/rand"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

type calls = map[string]int

// newStore is a store on a table of its own, and the transport that counts.
func newStore(t *testing.T) (*dynamo.Store, *dbfault.Transport) {
	t.Helper()
	store, _, tr := newTable(t)
	return store, tr
}

func newTable(t *testing.T, optFns ...func(*dynamo.Options)) (*dynamo.Store, *dynamodb.Client, *dbfault.Transport) {
	t.Helper()
	db := dynamotest.Start(t)
	table := "t-" + rand.Text()
	direct := db.Client()
	if _, err := direct.CreateTable(t.Context(), dynamo.CreateTableInput(table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(direct, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	tr := &dbfault.Transport{}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: tr, Timeout: 10 * time.Minute}
	})
	store, err := dynamo.New(client, table, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return store, client, tr
}
