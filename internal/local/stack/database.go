package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/mendstream"
)

const (
	envDynamoDB = "AWS_ENDPOINT_URL_DYNAMODB"
	envStreams  = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"
)

// database is DynamoDB Local, or the database at the endpoint that the caller provides.
type database struct {
	url, streamsURL string
	client          *dynamodb.Client
	streams         *dynamodbstreams.Client
	http            *http.Client
	db              *dynamotest.DB
}

// openDatabase finds or starts a database; see [dynamotest.Find].
func openDatabase(ctx context.Context, id identity) (*database, error) {
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return nil, err
	}
	d := &database{db: db, url: db.Endpoint, streamsURL: db.Endpoint, http: &http.Client{Transport: &http.Transport{}}}
	if given := os.Getenv(envDynamoDB); given != "" {
		d.url, d.streamsURL = given, given
		if streams := os.Getenv(envStreams); streams != "" {
			d.streamsURL = streams
		}
	}
	d.client = dynamodb.New(dynamodb.Options{BaseEndpoint: &d.url, Region: id.region, Credentials: id, HTTPClient: d.http})
	d.streams = dynamodbstreams.New(dynamodbstreams.Options{
		BaseEndpoint: &d.streamsURL, Region: id.region, Credentials: id,
		HTTPClient: &http.Client{Transport: mendstream.Transport(d.http.Transport)},
	})
	return d, nil
}

func (d *database) environ() []string {
	return []string{envDynamoDB + "=" + d.url, envStreams + "=" + d.streamsURL}
}

func (d *database) close() error {
	d.http.CloseIdleConnections()
	return d.db.Close()
}

// database.create makes a table, or uses the existing table of that name. It returns
// the ARNs of the table and of its stream ("" without a stream).
func (d *database) create(ctx context.Context, table sam.Table, ttl bool, log *slog.Logger) (arn, stream string, err error) {
	_, err = d.client.CreateTable(ctx, createTableInput(table))
	if _, there := errors.AsType[*types.ResourceInUseException](err); there {
		log.InfoContext(ctx, "the table already exists and is used with its items", "table", table.Name)
	} else if err != nil {
		return "", "", fmt.Errorf("create table %s: %w", table.Name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(d.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 20 * time.Millisecond })
	out, err := waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &table.Name}, time.Minute)
	if err != nil {
		return "", "", fmt.Errorf("create table %s: %w", table.Name, err)
	}
	if err := sameTable(table, out.Table); err != nil {
		return "", "", fmt.Errorf("table %s already exists and differs: %w; choose another --stack-name", table.Name, err)
	}
	if ttl && table.TTL != "" {
		if err := d.enableTTL(ctx, table); err != nil {
			return "", "", err
		}
	}
	return aws.ToString(out.Table.TableArn), aws.ToString(out.Table.LatestStreamArn), nil
}

func (d *database) enableTTL(ctx context.Context, table sam.Table) error {
	now, err := d.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table.Name})
	if err == nil && now.TimeToLiveDescription != nil && now.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		return nil // TTL is on already, and DynamoDB would refuse to enable it again
	}
	_, err = d.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &table.TTL, Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("turn on TTL of %s: %w", table.Name, err)
	}
	return nil
}

func createTableInput(table sam.Table) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &table.Name, KeySchema: keySchema(table.Key), BillingMode: types.BillingModePayPerRequest}
	for _, a := range table.Attributes {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: &a.Name, AttributeType: types.ScalarAttributeType(a.Type),
		})
	}
	for _, i := range table.Global {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &i.Name, KeySchema: keySchema(i.Key), Projection: projection(i),
		})
	}
	for _, i := range table.Local {
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: &i.Name, KeySchema: keySchema(i.Key), Projection: projection(i),
		})
	}
	if table.StreamView != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(table.StreamView)}
	}
	return in
}

func keySchema(key []sam.Key) []types.KeySchemaElement {
	out := make([]types.KeySchemaElement, 0, len(key))
	for _, k := range key {
		out = append(out, types.KeySchemaElement{AttributeName: &k.Attribute, KeyType: types.KeyType(k.Role)})
	}
	return out
}

func projection(i sam.Index) *types.Projection {
	return &types.Projection{ProjectionType: types.ProjectionType(i.Projection), NonKeyAttributes: i.NonKey}
}

// sameTable returns an error if the key or the stream of an existing table differs from
// the template. The error names the difference.
func sameTable(want sam.Table, got *types.TableDescription) error {
	key := make([]sam.Key, 0, len(got.KeySchema))
	for _, k := range got.KeySchema {
		key = append(key, sam.Key{Attribute: aws.ToString(k.AttributeName), Role: string(k.KeyType)})
	}
	view := ""
	if s := got.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		view = string(s.StreamViewType)
	}
	switch {
	case !slices.Equal(key, want.Key):
		return fmt.Errorf("the key is %v, not %v", key, want.Key)
	case view != want.StreamView:
		return fmt.Errorf("the stream is %q, not %q", view, want.StreamView)
	default:
		return nil
	}
}
