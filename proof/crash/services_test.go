//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/statestest"
)

// provider charges cards and sends mails, once for each key; a call without a key is
// a charge of its own.
type provider struct {
	mu   sync.Mutex
	seen map[string]*asked // by run
}

// asked is what a run has asked the provider for.
type asked struct {
	Charges []string // their keys
	Mails   []string // the ids of their jobs
	Calls   int      // for charges
	Tries   int
}

// ServeHTTP answers with the effect's id.
func (p *provider) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var in struct{ Run string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Run == "" {
		http.Error(rw, "no run", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.of(in.Run)
	key, done := r.Header.Get("X-Key"), &a.Charges
	switch r.URL.Path {
	case "/v1/mails":
		done = &a.Mails
	case "/v1/tries":
		a.Tries++
		return
	case "/v1/look": // for a transfer, by its reference
		if i := slices.Index(a.Charges, r.Header.Get("X-Key")); i >= 0 {
			_, _ = io.WriteString(rw, in.Run+strconv.Itoa(i))
		}
		return
	case "/v1/transfers": // its key is only a reference
		a.Calls++
		a.Charges = append(a.Charges, r.Header.Get("X-Key"))
		_, _ = io.WriteString(rw, in.Run+strconv.Itoa(len(a.Charges)-1))
		return
	default:
		a.Calls++
	}
	n := len(*done)
	for i, k := range *done {
		if k == key && key != "" {
			n = i
		}
	}
	if n == len(*done) {
		*done = append(*done, key)
	}
	_, _ = io.WriteString(rw, in.Run+strconv.Itoa(n))
}

func (p *provider) of(run string) *asked {
	if p.seen[run] == nil {
		p.seen[run] = &asked{}
	}
	return p.seen[run]
}

// about returns what a run has asked for.
func (p *provider) about(run string) asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := *p.of(run)
	a.Charges, a.Mails = slices.Clone(a.Charges), slices.Clone(a.Mails)
	return a
}

func (p *provider) forget(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, run)
}

// queues are SQS queues by name, with their readers. A message comes when its delay is
// over, alone, and again a second after it wasn't taken.
type queues struct {
	ctx     context.Context
	w       *world
	readers map[string]lambdarun.Invoker
	sent    atomic.Int64
	waiting atomic.Int64
	hidden  sync.Map // changed visibility timeouts, by receipt
	wg      sync.WaitGroup
}

// ServeHTTP is SendMessageBatch, ChangeMessageVisibility and GetQueueAttributes.
func (q *queues) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		QueueUrl, ReceiptHandle string
		VisibilityTimeout       int
		Entries                 []struct {
			Id, MessageBody   string
			DelaySeconds      int
			MessageAttributes map[string]struct{ DataType, StringValue string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || q.readers[queueName(in.QueueUrl)] == nil {
		http.Error(rw, "no such queue", http.StatusBadRequest)
		return
	}
	if target := r.Header.Get("X-Amz-Target"); !strings.HasSuffix(target, ".SendMessageBatch") {
		if strings.HasSuffix(target, ".ChangeMessageVisibility") {
			q.hidden.Store(in.ReceiptHandle, time.Duration(in.VisibilityTimeout)*time.Second)
		}
		rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(rw).Encode(map[string]any{"Attributes": map[string]string{"QueueArn": arnOf(queueName(in.QueueUrl))}})
		return
	}
	type result struct{ Id, MessageId, MD5OfMessageBody string }
	var out struct{ Successful, Failed []result }
	for _, e := range in.Entries {
		q.w.notBefore(e.MessageBody)
		attributes := map[string]events.SQSMessageAttribute{}
		for name, v := range e.MessageAttributes {
			attributes[name] = events.SQSMessageAttribute{DataType: v.DataType, StringValue: &v.StringValue}
		}
		id := q.take(queueName(in.QueueUrl), e.MessageBody, attributes, time.Duration(e.DelaySeconds)*time.Second)
		sum := md5.Sum([]byte(e.MessageBody))
		out.Successful = append(out.Successful, result{e.Id, id, hex.EncodeToString(sum[:])})
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(rw).Encode(out)
}

// take has a message delivered when its delay is over. For a ticket whose time is further away than
// the queue can hide it, the time comes instead.
func (q *queues) take(queue, body string, attributes map[string]events.SQSMessageAttribute, delay time.Duration) (id string) {
	m := events.SQSMessage{
		MessageId: strconv.FormatInt(q.sent.Add(1), 10), Body: body,
		EventSource: "aws:sqs", EventSourceARN: arnOf(queue), MessageAttributes: attributes,
	}
	m.ReceiptHandle = m.MessageId
	q.waiting.Add(1)
	q.wg.Go(func() {
		defer q.waiting.Add(-1)
		if delay >= 15*time.Minute {
			delay = 0
			m.Body = q.w.comes(q.ctx, body)
		}
		q.deliver(q.readers[queue], m, delay)
	})
	return m.MessageId
}

func arnOf(queue string) string { return "arn:aws:sqs:us-east-1:123456789012:" + queue }

// scheduler is EventBridge Scheduler for schedules that send a message once, by its documented
// rules: one name is one schedule, until that has sent.
type scheduler struct {
	queues *queues

	mu   sync.Mutex
	made map[string]bool
}

// ServeHTTP is CreateSchedule.
func (s *scheduler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		ScheduleExpression, ActionAfterCompletion string

		FlexibleTimeWindow struct{ Mode string }
		Target             struct{ Arn, RoleArn, Input string }
	}
	name := strings.TrimPrefix(r.URL.Path, "/schedules/")
	err := json.NewDecoder(r.Body).Decode(&in)
	at, aterr := time.Parse("at(2006-01-02T15:04:05)", in.ScheduleExpression)
	switch {
	case errors.Join(err, aterr) != nil || time.Until(at) < 15*time.Minute || in.FlexibleTimeWindow.Mode != "OFF" || in.ActionAfterCompletion != "DELETE",
		!regexp.MustCompile(`^[0-9A-Za-z_.-]{1,64}$`).MatchString(name), in.Target.Arn != arnOf("tickets"), !strings.HasPrefix(in.Target.RoleArn, "arn:aws:iam::"):
		refuse(rw, http.StatusBadRequest, "ValidationException", "1 validation error detected")
		return
	case !s.take(name):
		refuse(rw, http.StatusConflict, "ConflictException", "Schedule "+name+" already exists.")
		return
	}
	s.queues.waiting.Add(1)
	s.queues.wg.Go(func() {
		defer s.queues.waiting.Add(-1)
		body := s.queues.w.comes(s.queues.ctx, in.Target.Input)
		s.queues.take("tickets", body, nil, 0)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.made, name)
	})
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]string{"ScheduleArn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/" + name})
}

