package eventsource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

func TestQueueOnElasticMQ(t *testing.T) {
	t.Parallel()
	server := elasticmq.Start(t)
	for name, test := range map[string]func(*testing.T, *sqs.Client){
		"delivers an event that aws-lambda-go reads": queueDelivers,
		"leaves failures to the redrive policy":      queueRedrives,
		"keeps the order within groups":              queueKeepsOrder,
		"redrives one operation":                     queueRedrivesOneOperation,
		"takes fair jobs":                            queueTakesFairJobs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server.Client())
		})
	}
}

// seconds is a visibility timeout: short, and longer than a handler takes here.
const seconds = "5"

type localQueue struct {
	client    *sqs.Client
	url, name string
}

func newLocalQueue(t *testing.T, c *sqs.Client, name string, attributes map[string]string) *localQueue {
	t.Helper()
	out, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return &localQueue{c, *out.QueueUrl, name}
}

func (q *localQueue) arn() string {
	return "arn:aws:sqs:" + ids.Region + ":" + ids.AccountID + ":" + q.name
}

func (q *localQueue) send(t *testing.T, body string, change func(*sqs.SendMessageInput)) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(q.url), MessageBody: aws.String(body)}
	if change != nil {
		change(in)
	}
	if _, err := q.client.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// receive waits for one message. It asks again and again: a long poll of
// ElasticMQ doesn't see what a redrive policy brings.
func (q *localQueue) receive(t *testing.T) types.Message {
	t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		out, err := q.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.url), WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) > 0 {
			return out.Messages[0]
		}
	}
	t.Fatalf("no message in %s", q.name)
	return types.Message{}
}

// start maps the queue to a real handler of SQS events.
func (q *localQueue) start(t *testing.T, handler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error), change func(*eventsource.Queue)) *eventsource.Mapping {
	t.Helper()
	fn := lambdarun.InProcess(awslambda.NewHandler(handler), time.Minute)
	t.Cleanup(func() { _ = fn.Close() })
	s := eventsource.Queue{
		Function: fn, API: q.client, URL: q.url, ARN: q.arn(), ReportBatchItemFailures: true,
		Hooks: eventsource.Hooks{Error: func(err error) { t.Errorf("told %v", err) }},
	}
	if change != nil {
		change(&s)
	}
	m, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// empty waits until the queue has neither visible nor hidden messages.
func (q *localQueue) empty(t *testing.T) {
	t.Helper()
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for {
		out, err := q.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(q.url), AttributeNames: names})
		if err != nil {
			t.Fatal(err)
		}
		if out.Attributes[string(names[0])] == "0" && out.Attributes[string(names[1])] == "0" {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("left in the queue: %v", out.Attributes)
		}
	}
}

func queueDelivers(t *testing.T, c *sqs.Client) {
	q, got := newLocalQueue(t, c, "delivers", nil), make(chan events.SQSMessage, 100)
	q.send(t, `{"unwanted":true}`, nil)
	q.start(t, func(_ context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		for _, m := range ev.Records {
			got <- m
		}
		return events.SQSEventResponse{}, nil
	}, func(s *eventsource.Queue) { s.Filters = []string{`{"body":{"ride":[{"exists":true}]}}`} })
	q.send(t, `{"ride":"<1>"}`, func(in *sqs.SendMessageInput) {
		in.MessageAttributes = map[string]types.MessageAttributeValue{
			"kind":  {DataType: aws.String("String"), StringValue: aws.String("receipt")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 0xff}},
		}
	})
	select {
	case m := <-got:
		if m.Body != `{"ride":"<1>"}` || m.MessageId == "" || m.ReceiptHandle == "" || m.Md5OfBody == "" || m.EventSourceARN != q.arn() || m.EventSource != "aws:sqs" || m.AWSRegion != ids.Region {
			t.Errorf("message %+v", m)
		}
		if m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["SentTimestamp"] == "" {
			t.Errorf("attributes %v", m.Attributes)
		}
		if kind, bytes := m.MessageAttributes["kind"], m.MessageAttributes["bytes"]; aws.ToString(kind.StringValue) != "receipt" || !slices.Equal(bytes.BinaryValue, []byte{0, 0xff}) {
			t.Errorf("message attributes %+v", m.MessageAttributes)
		}
	case <-time.After(patience):
		t.Fatal("nothing was delivered")
	}
	q.empty(t)
	if len(got) != 0 {
		t.Errorf("delivered more: %+v", <-got)
	}
}

