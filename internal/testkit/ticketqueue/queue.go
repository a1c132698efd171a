// Package ticketqueue is an in-memory SQS standard queue of tickets, for tests in
// virtual time. As in SQS, a message that is delayed or being delivered is invisible
// for a time. The queue delivers messages to a worker as Lambda's event source mapping
// does. It counts the messages that the worker sends while it runs, because Lambda
// would count them as part of a loop.
package ticketqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Queue is a queue, safe for concurrent use.
type Queue struct {
	// Now is the clock of the queue. Default: time.Now.
	Now func() time.Time

	mu      sync.Mutex
	n       int
	all     []*message
	dead    []*message
	serving bool // Deliver is running the worker
	chained int
}

type message struct {
	id, body      string
	sent, visible time.Time
	receives      int
}

func (q *Queue) now() time.Time {
	if q.Now != nil {
		return q.Now()
	}
	return time.Now()
}

// SendMessageBatch implements completer.QueueAPI.
func (q *Queue) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		q.n++
		now := q.now()
		q.all = append(q.all, &message{id: fmt.Sprint("m", q.n), body: *e.MessageBody, sent: now, visible: now.Add(time.Duration(e.DelaySeconds) * time.Second)})
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		if q.serving {
			q.chained++
		}
	}
	return out, nil
}

// ChangeMessageVisibility implements completer.QueueAPI. The receipt handle of a message
// is the message's id.
func (q *Queue) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.all {
		if m.id == *in.ReceiptHandle {
			m.visible = q.now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
		}
	}
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

// GetQueueAttributes implements completer.QueueAPI. It returns no attributes, so the completer
// never finds the queue crowded.
func (*Queue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

// Deliver passes at most ten visible messages to the function invoke. The function runs
// the worker and returns the worker's report, which names the messages that failed.
// Deliver removes the other messages. If invoke fails or the report can't be read,
// Deliver removes no message.
func (q *Queue) Deliver(invoke func(events.SQSEvent) ([]byte, error)) error {
	const hidden = 30 * time.Minute // the queue's visibility timeout
	var batch []events.SQSMessage
	q.mu.Lock()
	for _, m := range q.all {
		if now := q.now(); !m.visible.After(now) && len(batch) < 10 {
			m.visible = now.Add(hidden)
			m.receives++
			batch = append(batch, events.SQSMessage{MessageId: m.id, ReceiptHandle: m.id, Body: m.body, EventSource: "aws:sqs", Attributes: map[string]string{
				"SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10), "ApproximateReceiveCount": strconv.Itoa(m.receives),
			}})
		}
	}
	q.serving = len(batch) > 0
	q.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	out, err := invoke(events.SQSEvent{Records: batch})
	var re events.SQSEventResponse
	if err == nil {
		err = json.Unmarshal(out, &re)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serving = false
	if err != nil {
		return errors.Join(errors.New("the batch comes again"), err)
	}
	q.all = slices.DeleteFunc(q.all, func(m *message) bool {
		came := slices.ContainsFunc(batch, func(b events.SQSMessage) bool { return b.MessageId == m.id })
		return came && !slices.ContainsFunc(re.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == m.id })
	})
	return nil
}

// Waiting returns how many messages are in the queue.
func (q *Queue) Waiting() int { return q.count(&q.all) }

// Dead returns how many messages are dead letters.
func (q *Queue) Dead() int { return q.count(&q.dead) }

// Chained returns how many messages were sent while Deliver ran the worker.
func (q *Queue) Chained() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.chained
}

func (q *Queue) count(of *[]*message) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(*of)
}

// Drop removes all messages except the dead letters, as Lambda drops the messages of a
// loop.
func (q *Queue) Drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = nil
}

// Bury makes all messages dead letters.
func (q *Queue) Bury() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead, q.all = append(q.dead, q.all...), nil
}

// Redrive puts the dead letters back into the queue, as StartMessageMoveTask does.
func (q *Queue) Redrive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.dead {
		m.visible, m.receives = q.now(), 0
	}
	q.all, q.dead = append(q.all, q.dead...), nil
}
