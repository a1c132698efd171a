package sink

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/samekey/samekey/idem/jobs"
)

// TopicAPI is the part of *sns.Client that a [Topic] uses.
type TopicAPI interface {
	PublishBatch(context.Context, *sns.PublishBatchInput, ...func(*sns.Options)) (*sns.PublishBatchOutput, error)
}

var _ TopicAPI = (*sns.Client)(nil)

// Topic publishes jobs to an SNS topic. Its messages have the form of a [Queue]'s
// messages. If the topic is a FIFO topic (its ARN ends in ".fifo"), they have the form
// of a FIFO queue's messages.
type Topic struct {
	batcher
	api TopicAPI
	arn string
}

// TopicOptions are the options of [NewTopic].
type TopicOptions struct {
	// FairBy returns the unit of a job, as in [QueueOptions]. A standard topic passes
	// the unit only to subscribed standard queues. For a FIFO topic FairBy must be nil.
	FairBy func(jobs.Delivery) string
}

// NewTopic returns a sink to the topic with the ARN arn. It panics if api is nil, arn is empty, or
// FairBy is set for a FIFO topic.
func NewTopic(api TopicAPI, arn string, optFns ...func(*TopicOptions)) *Topic {
	var opt TopicOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	fifo := strings.HasSuffix(arn, ".fifo")
	if api == nil || arn == "" || fifo && opt.FairBy != nil {
		panic("sink: NewTopic: api is nil, or arn is empty, or a FIFO topic has FairBy") //nolint:forbidigo // a mistake in the program
	}
	t := &Topic{api: api, arn: arn}
	t.batcher = newMessageBatcher(topics, fifo, opt.FairBy, t.publish)
	return t
}

// Deliver implements [jobs.Sink] with up to ten jobs a call.
func (t *Topic) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	return t.deliver(ctx, batch)
}

func (t *Topic) publish(ctx context.Context, batch []message) (results, error) {
	attribute := func(dataType, value *string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: dataType, StringValue: value}
	}
	in := &sns.PublishBatchInput{TopicArn: &t.arn, PublishBatchRequestEntries: make([]types.PublishBatchRequestEntry, len(batch))}
	for i, m := range batch {
		in.PublishBatchRequestEntries[i] = types.PublishBatchRequestEntry{
			Id: m.entry, Message: m.body, MessageAttributes: attributes(m, attribute), MessageDeduplicationId: m.dedup, MessageGroupId: m.group,
		}
	}
	out, err := t.api.PublishBatch(ctx, in)
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
