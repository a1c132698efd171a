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

// describeEvery is the interval at which watch looks for new shards. In addition, watch
// looks whenever a shard ends.
const describeEvery = time.Second

// shardTree holds the shards of a stream, and decides which shards may be read. Each shard
// is read once. A child waits until its parent is read to the end, so that the records of an
// item stay in order across a split.
type shardTree struct {
	mu      sync.Mutex
	parents map[string]string // each listed shard's parent; "" for none
	started map[string]bool
	done    map[string]bool
}

func newShardTree() *shardTree {
	return &shardTree{parents: map[string]string{}, started: map[string]bool{}, done: map[string]bool{}}
}

// shardTree.list stores a complete listing of the stream's shards, and returns the
// shards whose reading can begin now.
func (t *shardTree) list(shards []types.Shard) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.parents)
	for _, s := range shards {
		t.parents[aws.ToString(s.ShardId)] = aws.ToString(s.ParentShardId)
	}
	for id := range t.done {
		if _, listed := t.parents[id]; !listed {
			delete(t.done, id)
			delete(t.started, id)
		}
	}
	return t.ready(shards)
}

// shardTree.ready returns the shards whose reading can begin, in the order of the
// listing, and marks them as started. A shard waits until its parent is done. An
// unlisted parent has no records left in the stream, so the shard waits for it only
// while it is being read.
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

// shardTree.finish marks a shard as done: it was read to the end, and none of its
// records waits for delivery.
func (t *shardTree) finish(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[id] = true
}

// shardTree.pass marks a shard as done without reading it.
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
