package rides_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/leaktest"
	"github.com/samekey/samekey/seal"
)

// onDynamoDB is a stage with tables of its own on DynamoDB Local, whose records are
// encrypted. At the end of the test neither the table of the records nor the log may
// have a caller's address or place in any form.
func onDynamoDB(t *testing.T, optFns ...func(*idem.Options)) *stage {
	t.Helper()
	provider, err := seal.NewStatic("test", map[string][]byte{"test": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	sealer := seal.New(provider)
	st, dump := onTables(t, func(o *dynamo.Options) { o.Seal = sealer }, optFns...)
	t.Cleanup(func() {
		if found := leaktest.Find(dump(), secrets...); len(found) != 0 {
			t.Errorf("the table of the records and the log have %q", found)
		}
	})
	return st
}

// secrets are in the requests, jobs and answers of every ride.
var secrets = []string{jane, omar, "-122.4"}

// The search for secrets is able to find them: without encryption they are there.
func TestPlainRecordsHaveSecrets(t *testing.T) {
	t.Parallel()
	st, dump := onTables(t, func(*dynamo.Options) {})
	st.world.SetMode(world.Mode{Charge: world.Error}) // the request stays
	st.post(t, jane, rand.Text(), trip)
	found := strings.Join(leaktest.Find(dump(), secrets...), ", ")
	if !strings.Contains(found, jane) || !strings.Contains(found, "-122.4") {
		t.Errorf("found %q, want Jane's address and her place", found)
	}
}

// onTables is a stage with tables of its own, and the texts of its records and log.
func onTables(t *testing.T, opt func(*dynamo.Options), optFns ...func(*idem.Options)) (*stage, func() [][]byte) {
	t.Helper()
	db := dynamotest.Start(t)
	direct := db.Client()
	name := rand.Text()
	records, ridesTable, auditTable := "records-"+name, "rides-"+name, "audit-"+name
	// Without TTL: DynamoDB Local deletes what has expired within a second.
	createTable(t, direct, dynamo.CreateTableInput(records))
	createTable(t, direct, byID(ridesTable))
	createTable(t, direct, byID(auditTable))

	tr := &dbfault.Transport{Base: direct.Options().HTTPClient.(*http.Client).Transport}
	client := db.Client(dynamo.Tune, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr, Timeout: 10 * time.Minute} })
	inner, err := dynamo.New(client, records, opt)
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
	return st, func() [][]byte {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute) // also in a cleanup
		defer cancel()
		var items []map[string]types.AttributeValue
		pages := dynamodb.NewScanPaginator(direct, &dynamodb.ScanInput{TableName: &records})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				t.Error(err)
				break
			}
			items = append(items, page.Items...)
		}
		return append(leaktest.Texts(items), st.log.text())
	}
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
