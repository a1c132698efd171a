package semantics

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/samekey/samekey/dynamo"
)

// settles is the default of [Place.Settles].
const settles = 20 * time.Second

// pause is between two looks at an index or a stream.
const pause = 200 * time.Millisecond

// until calls look until it is done.
func (p *probe) until(ctx context.Context, what string, look func() (done bool, err error)) error {
	for began := time.Now(); ; {
		done, err := look()
		if err != nil || done {
			return err
		}
		if time.Since(began) >= p.Settles {
			return differs("%s within %s", what, p.Settles)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func sparseIndex(ctx context.Context, p *probe) (string, error) {
	index := dynamo.CreateTableInput(p.Table).GlobalSecondaryIndexes[0].IndexName
	is := func(n int) func() (bool, error) {
		return func() (bool, error) {
			out, err := p.DB.Query(ctx, &dynamodb.QueryInput{
				TableName: &p.Table, IndexName: index, KeyConditionExpression: aws.String("waits = :w"),
				ExpressionAttributeValues: item{":w": str(p.run)},
			})
			if err != nil {
				return false, err
			}
			return len(out.Items) == n, nil
		}
	}
	if _, err := p.put(ctx, p.of("a", "waits", str(p.run), "wait_ms", num(1)), ""); err != nil {
		return "", err
	}
	if _, err := p.put(ctx, p.of("b"), ""); err != nil {
		return "", err
	}
	began := time.Now()
	if err := p.until(ctx, "the index hasn't the item", is(1)); err != nil {
		return "", err
	}
	took := time.Since(began)
	if _, err := p.update(ctx, "a", "REMOVE waits, wait_ms", "", nil); err != nil {
		return "", err
	}
	return fmt.Sprintf("there after %d ms", took.Milliseconds()), p.until(ctx, "the index still has the item", is(0))
}

// change is what the stream says of an item.
type change struct{ kind, old, new string }

// changes reads the stream until it has the change of an item to the version last, and
// returns all of that item.
func (p *probe) changes(ctx context.Context, name, last string) (of []change, err error) {
	about, err := p.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &p.Table})
	if err != nil {
		return nil, err
	}
	arn := about.Table.LatestStreamArn
	next := map[string]*string{} // by shard; nil: read to its end
	pk := textOf(p.of(name)["pk"])
	look := func() (bool, error) {
		stream, err := p.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
		if err != nil {
			return false, err
		}
		open := map[string]bool{}
		for _, shard := range stream.StreamDescription.Shards {
			id := aws.ToString(shard.ShardId)
			at, known := next[id]
			open[id] = !known || at != nil
		}
		for _, shard := range stream.StreamDescription.Shards {
			id := aws.ToString(shard.ShardId)
			if !open[id] || open[aws.ToString(shard.ParentShardId)] { // an item's changes go on in a child of its shard
				continue
			}
			if next[id] == nil {
				it, err := p.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
					StreamArn: arn, ShardId: &id, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
				})
				if err != nil {
					return false, err
				}
				next[id] = it.ShardIterator
			}
			out, err := p.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next[id]})
			if err != nil {
				return false, err
			}
			for _, r := range out.Records {
				if d := r.Dynamodb; streamed(d.Keys["pk"]) == pk {
					of = append(of, change{string(r.EventName), streamed(d.OldImage["ver"]), streamed(d.NewImage["ver"])})
				}
			}
			next[id] = out.NextShardIterator
		}
		return len(of) > 0 && of[len(of)-1].new == last, nil
	}
	err = p.until(ctx, "the stream hasn't the last write", look)
	return of, err
}

// streamed is the text of an attribute in the stream; "" if it isn't there.
func streamed(v streamtypes.AttributeValue) string {
	switch v := v.(type) {
	case *streamtypes.AttributeValueMemberS:
		return v.Value
	case *streamtypes.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

const updates = 40

func streamOrder(ctx context.Context, p *probe) (string, error) {
	for i := range updates {
		if _, err := p.put(ctx, p.of("a", "ver", num(i)), ""); err != nil {
			return "", err
		}
	}
	got, err := p.changes(ctx, "a", strconv.Itoa(updates-1))
	if err != nil {
		return "", err
	}
	if len(got) != updates {
		return "", differs("%d changes, not %d", len(got), updates)
	}
	for i, c := range got {
		expected := change{"MODIFY", strconv.Itoa(i - 1), strconv.Itoa(i)}
		if i == 0 {
			expected = change{"INSERT", "", "0"}
		}
		if c != expected {
			return "", differs("change %d is %v, not %v", i, c, expected)
		}
	}
	return fmt.Sprintf("%d changes", updates), nil
}

func streamOfChanges(ctx context.Context, p *probe) (string, error) {
	_, err1 := p.transact(ctx, "", p.putIn(p.of("a", "ver", num(1)), ""), p.putIn(p.of("b", "ver", num(1)), ""))
	_, err2 := p.put(ctx, p.of("a", "ver", num(1)), "")
	if err := first(err1, err2); err != nil {
		return "", err
	}
	_, err := p.transact(ctx, "", p.putIn(p.of("a", "ver", num(9)), ""), p.putIn(p.of("b"), fresh))
	if _, err := cancelled(err); err != nil {
		return "", err
	}
	if _, err := p.put(ctx, p.of("a", "ver", num(2)), ""); err != nil {
		return "", err
	}
	if _, err := p.put(ctx, p.of("b", "ver", num(2)), ""); err != nil {
		return "", err
	}
	for _, name := range []string{"a", "b"} {
		got, err := p.changes(ctx, name, "2")
		if err != nil {
			return "", err
		}
		expected := []change{{"INSERT", "", "1"}, {"MODIFY", "1", "2"}}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			return "", differs("%s has the changes %v, not %v", name, got, expected)
		}
	}
	return "", nil
}
