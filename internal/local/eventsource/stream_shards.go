package eventsource

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// describeEvery is how often a stream is checked for new shards. The end of a shard
// is another occasion.
const describeEvery = time.Second

// shardTree knows the shards of a stream and which of them may be read: each once,
// and a child only when its parent has been read to the end, so that the records of
// an item stay in order across a split.
type shardTree struct {
	mu      sync.Mutex
	parents map[string]string // of all shards of the last listing; empty: none
	started map[string]bool
	done    map[string]bool
}

func newShardTree() *shardTree {
	return &shardTree{parents: map[string]string{}, started: map[string]bool{}, done: map[string]bool{}}
}

// list takes a complete listing and returns the shards to start now.
func (t *shardTree) list(shards []types.Shard) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.parents)
	for _, s := range shards {
		t.parents[aws.ToString(s.ShardId)] = aws.ToString(s.ParentShardId)
	}
	for id := range t.done {
		if _, listed := t.parents[id]; !listed {
			delete(t.done, id) // a day old, and no shard's parent any more
			delete(t.started, id)
		}
	}
	return t.ready(shards)
}

// ready marks as started, and returns in the order of the listing, the shards that
// aren't started and don't wait for a parent. A parent that is no longer listed has
// no records left to read.
func (t *shardTree) ready(shards []types.Shard) []string {
	var ids []string
	for _, s := range shards {
		id := aws.ToString(s.ShardId)
		parent := t.parents[id]
		_, listed := t.parents[parent]
		if t.started[id] || t.started[parent] && !t.done[parent] || listed && !t.done[parent] {
			continue
		}
		t.started[id] = true
		ids = append(ids, id)
	}
	return ids
}

// finish records that a shard has been read to the end and all of it delivered.
func (t *shardTree) finish(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[id] = true
}

// pass takes a shard that is not read for one that has been.
func (t *shardTree) pass(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started[id], t.done[id] = true, true
}

func (t *shardTree) listed(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.parents[id]
	return ok
}

// describe returns all shards of the stream.
func (s Stream) describe(ctx context.Context) ([]types.Shard, error) {
	var shards []types.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(s.ARN)}
	for {
		out, err := s.API.DescribeStream(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe stream %s: %w", s.ARN, err)
		}
		if out.StreamDescription == nil {
			return nil, fmt.Errorf("describe stream %s: no description", s.ARN)
		}
		shards = append(shards, out.StreamDescription.Shards...)
		in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
		if aws.ToString(in.ExclusiveStartShardId) == "" {
			return shards, nil
		}
	}
}
