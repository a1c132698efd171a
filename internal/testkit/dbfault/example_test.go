package dbfault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
)

// The put is applied, but its answer is lost; the client can't tell this from
// a put that never arrived.
func ExampleTransport() {
	puts := 0
	// In a test this is db := dynamotest.Start(t).
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		puts++
		fmt.Fprint(w, "{}")
	}))
	defer srv.Close()
	db := &dynamotest.DB{Endpoint: srv.URL}

	tr := &dbfault.Transport{Fault: func(op string, n int) dbfault.Fault {
		if op == "PutItem" && n == 1 {
			return dbfault.LoseAnswer
		}
		return nil
	}}
	client := db.Client(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr} })

	for range 2 {
		_, err := client.PutItem(context.Background(), &dynamodb.PutItemInput{
			TableName: aws.String("orders"),
			Item:      map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
		})
		fmt.Println("answer lost:", errors.Is(err, syscall.ECONNRESET))
	}
	fmt.Println("puts applied:", puts, "requests:", tr.Calls())
	// Output:
	// answer lost: true
	// answer lost: false
	// puts applied: 2 requests: map[PutItem:2]
}
