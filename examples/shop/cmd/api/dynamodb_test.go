package main

import (
	"context"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.MainSeparate(m)) }

const inStock = 5

// tables are the shop's own, on DynamoDB Local.
type tables struct {
	*dynamodb.Client
	records *dynamo.Store
}

func open(t *testing.T) tables {
	t.Helper()
	client := dynamotest.Start(t).Client()
	t.Cleanup(func() { // for -count=2
		for _, name := range []string{"orders", "stock", "records"} {
			if _, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
	})
	for name, key := range map[string]string{"orders": "id", "stock": "sku"} {
		_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := dynamo.CreateTable(t.Context(), client, "records"); err != nil {
		t.Fatal(err)
	}
	records, err := dynamo.New(client, "records")
	if err != nil {
		t.Fatal(err)
	}
	return tables{client, records}
}

// fill makes the tables as a run begins with: some stock, and a paid order of two.
func (db tables) fill(t *testing.T) {
	t.Helper()
	for table, v := range map[string]any{
		"stock":  map[string]any{"sku": "teapot", "pieces": inStock},
		"orders": Order{ID: "o1", SKU: "teapot", Quantity: 2, Amount: 2400, Mail: "jane@example.com", State: paid, Charge: "ch_1"},
	} {
		item, err := attributevalue.MarshalMap(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
}

func (db tables) pieces(t testing.TB) (n int) {
	t.Helper()
	out, err := db.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String("stock"), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"sku": &types.AttributeValueMemberS{Value: "teapot"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := attributevalue.Unmarshal(out.Item["pieces"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (db tables) shop(w *idemtest.World) *lambda.Router[request, response] {
	shop, engine := testApp(*w.Client()), w.Engine(guests)
	shop.db = db
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /orders", engine, shop.order)
	router.Keyed("POST /orders/{id}/cancel", engine, shop.cancel)
	router.Route("GET /orders/{id}", shop.show)
	return router
}

// The stock of the real table goes down once and comes back once.
func TestStockSurvivesACrashEverywhere(t *testing.T) {
	db := open(t)
	for _, tt := range []struct {
		path, body string
		fates      []idemtest.Fate
		status     int
		pieces     int
		paths      []string // of the effects at the provider
		state      string   // of the order that is shown
	}{
		{"/orders", twoTeapots.Body, nil, 201, inStock - 2, []string{"/charges"}, paid},
		{"/orders", twoTeapots.Body, []idemtest.Fate{{Refuse: 402}, {Refuse: 402}, {Refuse: 402}}, 402, inStock, nil, ""},
		{"/orders", `{"sku":"teapot","quantity":6,"mail":"jane@example.com"}`, nil, 409, inStock, nil, ""},
		{"/orders/o1/cancel", "", nil, 200, inStock + 2, []string{"/refunds"}, cancelled},
		{"/orders/o2/cancel", "", nil, 404, inStock, nil, ""},
	} {
		lambdatest.CrashEverywhere(t, db.shop, post(tt.path, tt.body), func(t testing.TB, w *idemtest.World, re response) {
			if re.StatusCode != tt.status || db.pieces(t) != tt.pieces || len(w.Provider.Effects()) != len(tt.paths) || len(w.Provider.Effects(tt.paths...)) != len(tt.paths) {
				t.Errorf("POST %s: %d %s, %d pieces, effects %v", tt.path, re.StatusCode, re.Body, db.pieces(t), w.Provider.Effects())
			}
			var o Order
			if tt.state == "" {
				return
			}
			if err := jsonOf(re, &o); err != nil {
				t.Fatal(err)
			}
			get := request{RawPath: "/orders/" + o.ID}
			get.RequestContext.HTTP.Method = "GET"
			shown, err := db.shop(w).Handle(context.Background(), get)
			if err != nil || shown.StatusCode != 200 || jsonOf(shown, &o) != nil || o.State != tt.state {
				t.Errorf("GET: %d %s, %v", shown.StatusCode, shown.Body, err)
			}
		}, func(o *idemtest.CrashOptions) {
			o.Store = func() store.Store { db.fill(t); return db.records }
			if tt.fates != nil {
				o.Begin = func(w *idemtest.World) { w.Provider.Next(tt.fates...) }
			}
		})
	}
}
