package sink

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
)

// Queue.Deliver calls batcher.deliver, and batcher.deliver calls batcher.send
// (batch.go). batcher.send calls messageOf for each job (message.go), and then
// Queue.sendMessages.

// QueueAPI is the part of *sqs.Client that a [Queue] uses.
type QueueAPI interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

var _ QueueAPI = (*sqs.Client)(nil)

// Queue sends jobs to an SQS queue. A message's body is the job's Args. The message's attributes
// are lambda.KeyAttribute (the job's id), lambda.KindAttribute, and traceparent and tracestate if
// the job has a trace context.
//
// In a FIFO queue (its URL ends in ".fifo") the job's id is also the deduplication id, and the
// job's group is the message group. If a job fails, the later jobs of its group are held back.
type Queue struct {
	batcher
	api QueueAPI
	url string
}

// QueueOptions are the options of [NewQueue].
type QueueOptions struct {
	// FairBy returns the unit to which a job belongs, such as a tenant, or "" for no
	// unit. While a unit is busy, a standard queue delivers the messages of other units
	// first (fair queues). If FairBy is nil, no job has a unit. For a FIFO queue FairBy
	// must be nil, because the message group of a FIFO queue is the job's group.
	FairBy func(jobs.Delivery) string
}

// NewQueue returns a sink to the queue at url. It panics if api is nil, url is empty, or FairBy is
// set for a FIFO queue.
func NewQueue(api QueueAPI, url string, optFns ...func(*QueueOptions)) *Queue {
	var opt QueueOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	fifo := strings.HasSuffix(url, ".fifo")
	if api == nil || url == "" || fifo && opt.FairBy != nil {
		panic("sink: NewQueue: api is nil, or url is empty, or a FIFO queue has FairBy") //nolint:forbidigo // a mistake in the program
	}
	q := &Queue{api: api, url: url}
	q.batcher = newMessageBatcher(queues, fifo, opt.FairBy, q.sendMessages)
	return q
}

// Deliver implements [jobs.Sink] with up to ten jobs a call.
func (q *Queue) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	return q.deliver(ctx, batch)
}

func (q *Queue) sendMessages(ctx context.Context, batch []message) (results, error) {
	attribute := func(dataType, value *string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: dataType, StringValue: value}
	}
	in := &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: make([]types.SendMessageBatchRequestEntry, len(batch))}
	for i, m := range batch {
		in.Entries[i] = types.SendMessageBatchRequestEntry{
			Id: m.entry, MessageBody: m.body, MessageAttributes: attributes(m, attribute), MessageDeduplicationId: m.dedup, MessageGroupId: m.group,
		}
	}
	out, err := q.api.SendMessageBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	errs := unanswered(len(batch))
	for _, e := range out.Successful {
		errs.set(e.Id, nil)
	}
	for _, e := range out.Failed {
		errs.set(e.Id, entryFault(aws.ToString(e.Code), aws.ToString(e.Message), e.SenderFault))
	}
	return errs, nil
}
