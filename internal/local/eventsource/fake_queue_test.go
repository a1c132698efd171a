package eventsource_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/internal/local/eventsource"
)

const (
	queueURL = "http://127.0.0.1:9324/000000000000/jobs"
	queueARN = "arn:aws:sqs:eu-west-1:123456789012:jobs"
)

// fakeQueue is a queue with a visibility timeout of 30 s.
type fakeQueue struct {
	mu       sync.Mutex
	messages []*fakeMessage
	sent     int
	arrived  chan struct{} // closed by the next send
	fail     func(op string) error
	failOne  func(op string) bool // an entry of a call with a batch
	waits    []int32
	calls    map[string]int
}

type fakeMessage struct {
	types.Message
	visible  time.Time
	receives int
}

var _ eventsource.QueueAPI = (*fakeQueue)(nil)

func newFakeQueue() *fakeQueue {
	return &fakeQueue{arrived: make(chan struct{}), calls: map[string]int{}}
}

func (q *fakeQueue) send(bodies ...string) {
	for _, body := range bodies {
		q.mu.Lock()
		q.sent++
		id := strconv.Itoa(q.sent)
		q.mu.Unlock()
		q.add(types.Message{MessageId: aws.String("id-" + id), ReceiptHandle: aws.String("handle-" + id), Body: aws.String(body)})
	}
}

func (q *fakeQueue) add(m types.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, &fakeMessage{Message: m})
	close(q.arrived)
	q.arrived = make(chan struct{})
}

// left returns the bodies of what is in the queue, with how often they were
// received.
func (q *fakeQueue) left() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := map[string]int{}
	for _, m := range q.messages {
		left[*m.Body] = m.receives
	}
	return left
}

func (q *fakeQueue) count(op string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[op]
}

func (q *fakeQueue) begin(op string) error {
	q.calls[op]++
	if q.fail == nil {
		return nil
	}
	return q.fail(op)
}

func (q *fakeQueue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	q.waits = append(q.waits, in.WaitTimeSeconds)
	err := q.begin("ReceiveMessage")
	q.mu.Unlock()
	if err != nil {
		return nil, err
	}
	until := time.After(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		out, arrived := q.take(int(in.MaxNumberOfMessages))
		if len(out.Messages) > 0 || in.WaitTimeSeconds == 0 {
			return out, nil
		}
		select {
		case <-arrived:
		case <-until:
			return out, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *fakeQueue) take(limit int) (*sqs.ReceiveMessageOutput, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.messages {
		if len(out.Messages) < limit && !m.visible.After(time.Now()) {
			m.visible = time.Now().Add(30 * time.Second)
			m.receives++
			out.Messages = append(out.Messages, m.Message)
		}
	}
	return out, q.arrived
}

func (q *fakeQueue) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.begin("DeleteMessageBatch"); err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	for _, entry := range in.Entries {
		if q.failOne != nil && q.failOne(*entry.ReceiptHandle) {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("ReceiptHandleIsInvalid"), Message: aws.String("no")})
			continue
		}
		for i, m := range q.messages {
			if *m.ReceiptHandle == *entry.ReceiptHandle {
				q.messages = append(q.messages[:i:i], q.messages[i+1:]...)
				break
			}
		}
	}
	return out, nil
}

func (q *fakeQueue) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.begin("ChangeMessageVisibilityBatch"); err != nil {
		return nil, err
	}
	for _, entry := range in.Entries {
		for _, m := range q.messages {
			if *m.ReceiptHandle == *entry.ReceiptHandle {
				m.visible = time.Now().Add(time.Duration(entry.VisibilityTimeout) * time.Second)
			}
		}
	}
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// startQueue starts the mapping of a scripted queue with a function.
func startQueue(t *testing.T, api *fakeQueue, f *function, q eventsource.Queue) *eventsource.Mapping {
	t.Helper()
	q.Function, q.API, q.URL, q.ARN = f, api, queueURL, queueARN
	m, err := q.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
