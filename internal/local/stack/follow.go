package stack

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// ErrNoStream matches the error of [Stack.Follow] if the table has no stream.
var ErrNoStream = errors.New("the table has no stream")

// Database returns a client of the stack's database; nil for a template without tables.
func (s *Stack) Database() *dynamodb.Client {
	if s.db == nil {
		return nil
	}
	return s.db.client
}

// Follow reads the stream of [Ready.Table] until ctx ends. It calls started() once,
// when it has begun to read. It calls changed() for each batch, with the partition keys
// of the written items; the first of these calls may come before started(). Calls of
// changed() for the same shard don't overlap. Follow has no effect on the functions
// that read the stream.
func (s *Stack) Follow(ctx context.Context, started func(), changed func(pks []string)) error {
	table, err := s.db.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.ready.Table})
	if err != nil {
		return err
	}
	arn := aws.ToString(table.Table.LatestStreamArn)
	if arn == "" {
		return ErrNoStream
	}
	m, err := eventsource.Stream{
		Function: lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
			pks, err := keysOf(payload)
			if err == nil {
				changed(pks)
			}
			return nil, err
		}),
		API: s.db.streams, ARN: arn, StartingPosition: eventsource.Latest, BatchSize: 1000, MaximumRetryAttempts: new(0), Logger: s.log,
	}.Start(ctx)
	if err != nil {
		return err
	}
	started()
	<-ctx.Done()
	return m.Close()
}

// keysOf returns the partition keys in a batch, each once.
func keysOf(payload []byte) (pks []string, err error) {
	var batch struct {
		Records []struct {
			DynamoDB struct {
				Keys struct{ PK struct{ S string } }
			}
		}
	}
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, r := range batch.Records {
		if pk := r.DynamoDB.Keys.PK.S; pk != "" && !seen[pk] {
			seen[pk] = true
			pks = append(pks, pk)
		}
	}
	return pks, nil
}
