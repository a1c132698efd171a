//go:build unix

package killsweep_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queue is an SQS queue with a consumer: messages are delivered after their
// delay, and again where they were not taken.
type queue struct {
	consumer awslambda.Handler
	ctx      context.Context
	sent     atomic.Int64
	mu       sync.Mutex
	closed   bool
	wg       sync.WaitGroup
	hidden   sync.Map // changed visibility timeouts, by receipt
}

func newQueue(t *testing.T, consumer awslambda.Handler) *queue {
	t.Helper()
	q := &queue{}
	q.start(t, consumer)
	return q
}

func (q *queue) start(t *testing.T, consumer awslambda.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q.consumer, q.ctx = consumer, ctx
	t.Cleanup(func() {
		cancel()
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		q.wg.Wait()
	})
}

func (q *queue) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		m := events.SQSMessage{
			MessageId: strconv.FormatInt(q.sent.Add(1), 10), Body: aws.ToString(e.MessageBody),
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:queue",
			MessageAttributes: make(map[string]events.SQSMessageAttribute),
		}
		m.ReceiptHandle = m.MessageId
		for name, v := range e.MessageAttributes {
			m.MessageAttributes[name] = events.SQSMessageAttribute{DataType: aws.ToString(v.DataType), StringValue: v.StringValue}
		}
		q.mu.Lock()
		if !q.closed {
			q.wg.Go(func() { q.deliver(m, time.Duration(e.DelaySeconds)*time.Second) })
		}
		q.mu.Unlock()
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func (q *queue) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	q.hidden.Store(*in.ReceiptHandle, time.Duration(in.VisibilityTimeout)*time.Second)
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (*queue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

// deliver delivers a message until it is taken.
func (q *queue) deliver(m events.SQSMessage, delay time.Duration) {
	for {
		select {
		case <-q.ctx.Done():
			return
		case <-time.After(delay):
		}
		if q.take(m) {
			return
		}
		delay = time.Second // its visibility timeout
		if hidden, changed := q.hidden.LoadAndDelete(m.ReceiptHandle); changed {
			delay = hidden.(time.Duration)
		}
	}
}

func (q *queue) take(m events.SQSMessage) bool {
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{m}})
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(q.ctx, patience)
	defer cancel()
	out, err := q.consumer.Invoke(ctx, payload)
	var re events.SQSEventResponse
	return err == nil && json.Unmarshal(out, &re) == nil && len(re.BatchItemFailures) == 0
}
