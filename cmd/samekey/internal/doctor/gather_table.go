package doctor

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/item"
)

// askTable asks about the table and its settings, and for a sample of its items. It returns an
// error only if the table doesn't exist or can't be reached.
func (f *Facts) askTable(ctx context.Context, api DynamoDB) error {
	name := &f.Options.Table
	out, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: name})
	switch {
	case notFound(err):
		return fmt.Errorf("no table %s in this account and Region", *name)
	case denied(err), unreadable(err):
		f.miss(DescribeTable, reason(err))
		f.miss(ServerClock, reason(err))
	case err != nil:
		return fmt.Errorf("the table %s can't be read: %s", *name, reason(err))
	default:
		f.Table = out.Table
		server, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
		if got, also := awsmiddleware.GetResponseAt(out.ResultMetadata); ok && also && !server.IsZero() {
			f.Skew = got.Sub(server)
		} else {
			f.miss(ServerClock, "DynamoDB's answers have no Date header")
		}
	}
	if ttl, err := api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name}); err != nil {
		f.miss(DescribeTTL, reason(err))
	} else {
		f.TTL = ttl.TimeToLiveDescription
	}
	backups, err := api.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: name})
	switch {
	case err != nil:
		f.miss(DescribeBackup, reason(err))
	case backups.ContinuousBackupsDescription != nil && backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription != nil:
		f.Recovery = backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled
	}
	sample, err := api.Scan(ctx, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(int32(f.Options.Sample))})
	if err != nil {
		f.miss(ScanTable, reason(err))
		if denied(err) {
			f.Refused[ScanTable] = reason(err)
		}
		return nil
	}
	for _, it := range sample.Items {
		rec, err := item.Read(it)
		switch {
		case err != nil:
			f.Unread = append(f.Unread, err.Error())
		case rec != nil:
			f.Sample = append(f.Sample, rec)
		}
	}
	return nil
}

// nobody is a partition key that no record has, because records' keys begin with v1#.
const nobody = "samekey#doctor"

// Facts.try makes the calls that the roles need, except Scan. The calls change nothing,
// because the conditions of the writes can't be true.
func (f *Facts) try(ctx context.Context, api DynamoDB) {
	name := &f.Options.Table
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: nobody}}
	never := aws.String("attribute_exists(pk) AND attribute_not_exists(pk)")
	note := func(s Source, err error) {
		switch {
		case denied(err):
			f.Refused[s] = reason(err)
		case err != nil && code(err) != "ConditionalCheckFailedException":
			f.miss(s, reason(err))
		}
	}
	_, err := api.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: key})
	note(TryGet, err)
	_, err = api.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key, ConditionExpression: never})
	note(TryPut, err)
	_, err = api.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: key, ConditionExpression: never})
	note(TryUpdate, err)
	for _, index := range dynamo.CreateTableInput(*name).GlobalSecondaryIndexes {
		_, err = api.Query(ctx, &dynamodb.QueryInput{
			TableName: name, IndexName: index.IndexName, Limit: aws.Int32(1),
			KeyConditionExpression:    aws.String("#k = :k"),
			ExpressionAttributeNames:  map[string]string{"#k": aws.ToString(index.KeySchema[0].AttributeName)},
			ExpressionAttributeValues: map[string]types.AttributeValue{":k": &types.AttributeValueMemberS{Value: nobody}},
		})
		note(TryQuery, err)
	}
}
