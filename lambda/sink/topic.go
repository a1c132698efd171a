package sink

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// SNS is the part of *sns.Client that a [Topic] uses.
type SNS interface {
	PublishBatch(context.Context, *sns.PublishBatchInput, ...func(*sns.Options)) (*sns.PublishBatchOutput, error)
}

var _ SNS = (*sns.Client)(nil)

// Topic publishes jobs to an SNS topic, in the form of [Queue]'s messages. That
// of a FIFO topic (one whose ARN ends in ".fifo") too.
type Topic struct{ batcher }

// NewTopic returns a sink to the topic arn. It panics if api is nil or arn is
// empty: mistakes in the program, best found at cold start.
func NewTopic(api SNS, arn string) *Topic {
	if api == nil || arn == "" {
		panic("sink: NewTopic: api is nil or arn is empty") //nolint:forbidigo // a mistake in the program
	}
	fifo := strings.HasSuffix(arn, ".fifo")
	return &Topic{batcher{service: "sns", ordered: fifo, size: messageSize, call: func(ctx context.Context, batch []idem.Delivery) ([]error, error) {
		in := &sns.PublishBatchInput{TopicArn: &arn, PublishBatchRequestEntries: make([]types.PublishBatchRequestEntry, len(batch))}
		for i, d := range batch {
			e := types.PublishBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), Message: aws.String(text(d.Args)),
				MessageAttributes: map[string]types.MessageAttributeValue{
					lambda.KeyAttribute:  {DataType: aws.String("String"), StringValue: aws.String(d.JobID)},
					lambda.KindAttribute: {DataType: aws.String("String"), StringValue: aws.String(d.Kind)},
				},
			}
			if fifo {
				e.MessageDeduplicationId, e.MessageGroupId = aws.String(d.JobID), aws.String(group(d.Group))
			}
			in.PublishBatchRequestEntries[i] = e
		}
		out, err := api.PublishBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		errs := missing("sns", len(batch))
		for _, e := range out.Successful {
			errs.set(e.Id, nil)
		}
		for _, e := range out.Failed {
			errs.set(e.Id, entryFault("sns", aws.ToString(e.Code), aws.ToString(e.Message), e.SenderFault))
		}
		return errs, nil
	}}}
}

// Deliver implements [idem.Sink], ten jobs a call.
func (t *Topic) Deliver(ctx context.Context, batch []idem.Delivery) []error {
	return t.deliver(ctx, batch)
}
