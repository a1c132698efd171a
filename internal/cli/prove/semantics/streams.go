package semantics

import (
	"context"
	"errors"
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
	ctx, cancel := context.WithTimeout(ctx, p.Settles)
	defer cancel()
	for {
		done, err := look()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			return differs("%s within %s", what, p.Settles)
		case <-time.After(pause):
		}
	}
}

func sparseIndex(ctx context.Context, p *probe) (string, error) {
	const index = "waiting"
	in := dynamo.CreateTableInput(p.Table)
	if got := aws.ToString(in.GlobalSecondaryIndexes[0].IndexName); got != index {
		return "", fmt.Errorf("the index is named %s", got)
	}
	listed := func() (int, error) {
		out, err := p.DB.Query(ctx, &dynamodb.QueryInput{
			TableName: &p.Table, IndexName: aws.String(index), KeyConditionExpression: aws.String("waits = :w"),
			ExpressionAttributeValues: item{":w": str(p.run)},
		})
		if err != nil {
			return 0, err
		}
		return len(out.Items), nil
	}
	is := func(n int) func() (bool, error) {
		return func() (bool, error) {
			got, err := listed()
			return got == n, err
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
	next := map[string]*string{}
	known := map[string]bool{}
	pk := textOf(p.of(name)["pk"])
	look := func() (bool, error) {
		stream, err := p.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
		if err != nil {
			return false, err
		}
		for _, shard := range stream.StreamDescription.Shards {
			id := aws.ToString(shard.ShardId)
			if known[id] {
				continue
			}
			it, err := p.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
				StreamArn: arn, ShardId: &id, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
			})
			if err != nil {
				return false, err
			}
			known[id], next[id] = true, it.ShardIterator
		}
		for id, at := range next {
			out, err := p.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: at})
			if err != nil {
				return false, err
			}
			for _, r := range out.Records {
				if key, ok := r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS); ok && key.Value == pk {
					of = append(of, change{string(r.EventName), verOf(r.Dynamodb.OldImage), verOf(r.Dynamodb.NewImage)})
				}
			}
			if next[id] = out.NextShardIterator; out.NextShardIterator == nil {
				delete(next, id)
			}
		}
		return len(of) > 0 && of[len(of)-1].new == last, nil
	}
	return of, p.until(ctx, "the stream hasn't the last write", look)
}

func verOf(it map[string]streamtypes.AttributeValue) string {
	if n, ok := it["ver"].(*streamtypes.AttributeValueMemberN); ok {
		return n.Value
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
