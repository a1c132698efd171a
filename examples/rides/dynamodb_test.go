package rides_test

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// onDynamoDB is a stage with tables of its own on DynamoDB Local.
func onDynamoDB(t *testing.T, optFns ...func(*idem.Options)) *stage {
	t.Helper()
	db := dynamotest.Start(t)
	direct := db.Client()
	name := rand.Text()
	records, ridesTable, auditTable := "records-"+name, "rides-"+name, "audit-"+name
	// Without TTL: DynamoDB Local deletes what has expired within a second.
	createTable(t, direct, dynamo.CreateTableInput(records))
	createTable(t, direct, byID(ridesTable))
	createTable(t, direct, byID(auditTable))

	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	tr := &dynamotest.Transport{Base: base}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr, Timeout: 10 * time.Minute} })
	inner, err := dynamo.New(client, records)
	if err != nil {
		t.Fatal(err)
	}
	st := newStage(t, inner, optFns)
	st.direct = direct
	st.app.DB, st.app.RidesTable, st.app.AuditTable = client, ridesTable, auditTable
	st.calls = func() map[string]int {
		defer tr.Reset()
		return tr.Calls()
	}
	st.records = func(t *testing.T) (all []*store.Record) {
		t.Helper()
		for _, it := range scan(t, direct, records) {
			r, err := inner.Load(t.Context(), text(t, it["pk"]))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		tr.Reset()
		return all
	}
	st.look = func(t *testing.T) (s seen) {
		t.Helper()
		for _, it := range scan(t, direct, ridesTable) {
			s.Rides++
			if it["charge_id"] != nil {
				s.Paid++
			}
		}
		s.Audits = len(scan(t, direct, auditTable))
		return s
	}
	st.refuse = func(t *testing.T) {
		t.Helper()
		for _, it := range scan(t, direct, ridesTable) {
			key := map[string]types.AttributeValue{"id": it["id"]}
			if _, err := direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &ridesTable, Key: key}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return st
}

// byID is a table of the app's own.
func byID(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:            &table,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}
}

func createTable(t *testing.T, client *dynamodb.Client, in *dynamodb.CreateTableInput) {
	t.Helper()
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wait := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond })
	if err := wait.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
}

func scan(t *testing.T, client *dynamodb.Client, table string) (items []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func text(t *testing.T, v types.AttributeValue) string {
	t.Helper()
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		t.Fatalf("a %T is no text", v)
	}
	return s.Value
}
