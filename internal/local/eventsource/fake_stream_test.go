package eventsource_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/samekey/samekey/internal/local/eventsource"
)

const streamARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/rides/stream/2026-11-21T10:00:00.000"

// fakeStream is a stream whose shards a test makes, closes and trims. Its
// iterators are places, good for fifteen minutes.
type fakeStream struct {
	mu       sync.Mutex
	shards   []*fakeShard
	sequence int
	pageSize int // of DescribeStream; 0: all
	// fail is asked before each call, with the count of calls of the operation
	// from 1 on.
	fail  func(op string, n int) error
	calls map[string]int
	// taken has the type of each iterator.
	taken []string
}

type fakeShard struct {
	id, parent string
	records    []types.Record
	trimmed    int // how many of the records are no more
	closed     bool
}

var _ eventsource.StreamAPI = (*fakeStream)(nil)

func newFakeStream(shards ...string) *fakeStream {
	s := &fakeStream{calls: map[string]int{}}
	for _, id := range shards {
		s.open(id, "")
	}
	return s
}

func (s *fakeStream) open(id, parent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards = append(s.shards, &fakeShard{id: id, parent: parent})
}

func (s *fakeStream) shard(id string) *fakeShard {
	for _, shard := range s.shards {
		if shard.id == id {
			return shard
		}
	}
	return nil
}

func (s *fakeStream) close(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shard(id).closed = true
}

// trim removes the first n records of a shard.
func (s *fakeStream) trim(id string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shard(id).trimmed = n
}

// forget removes a shard.
func (s *fakeStream) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, shard := range s.shards {
		if shard.id == id {
			s.shards = append(s.shards[:i:i], s.shards[i+1:]...)
			return
		}
	}
}

// put writes items with these keys. Sequence numbers grow by one for each.
func (s *fakeStream) put(id string, keys ...string) {
	for _, key := range keys {
		s.write(id, func(r *types.Record) {
			image := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
			r.Dynamodb.Keys, r.Dynamodb.NewImage = image, image
		})
	}
}

// write appends a record that change may change.
func (s *fakeStream) write(id string, change func(*types.Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	r := types.Record{
		AwsRegion:    aws.String("eu-west-1"),
		EventID:      aws.String(fmt.Sprintf("event-%d", s.sequence)),
		EventName:    types.OperationTypeInsert,
		EventSource:  aws.String("aws:dynamodb"),
		EventVersion: aws.String("1.1"),
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(time.Now().Truncate(time.Second)),
			SequenceNumber:              aws.String(strconv.Itoa(s.sequence)),
			SizeBytes:                   aws.Int64(10),
			StreamViewType:              types.StreamViewTypeNewAndOldImages,
		},
	}
	change(&r)
	shard := s.shard(id)
	shard.records = append(shard.records, r)
}

// failWith sets what is asked before each call from now on; it may read the
// stream, but not call it.
func (s *fakeStream) failWith(fail func(op string, n int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// begin counts a call and returns the error that it is to fail with.
func (s *fakeStream) begin(op string) error {
	s.calls[op]++
	if s.fail == nil {
		return nil
	}
	return s.fail(op, s.calls[op])
}

func (s *fakeStream) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

func (s *fakeStream) iteratorTypes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.taken...)
}

func (s *fakeStream) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("DescribeStream"); err != nil {
		return nil, err
	}
	if aws.ToString(in.StreamArn) != streamARN {
		return nil, &types.ResourceNotFoundException{Message: aws.String("no such stream")}
	}
	out := &types.StreamDescription{StreamArn: in.StreamArn}
	from := 0
	for i, shard := range s.shards {
		if shard.id == aws.ToString(in.ExclusiveStartShardId) {
			from = i + 1
		}
	}
	for _, shard := range s.shards[from:] {
		if s.pageSize > 0 && len(out.Shards) == s.pageSize {
			out.LastEvaluatedShardId = out.Shards[len(out.Shards)-1].ShardId
			break
		}
		described := types.Shard{ShardId: aws.String(shard.id)}
		if shard.parent != "" {
			described.ParentShardId = aws.String(shard.parent)
		}
		out.Shards = append(out.Shards, described)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: out}, nil
}

func (s *fakeStream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("GetShardIterator"); err != nil {
		return nil, err
	}
	shard := s.shard(aws.ToString(in.ShardId))
	if shard == nil {
		return nil, &types.ResourceNotFoundException{Message: aws.String("no such shard")}
	}
	at := shard.trimmed
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeLatest:
		at = len(shard.records)
	case types.ShardIteratorTypeAfterSequenceNumber:
		for i, r := range shard.records {
			if *r.Dynamodb.SequenceNumber == *in.SequenceNumber {
				at = i + 1
				if i < shard.trimmed {
					return nil, &types.TrimmedDataAccessException{Message: aws.String("trimmed")}
				}
			}
		}
	default:
	}
	s.taken = append(s.taken, string(in.ShardIteratorType))
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: iterator(shard.id, at)}, nil
}

func iterator(id string, at int) *string {
	return aws.String(fmt.Sprintf("%s@%d@%d", id, at, time.Now().UnixNano()))
}

func (s *fakeStream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("GetRecords"); err != nil {
		return nil, err
	}
	parts := strings.Split(*in.ShardIterator, "@")
	at, _ := strconv.Atoi(parts[1])
	made, _ := strconv.ParseInt(parts[2], 10, 64)
	shard := s.shard(parts[0])
	switch {
	case shard == nil:
		return nil, &types.ResourceNotFoundException{Message: aws.String("no such shard")}
	case time.Since(time.Unix(0, made)) > 15*time.Minute:
		return nil, &types.ExpiredIteratorException{Message: aws.String("expired")}
	case at < shard.trimmed:
		return nil, &types.TrimmedDataAccessException{Message: aws.String("trimmed")}
	}
	to := min(len(shard.records), at+int(*in.Limit))
	out := &dynamodbstreams.GetRecordsOutput{Records: shard.records[at:to]}
	if !shard.closed || to < len(shard.records) {
		out.NextShardIterator = iterator(shard.id, to)
	}
	return out, nil
}
