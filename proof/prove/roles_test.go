package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/proof/prove/fault"
)

// A denied call fails the claim, but not the one that the store goes on without; where nothing was done, nothing
// is shown.
func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t).Client()
	p := &Place{DB: db, Rides: "roles-rides", Audit: "roles-audit", Provider: "roles-provider", meter: &meter{}}
	for _, table := range []string{p.Rides, p.Audit, p.Provider} {
		if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	claims := roles()
	for _, step := range []struct {
		table, id, figure string
		want              Status
	}{
		{p.Audit, "a", "", NotShown},
		{p.Rides, "ride", "1 rides, 0 denied calls", Passed},
		{p.Provider, fault.Denied + "api dynamodb " + expected, "1 rides, 0 denied calls", Passed},
		{p.Provider, fault.Denied + "receipts dynamodb DynamoDB_20120810.PutItem", "", Failed},
	} {
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &step.table, Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: step.id}}}); err != nil {
			t.Fatal(err)
		}
		figure, err := claims[1].Examine(t.Context(), p)
		if r := claims[1].judge(p, figure, err); r.Name != "roles.enough" || r.Status != step.want || r.Figure != step.figure || r.Status == Passed && !claims[1].figure().MatchString(r.Figure) {
			t.Errorf("with %s: %+v", step.id, r)
		}
	}
}
