package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/item"
)

// CreateTableInput returns the table's definition, with the layout that samekey.yaml
// has. The definition lacks deletion protection, point-in-time recovery and encryption,
// which only samekey.yaml adds. The definition also lacks TTL for the attribute exp_s,
// because TTL needs another call, which [CreateTable] makes.
func CreateTableInput(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: &table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(item.AttrPK), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(item.AttrWait), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(item.AttrSince), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema:   []types.KeySchemaElement{{AttributeName: aws.String(item.AttrPK), KeyType: types.KeyTypeHash}},
		BillingMode: types.BillingModePayPerRequest,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(item.WaitIndex),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(item.AttrWait), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String(item.AttrSince), KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: slices.Clone(item.WaitProjected)},
		}},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
}

// timeToLive returns the call that turns on the table's TTL, as in samekey.yaml.
func timeToLive(table string) *dynamodb.UpdateTimeToLiveInput {
	return &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(item.AttrExpires), Enabled: aws.Bool(true)},
	}
}

// CreateTable makes the table for tests and local runs, and returns when the table is
// usable. If a table of that name exists, CreateTable leaves it unchanged, and doesn't
// wait for it. In an AWS account use samekey.yaml (docs/operate/deploying.md), which
// also protects the table.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.CreateTable(ctx, CreateTableInput(table))
	if _, ok := errors.AsType[*types.ResourceInUseException](err); ok {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dynamo: create table %s: %w", table, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 20 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
		return fmt.Errorf("dynamo: create table %s: %w", table, err)
	}
	if _, err := client.UpdateTimeToLive(ctx, timeToLive(table)); err != nil {
		return fmt.Errorf("dynamo: turn on TTL of %s: %w", table, err)
	}
	return nil
}
