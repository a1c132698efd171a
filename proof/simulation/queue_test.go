package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/lambda"
)

// The queues' URLs.
const (
	ticketsURL = "https://sqs/tickets"
	jobsURL    = "https://sqs/jobs"
)

// queue is a standard queue of SQS with its event source mapping.
type queue struct {
	w        *world
	url      string
	function string
	messages []*message
	running  int
	sent     map[string]int // jobs that it has accepted, by id
}

type message struct {
	id      string
	body    string
	record  string // of a ticket
	attrs   map[string]types.MessageAttributeValue
	visible time.Time
	busy    bool
	count   int           // of its deliveries
	hidden  time.Duration // its changed visibility timeout; 0: the queue's
}

const (
	visibility = 30 * time.Second
	mostBatch  = 10
	pollers    = 3
)

var (
	_ completer.QueueAPI = link{}
	_ sink.QueueAPI      = link{}
)

// SendMessageBatch is the SDK's call.
func (l link) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	w := l.sb.w
	q := w.queues[*in.QueueUrl]
	v, err := w.ask(ctx, actorOf(ctx, l.sb), "Send", q.url, l.sb, func(c *call) {
		apply := func(how string) (any, error) {
			w.progress()
			w.note(c.actor, "%d messages into %s%s", len(in.Entries), q.url, how)
			return q.take(in.Entries), nil
		}
		delay := w.between(time.Millisecond, 15*time.Millisecond)
		switch {
		case l.sb.crashes(c, apply):
		case w.fires(requestLost, 0.01):
			w.after(time.Second, func() { c.give(nil, errNet) })
		case w.fires(throttled, 0.01):
			w.after(delay, func() {
				c.give(nil, &smithy.GenericAPIError{Code: "RequestThrottled", Message: "simulated", Fault: smithy.FaultClient})
			})
		case w.fires(answerLost, 0.02):
			w.after(delay, func() { _, _ = apply(", and the answer is lost") })
			w.after(2*time.Second, func() { c.give(nil, errTimeout) })
		default:
			w.after(delay, func() { c.give(apply("")) })
		}
	})
	out, _ := v.(*sqs.SendMessageBatchOutput)
	return out, err
}

// ChangeMessageVisibility is the SDK's call.
func (l link) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	w := l.sb.w
	q := w.queues[*in.QueueUrl]
	_, err := w.ask(ctx, actorOf(ctx, l.sb), "Hide", q.url, l.sb, func(c *call) {
		apply := func(string) (any, error) {
			for _, m := range q.messages {
				if m.id == *in.ReceiptHandle {
					m.hidden = time.Duration(in.VisibilityTimeout) * time.Second
				}
			}
			return nil, nil
		}
		switch {
		case l.sb.crashes(c, apply):
		case w.fires(requestLost, 0.01):
			w.after(time.Second, func() { c.give(nil, errNet) })
		default:
			w.after(w.between(time.Millisecond, 15*time.Millisecond), func() { c.give(apply("")) })
		}
	})
	return &sqs.ChangeMessageVisibilityOutput{}, err
}

// GetQueueAttributes is the SDK's call. No message waits that is worth a number.
func (link) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": ticketsARN}}, nil
}

// take accepts messages, or some of them.
func (q *queue) take(entries []types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	w := q.w
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range entries {
		id := aws.ToString(e.MessageAttributes[lambda.KeyAttribute].StringValue)
		switch {
		case q.url == jobsURL && w.refused(id):
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{
				Id: e.Id, Code: aws.String("InvalidMessageContents"), Message: aws.String("simulated"), SenderFault: true,
			})
			continue
		case w.fires(queuePartial, 0.02):
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError"), Message: aws.String("simulated")})
			continue
		}
		w.notBefore(id)
		q.sent[id]++
		m := &message{body: *e.MessageBody, attrs: e.MessageAttributes, visible: time.Now().Add(time.Duration(e.DelaySeconds) * time.Second)}
		if e.DelaySeconds > 0 && w.fires(queueEarly, 0.05) {
			m.visible = time.Now()
		}
		q.add(m)
		if w.fires(queueTwice, 0.02) {
			twin := *m
			q.add(&twin)
		}
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out
}