func queueRedrives(t *testing.T, c *sqs.Client) {
	dead := newLocalQueue(t, c, "redrives-dead", nil)
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": dead.arn(), "maxReceiveCount": 2})
	q := newLocalQueue(t, c, "redrives", map[string]string{"VisibilityTimeout": seconds, "RedrivePolicy": string(policy)})
	for _, body := range []string{"good", "bad", "good too"} {
		q.send(t, body, nil)
	}
	var mu sync.Mutex
	tries := map[string]int{}
	q.start(t, func(_ context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		var out events.SQSEventResponse
		for _, m := range ev.Records {
			tries[m.Body]++
			if m.Body == "bad" {
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return out, nil
	}, nil)
	if letter := dead.receive(t); *letter.Body != "bad" {
		t.Fatalf("dead letter %s", *letter.Body)
	}
	q.empty(t)
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(map[string]int{"good": 1, "good too": 1, "bad": 2}, tries); diff != "" {
		t.Errorf("tries (-want +got):\n%s", diff)
	}
}

func queueKeepsOrder(t *testing.T, c *sqs.Client) {
	q := newLocalQueue(t, c, "ordered.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": seconds})
	const groups, each = 5, 12
	for i := range each {
		for g := range groups {
			q.send(t, fmt.Sprintf("%d/%d", g, i), func(in *sqs.SendMessageInput) {
				in.MessageGroupId = aws.String(strconv.Itoa(g))
				in.MessageDeduplicationId = aws.String(fmt.Sprintf("%d-%d", g, i))
			})
		}
	}
	var mu sync.Mutex
	got, failed := map[string][]string{}, map[string]bool{}
	q.start(t, func(_ context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		var out events.SQSEventResponse
		stopped := map[string]bool{}
		for _, m := range ev.Records {
			group, n, _ := strings.Cut(m.Body, "/")
			// One message of each group fails once; what follows it in its group is
			// handed back with it, as a handler of a FIFO queue has to.
			if n == "5" && !failed[group] {
				failed[group], stopped[group] = true, true
			}
			if stopped[group] {
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
				continue
			}
			got[group] = append(got[group], n)
		}
		return out, nil
	}, nil)
	q.empty(t)
	mu.Lock()
	defer mu.Unlock()
	for g := range groups {
		// A batch whose visibility timeout has ended on a busy machine comes again: that
		// repeats messages, and overtakes none.
		next := 0
		for _, n := range got[strconv.Itoa(g)] {
			if n == strconv.Itoa(next) {
				next++
			} else if i, err := strconv.Atoi(n); err != nil || i > next {
				break
			}
		}
		if next != each {
			t.Errorf("group %d, which has %d messages: %v", g, each, got[strconv.Itoa(g)])
		}
	}
}

// A standard queue takes the message groups that FairBy sends, as SQS does.
func queueTakesFairJobs(t *testing.T, c *sqs.Client) {
	q := newLocalQueue(t, c, "fair", nil)
	s := sink.NewQueue(c, q.url, func(o *sink.QueueOptions) { o.FairBy = func(jobs.Delivery) string { return "tenant" } })
	for _, err := range s.Deliver(t.Context(), []jobs.Delivery{{JobID: "op.finish.0", Operation: "op", Kind: "mail", Args: []byte(`{}`)}}) {
		if err != nil {
			t.Errorf("got %v, want a delivery", err)
		}
	}
}
