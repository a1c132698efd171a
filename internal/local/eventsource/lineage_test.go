package eventsource_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// functionName is that of every function in this process.
const functionName = "function"

// waitingQueue is the fake queue as completer.Queue calls it.
type waitingQueue struct {
	completer.QueueAPI
	*fakeQueue
}

func (q waitingQueue) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	_, err := q.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{ReceiptHandle: in.ReceiptHandle, VisibilityTimeout: in.VisibilityTimeout},
	}})
	return nil, err
}

func (q waitingQueue) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{}, nil
}

// abandoned is a table whose only operation stays abandoned.
type abandoned struct{ store.Store }

func (abandoned) Load(_ context.Context, pk string) (*store.Record, error) {
	return &store.Record{PK: pk, ID: "i", State: store.Open, Keep: store.KeepOpen, Input: &store.Input{}, Run: time.Now().Add(-time.Hour)}, nil
}

// A worker that sends the message that it got again, as tickets were once requeued, is in a
// loop: after 16 invocations the message is dropped. A ticket that waits where it is comes as
// often as its operation needs.
func TestLoopIsEnded(t *testing.T) {
	t.Parallel()
	const body = `{"pk":"v1##k","id":"i"}`
	for name, test := range map[string]struct {
		worker  func(*fakeQueue, func() int) any
		dropped bool
		invoked int
	}{
		"the message is sent again": {func(q *fakeQueue, invoked func() int) any {
			return func(ctx context.Context, _ events.SQSEvent) error {
				if invoked() > 100 {
					return nil // nobody ends it
				}
				trace, _ := ctx.Value("x-amzn-trace-id").(string) // an SDK in a function sends it
				q.add(types.Message{
					MessageId: aws.String("again"), ReceiptHandle: aws.String("again " + strconv.Itoa(lambdarun.Lineage(trace, functionName))),
					Body: aws.String(body), Attributes: map[string]string{"AWSTraceHeader": trace},
				})
				return nil
			}
		}, true, 16},
		"the ticket waits where it is": {func(q *fakeQueue, invoked func() int) any {
			fails := completer.InProcess(func(context.Context, jobs.Ticket) error {
				invoked()
				return errors.New("the provider is away")
			})
			return completer.New(abandoned{}, completer.NewQueue(waitingQueue{fakeQueue: q}, queueURL), fails).Handle
		}, false, 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, invoked, dropped := newFakeQueue(), 0, ""
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Hour)
				over := make(chan struct{})
				h := test.worker(q, func() int {
					if invoked++; invoked == test.invoked && !test.dropped || invoked == 100 {
						close(over)
					}
					return invoked
				})
				m, err := eventsource.Queue{
					Function: lambdarun.InProcess(awslambda.NewHandler(h), time.Minute), FunctionName: functionName, API: q, URL: queueURL, ARN: queueARN,
					ReportBatchItemFailures: true, MaximumConcurrency: 1,
					Dropped: func(_ context.Context, body string) error {
						dropped = body
						close(over)
						return nil
					},
				}.Start(ctx)
				if err != nil {
					t.Fatal(err)
				}
				q.send(body)
				select {
				case <-over:
				case <-ctx.Done():
				}
				synctest.Wait()
				cancel()
				_ = m.Close()
				if (dropped == body) != test.dropped || invoked != test.invoked {
					t.Errorf("dropped %q after %d invocations", dropped, invoked)
				}
				if left := len(q.left()); (left == 0) != test.dropped {
					t.Errorf("%d messages are left", left)
				}
			})
		})
	}
}