// refused reports whether no queue takes a job, ever.
func (w *world) refused(id string) bool {
	j := w.ledger.jobs[id]
	if j == nil || w.off[refusedJob] || !w.odds(0.01*w.rate, "refused", j.order, j.kind) {
		return false
	}
	w.counts[refusedJob]++
	return true
}

func (q *queue) add(m *message) {
	if q.url == ticketsURL {
		var ticket struct{ PK string }
		if err := json.Unmarshal([]byte(m.body), &ticket); err != nil {
			panic(err)
		}
		m.record = ticket.PK
	}
	q.w.seq++
	m.id = "m" + strconv.Itoa(q.w.seq)
	q.messages = append(q.messages, m)
	q.poll(m.visible)
}

// poll looks for messages at a time.
func (q *queue) poll(at time.Time) {
	if at.Before(time.Now()) {
		at = time.Now()
	}
	q.w.at(at.Add(q.w.between(5*time.Millisecond, 300*time.Millisecond)), q.receive)
}

func (q *queue) receive() {
	w := q.w
	if q.running >= pollers {
		return
	}
	var batch []*message
	for _, m := range q.messages {
		// Two tickets of one record go to different sandboxes: in one, Go would choose at
		// random which of them calls first.
		twin := slices.ContainsFunc(batch, func(o *message) bool { return o.record != "" && o.record == m.record })
		if !m.busy && !twin && !m.visible.After(time.Now()) {
			batch = append(batch, m)
		}
	}
	if len(batch) == 0 {
		return
	}
	if len(batch) > 1 && w.fires(queueMixed, 0.3) {
		w.rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	}
	batch = batch[:min(len(batch), 1+w.rng.IntN(mostBatch))]
	var ev events.SQSEvent
	for _, m := range batch {
		m.busy = true
		m.count++
		ev.Records = append(ev.Records, q.message(m))
	}
	b, err := json.Marshal(ev)
	if err != nil {
		panic(err)
	}
	q.running++
	w.fleet.invoke(q.function, payload{json: b}, func(out []byte, err error) { q.done(batch, out, err) })
}

func (q *queue) message(m *message) events.SQSMessage {
	out := events.SQSMessage{
		MessageId: m.id, ReceiptHandle: m.id, Body: m.body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:1:" + q.url[len("https://sqs/"):],
		MessageAttributes: make(map[string]events.SQSMessageAttribute),
		Attributes:        map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.count)},
	}
	for name, a := range m.attrs {
		out.MessageAttributes[name] = events.SQSMessageAttribute{DataType: *a.DataType, StringValue: a.StringValue}
	}
	return out
}

func (q *queue) done(batch []*message, out []byte, err error) {
	w := q.w
	q.running--
	var re events.SQSEventResponse
	if err == nil {
		err = json.Unmarshal(out, &re)
	}
	for _, m := range batch {
		m.busy = false
		failed := err != nil || slices.ContainsFunc(re.BatchItemFailures, func(f events.SQSBatchItemFailure) bool { return f.ItemIdentifier == m.id })
		if failed || w.fires(queueTwice, 0.01) {
			m.visible = time.Now().Add(cmp.Or(m.hidden, visibility))
			m.hidden = 0
			q.poll(m.visible)
			continue
		}
		q.messages = slices.DeleteFunc(q.messages, func(other *message) bool { return other == m })
	}
	if len(q.messages) > 0 {
		q.poll(time.Now())
	}
	w.progress()
}

func (q *queue) String() string {
	busy := 0
	for _, m := range q.messages {
		if m.busy {
			busy++
		}
	}
	return fmt.Sprintf("%s with %d messages, %d of them at %d sandboxes", q.url, len(q.messages), busy, q.running)
}
