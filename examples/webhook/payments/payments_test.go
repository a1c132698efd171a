package payments_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/examples/webhook/payments"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/webhook"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const secret = "whsec_test"

func endpoint(t *testing.T, st store.Store, table string) *webhook.Handler {
	t.Helper()
	v, err := webhook.NewStripe(secret)
	if err != nil {
		t.Fatal(err)
	}
	return webhook.New(st, "stripe", v, payments.Recorder{Table: table}.Handle)
}

func signature(body string) string {
	return stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: secret}).Header
}

func paid(event, intent string, amount int) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":"payment_intent.succeeded","created":1800000000,"pending_webhooks":%d,`+
		`"data":{"object":{"id":%q,"object":"payment_intent","amount_received":%d,"currency":"usd"}}}`, event, rand.Text()[0], intent, amount)
}

func refunded(event, intent string, amount int) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":"charge.refunded","created":1800000001,`+
		`"data":{"object":{"id":"ch_1","object":"charge","payment_intent":%q,"amount_refunded":%d}}}`, event, intent, amount)
}

// post sends a signed event over HTTP.
func post(t *testing.T, srv *httptest.Server, body string) (status int, duplicate bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(webhook.StripeHeader, signature(body))
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get(idem.ReplayedHeader) == "true"
}

func TestEventsOverHTTP(t *testing.T) {
	t.Parallel()
	store := &idem.MemoryStore{}
	srv := httptest.NewServer(endpoint(t, store, "payments"))
	t.Cleanup(srv.Close)
	for i, tc := range []struct {
		body      string
		status    int
		duplicate bool
	}{
		{paid("evt_1", "pi_1", 2000), 200, false},
		{paid("evt_1", "pi_1", 2000), 200, true},
		{refunded("evt_2", "pi_1", 500), 200, false},
		{`{"id":"evt_3","type":"invoice.created","data":{"object":{}}}`, 200, false},
		{`{"id":"evt_3","type":"invoice.created","data":{"object":{}}}`, 200, true},
		{`{"id":"evt_4","type":"payment_intent.succeeded","data":{"object":{}}}`, 500, false}, // comes again, until a fix is deployed
		{`{"id":"evt_4","type":"payment_intent.succeeded","data":{"object":{}}}`, 500, false},
	} {
		if status, duplicate := post(t, srv, tc.body); status != tc.status || duplicate != tc.duplicate {
			t.Errorf("delivery %d: got %d, duplicate %t, want %d, %t", i+1, status, duplicate, tc.status, tc.duplicate)
		}
	}
	if n := len(store.Writes()); n != 2 {
		t.Errorf("%d writes, want 2: %v", n, store.Writes())
	}
	jobs := 0
	for _, r := range store.Records() {
		for _, j := range r.Jobs {
			jobs++
			if j.Kind != "send_receipt" || string(j.Args) != `{"payment":"pi_1","amount":2000,"currency":"usd"}` {
				t.Errorf("job %s %s", j.Kind, j.Args)
			}
		}
	}
	if jobs != 1 {
		t.Errorf("%d receipts are staged, want 1", jobs)
	}
}

// On DynamoDB: a refund that comes before its payment, refunds in the wrong
// order, and 20 deliveries of one event at once.
func TestEventsOnDynamoDB(t *testing.T) {
	t.Parallel()
	client := dynamotest.Start(t).Client(dynamo.Tune)
	name := rand.Text()
	records, table := "records-"+name, "payments-"+name
	app := &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	}
	for _, in := range []*dynamodb.CreateTableInput{dynamo.CreateTableInput(records), app} {
		if _, err := client.CreateTable(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	store, err := dynamo.New(client, records)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(endpoint(t, store, table))
	t.Cleanup(srv.Close)

	deliver := func(body string, duplicate bool) {
		t.Helper()
		if status, again := post(t, srv, body); status != 200 || again != duplicate {
			t.Errorf("got %d, duplicate %t, want 200, %t", status, again, duplicate)
		}
	}
	deliver(refunded("evt_3", "pi_1", 700), false)
	deliver(refunded("evt_2", "pi_1", 500), false) // older
	deliver(refunded("evt_2", "pi_1", 500), true)

	var wg sync.WaitGroup
	var mu sync.Mutex
	first := 0
	for range 20 {
		wg.Go(func() {
			body := paid("evt_1", "pi_1", 2000)
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
				status, duplicate := post(t, srv, body)
				if status == http.StatusConflict {
					continue // as the provider does, but at once
				}
				if status != 200 {
					t.Errorf("got %d", status)
				}
				if !duplicate {
					mu.Lock()
					first++
					mu.Unlock()
				}
				return
			}
			t.Error("still refused after 30 s")
		})
	}
	wg.Wait()
	if first != 1 {
		t.Errorf("%d deliveries were handled, want 1", first)
	}

	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "pi_1"}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got payments.Payment
	if err := attributevalue.UnmarshalMap(out.Item, &got); err != nil {
		t.Fatal(err)
	}
	want := payments.Payment{ID: "pi_1", Amount: 2000, Currency: "usd", PaidAt: 1_800_000_000, Refunded: 700}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the payment (-want +got):\n%s", diff)
	}
}
