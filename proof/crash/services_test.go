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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/internal/local/lambdarun"
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
		_, _ = io.WriteString(rw, "{}")
		return
	}
	type result struct{ Id, MessageId, MD5OfMessageBody string }
	var out struct{ Successful, Failed []result }
	for _, e := range in.Entries {
		q.w.notBefore(e.MessageBody)
		m := events.SQSMessage{
			MessageId: strconv.FormatInt(q.sent.Add(1), 10), Body: e.MessageBody,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queueName(in.QueueUrl),
			MessageAttributes: map[string]events.SQSMessageAttribute{},
		}
		m.ReceiptHandle = m.MessageId
		for name, v := range e.MessageAttributes {
			m.MessageAttributes[name] = events.SQSMessageAttribute{DataType: v.DataType, StringValue: &v.StringValue}
		}
		q.waiting.Add(1)
		q.wg.Go(func() {
			defer q.waiting.Add(-1)
			q.deliver(q.readers[queueName(in.QueueUrl)], m, time.Duration(e.DelaySeconds)*time.Second)
		})
		sum := md5.Sum([]byte(e.MessageBody))
		out.Successful = append(out.Successful, result{e.Id, m.MessageId, hex.EncodeToString(sum[:])})
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(rw).Encode(out)
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
	if json.Unmarshal([]byte(job), &in) != nil || in.NotBefore == 0 {
		return
	}
	if early := time.Until(time.UnixMilli(in.NotBefore)); early > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r := w.runs[in.Run]; r != nil {
			r.findings = append(r.findings, finding{"wrong", fmt.Sprintf("a job is delivered %s before its time", early)})
		}
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