func (s *scheduler) take(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.made[name]
	s.made[name] = true
	return !taken
}

func refuse(rw http.ResponseWriter, status int, code, message string) {
	rw.Header().Set("X-Amzn-Errortype", code)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(map[string]string{"Message": message})
}

// comes has the time of a ticket's jobs come, a second from now, in the record and in the ticket,
// which it returns.
func (w *world) comes(ctx context.Context, ticket string) string {
	var in struct {
		PK   string `json:"pk"`
		ID   string `json:"id"`
		Jobs bool   `json:"jobs"`
		Due  int64  `json:"due_ms"`
	}
	if json.Unmarshal([]byte(ticket), &in) != nil || !in.Jobs || time.Until(time.UnixMilli(in.Due)) < time.Minute || !sleep(ctx, time.Second) {
		return ticket
	}
	w.mu.Lock()
	if r := w.byPK[in.PK]; r != nil {
		r.came = true
	}
	w.mu.Unlock()
	now := time.Now().UnixMilli()
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: in.PK}}
	for {
		_, err := w.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &w.records, Key: key, UpdateExpression: aws.String("SET jobs.#j.#at = :now"), ConditionExpression: aws.String("attribute_exists(jobs.#j.#at)"),
			ExpressionAttributeNames:  map[string]string{"#j": "0.0", "#at": "at"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(now, 10)}},
		})
		if _, delivered := errors.AsType[*types.ConditionalCheckFailedException](err); err == nil || delivered {
			break
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ticket
		}
	}
	in.Due = now
	out, _ := json.Marshal(in)
	return string(out)
}

func (q *queues) deliver(reader lambdarun.Invoker, m events.SQSMessage, delay time.Duration) {
	for n := 1; sleep(q.ctx, delay); n++ {
		m.Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(n)}
		payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{m}})
		if err != nil {
			return
		}
		out, err := reader.Invoke(q.ctx, payload)
		var re events.SQSEventResponse
		if err == nil && json.Unmarshal(out, &re) == nil && len(re.BatchItemFailures) == 0 {
			return
		}
		delay = time.Second
		if hidden, changed := q.hidden.LoadAndDelete(m.ReceiptHandle); changed {
			delay = hidden.(time.Duration)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// notBefore finds a job that comes before its time.
func (w *world) notBefore(job string) {
	var in struct {
		Run       string
		NotBefore int64 `json:"not_before"`
	}
	if json.Unmarshal([]byte(job), &in) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[in.Run]
	if r == nil {
		return
	}
	early := time.Duration(0)
	if in.NotBefore != 0 {
		early = time.Until(time.UnixMilli(in.NotBefore))
	}
	if early > 0 || r.path.far && !r.came {
		r.findings = append(r.findings, finding{"wrong", fmt.Sprintf("a job is delivered before its time, by %s", early)})
	}
}

const shipping = "arn:aws:states:us-east-1:123456789012:stateMachine:shipping"

// ended is Step Functions with executions that end at once: a job that comes again finds its
// own execution ended.
type ended struct{ *statestest.States }

// ServeHTTP is StartExecution, DescribeStateMachine and DescribeExecution.
func (s ended) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.States.ServeHTTP(rw, r)
	s.End()
}

// shipped is the number of executions about a run.
func (w *world) shipped(run string) (n int) {
	for _, input := range w.states.Inputs() {
		if strings.Contains(input, `"`+run+`"`) {
			n++
		}
	}
	return n
}

// invokeAPI is Lambda's Invoke for one function.
type invokeAPI struct{ lambdarun.Invoker }

// ServeHTTP invokes the function.
func (a invokeAPI) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	out, err := a.Invoke(r.Context(), payload)
	if failed, ok := errors.AsType[*lambdarun.FunctionError](err); ok {
		rw.Header().Set("X-Amz-Function-Error", "Unhandled")
		out, err = failed.Payload, nil
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(rw, bytes.NewReader(out))
}

// queueName is the last part of a queue's URL.
func queueName(url string) string { return url[strings.LastIndex(url, "/")+1:] }
