package dynamo_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/dynamo"
)

// The table is defined twice, for tests and for an account: they must agree.
func TestTemplateDefinesTheSameTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../deploy/samekey.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type attribute struct{ AttributeName, AttributeType, KeyType string }
	type index struct {
		IndexName  string
		KeySchema  []attribute
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
	type definition struct {
		AttributeDefinitions    []attribute
		KeySchema               []attribute
		BillingMode             string
		GlobalSecondaryIndexes  []index
		TimeToLiveSpecification struct {
			AttributeName string
			Enabled       bool
		}
		StreamSpecification struct{ StreamViewType string }
	}
	var template struct {
		Resources struct {
			Table struct {
				Type       string
				Properties struct {
					definition
					PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
					SSESpecification                 struct{ SSEEnabled bool }
				}
			}
		}
	}
	var loose any // JSON matches field names without tags
	if err := yaml.Unmarshal(raw, &loose); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(loose); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &template); err != nil {
		t.Fatal(err)
	}
	if got := template.Resources.Table.Type; got != "AWS::DynamoDB::Table" {
		t.Fatalf("Resources.Table has type %q", got)
	}
	props := template.Resources.Table.Properties
	if !props.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled || !props.SSESpecification.SSEEnabled {
		t.Error("the template's table has no point-in-time recovery or no encryption")
	}

	in, ttl := dynamo.CreateTableInput("x"), dynamo.TimeToLiveInput("x")
	var want definition
	for _, a := range in.AttributeDefinitions {
		want.AttributeDefinitions = append(want.AttributeDefinitions, attribute{AttributeName: aws.ToString(a.AttributeName), AttributeType: string(a.AttributeType)})
	}
	keys := func(schema []types.KeySchemaElement) (all []attribute) {
		for _, k := range schema {
			all = append(all, attribute{AttributeName: aws.ToString(k.AttributeName), KeyType: string(k.KeyType)})
		}
		return all
	}
	want.KeySchema = keys(in.KeySchema)
	for _, gsi := range in.GlobalSecondaryIndexes {
		one := index{IndexName: aws.ToString(gsi.IndexName), KeySchema: keys(gsi.KeySchema)}
		one.Projection.ProjectionType, one.Projection.NonKeyAttributes = string(gsi.Projection.ProjectionType), gsi.Projection.NonKeyAttributes
		want.GlobalSecondaryIndexes = append(want.GlobalSecondaryIndexes, one)
	}
	want.BillingMode = string(in.BillingMode)
	want.TimeToLiveSpecification.AttributeName = aws.ToString(ttl.TimeToLiveSpecification.AttributeName)
	want.TimeToLiveSpecification.Enabled = aws.ToBool(ttl.TimeToLiveSpecification.Enabled)
	if !aws.ToBool(in.StreamSpecification.StreamEnabled) {
		t.Error("the table has no stream")
	}
	want.StreamSpecification.StreamViewType = string(in.StreamSpecification.StreamViewType)
	if diff := cmp.Diff(want, props.definition); diff != "" {
		t.Errorf("samekey.yaml differs from CreateTableInput (-code +template):\n%s", diff)
	}
}
