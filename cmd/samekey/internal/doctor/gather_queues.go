package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// askQueues asks for the queues that the functions consume, the worker's queues of tickets
// and jobs, and the dead-letter queues of all these.
func (f *Facts) askQueues(ctx context.Context, api SQS) {
	for _, s := range []Source{Functions, Mappings} {
		if why, ok := f.unread[s]; ok && len(f.consumers()) == 0 && f.worker() == nil {
			f.miss(Queues, why)
		}
	}
	for _, r := range f.consumers() {
		f.askQueue(ctx, api, aws.ToString(r.mapping.EventSourceArn), "")
	}
	w := f.worker()
	if w == nil {
		return
	}
	f.askQueue(ctx, api, "", w.Env["SAMEKEY_TICKETS_URL"])
	for _, sink := range list(w.Env["SAMEKEY_SINKS"]) {
		_, to, _ := strings.Cut(sink, "=")
		if url, ok := strings.CutPrefix(to, "sqs:"); ok {
			f.askQueue(ctx, api, "", url)
		}
	}
}

// askQueue asks for a queue, by its ARN or its URL, and for its dead-letter queue.
func (f *Facts) askQueue(ctx context.Context, api SQS, arn, url string) {
	if _, known := f.Queues[arn]; known && arn != "" {
		return
	}
	if url == "" {
		part := strings.Split(arn, ":")
		if len(part) != 6 {
			return
		}
		out, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &part[5], QueueOwnerAWSAccountId: &part[4]})
		if err != nil {
			f.noQueue(arn, "", err)
			return
		}
		url = aws.ToString(out.QueueUrl)
	}
	out, err := api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		f.noQueue(arn, url, err)
		return
	}
	q := &Queue{ARN: out.Attributes["QueueArn"], URL: url, Attributes: out.Attributes}
	f.Queues[q.ARN] = q
	if dead := q.deadLetters(); dead != "" {
		f.askQueue(ctx, api, dead, "")
	}
}

func (f *Facts) noQueue(arn, url string, err error) {
	name := arn + url
	if notFound(err) {
		f.Queues[name] = &Queue{ARN: arn, URL: url, Gone: true}
		return
	}
	f.miss(Queues, fmt.Sprintf("%s: %s", name, reason(err)))
}

type redrive struct {
	Target   string      `json:"deadLetterTargetArn"`
	Receives json.Number `json:"maxReceiveCount"` // a number, or a string with a number
}

func (q *Queue) redrive() (r redrive, ok bool) {
	return r, json.Unmarshal([]byte(q.Attributes["RedrivePolicy"]), &r) == nil
}

func (q *Queue) deadLetters() string {
	r, _ := q.redrive()
	return r.Target
}
