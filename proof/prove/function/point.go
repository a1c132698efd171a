package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/proof/prove/fault"
)

// point is the crash point of the invocation under way. A process has one invocation at a
// time.
type point struct {
	role, table, endpoint string

	mu    sync.Mutex
	fault fault.Fault // the zero Fault is none
	calls int
	hangs bool // the calls behind a fault.Hang do, too: clients try again
	batch bool // the invocation is for records of the stream
	queue bool // it is for tickets
}

// begin finds the point of an invocation: in a header of a request to the API, or in the
// provider's table, where one invocation takes it.
func (p *point) begin(ctx context.Context, event []byte) {
	var f fault.Fault
	if p.role == "api" {
		var ev struct {
			Headers map[string]string `json:"headers"`
		}
		_ = json.Unmarshal(event, &ev) // an envelope of the worker has no headers
		f = fault.Parse(ev.Headers[strings.ToLower(fault.Header)])
	} else if bytes.Contains(event, []byte(`"aws:sqs"`)) || bytes.Contains(event, []byte(`"aws:dynamodb"`)) {
		f = p.taken(ctx)
	}
	if bytes.Contains(event, []byte(fault.Unneeded)) {
		p.happened(fault.Fault{Kind: fault.Came, Cell: p.name()}) //nolint:contextcheck // it is noted whatever the context says
	}
	waiting := tickets(event)
	for pk, times := range waiting {
		p.write(ctx, fault.Received+pk, "times", &types.AttributeValueMemberN{Value: times})
	}
	batch := records(event)
	if slices.ContainsFunc(batch, record.poison) {
		p.happened(fault.Fault{Kind: fault.Poisoned, Call: len(batch), Cell: p.name()}) //nolint:contextcheck // as above
		kill()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.calls, p.hangs, p.batch, p.queue = f, 0, false, len(batch) > 0, len(waiting) > 0
}

// record is a record of the stream.
type record struct {
	Name     string `json:"eventName"`
	DynamoDB *struct {
		Keys struct {
			PK struct{ S string } `json:"pk"`
		}
	} `json:"dynamodb"`
}

func (r record) poison() bool {
	return r.Name == "INSERT" && strings.HasPrefix(r.DynamoDB.Keys.PK.S, fault.Poison)
}

// records are those of an event of the stream; none of another event.
func records(event []byte) []record {
	var in struct{ Records []record }
	if json.Unmarshal(event, &in) != nil {
		return nil
	}
	return slices.DeleteFunc(in.Records, func(r record) bool { return r.DynamoDB == nil })
}

// tickets are the keys of the records whose tickets an event has, with how often the message of each was received.
func tickets(event []byte) map[string]string {
	var in struct {
		Records []struct {
			Body       string            `json:"body"`
			Attributes map[string]string `json:"attributes"`
		}
	}
	_ = json.Unmarshal(event, &in) // another event has none
	all := map[string]string{}
	for _, m := range in.Records {
		var ticket struct {
			PK string `json:"pk"`
		}
		if json.Unmarshal([]byte(m.Body), &ticket) == nil && ticket.PK != "" {
			all[ticket.PK] = m.Attributes["ApproximateReceiveCount"]
		}
	}
	return all
}

// loses reports whether the program is not to get an event, since the stream loses it.
func (p *point) loses(ctx context.Context, event []byte) bool {
	if p.role != "" || len(records(event)) == 0 {
		return false
	}
	out, err := p.db().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Lost}}, ConsistentRead: aws.Bool(true),
	})
	return err == nil && out.Item != nil
}

// answers looks at the program's answer.
func (p *point) answers(answer []byte) {
	var report struct {
		Failed []any `json:"batchItemFailures"`
	}
	p.mu.Lock()
	batch := p.batch
	p.mu.Unlock()
	if batch && json.Unmarshal(answer, &report) == nil && len(report.Failed) > 0 {
		p.happened(fault.Fault{Kind: fault.Partial, Cell: p.name()})
	}
}

func (p *point) db() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: os.Getenv("AWS_REGION"), Credentials: credentials(), BaseEndpoint: &p.endpoint})
}

// taken takes the point that waits for this role.
func (p *point) taken(ctx context.Context) fault.Fault {
	out, err := p.db().DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &p.table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Waiting + p.name()}},
		ReturnValues: types.ReturnValueAllOld,
	})
	if err != nil {
		log.Print("no crash point: ", err)
		return fault.Fault{}
	}
	text, _ := out.Attributes["fault"].(*types.AttributeValueMemberS)
	if text == nil {
		return fault.Fault{}
	}
	return fault.Parse(text.Value)
}

// pass is called before a call is made. It reports whether the call's answer is to be lost.
func (p *point) pass() (lose bool) {
	p.mu.Lock()
	p.calls++
	here := p.fault.Kind != "" && p.calls == p.fault.Call
	f, hangs := p.fault, p.hangs
	p.hangs = p.hangs || here && f.Kind == fault.Hang
	p.mu.Unlock()
	if hangs {
		<-context.Background().Done() // until the time limit ends the process
	}
	if !here {
		return false
	}
	switch f.Kind {
	case fault.Before:
		p.happened(f)
		kill()
	case fault.Hang:
		p.happened(f)
		<-context.Background().Done()
	case fault.Memory:
		p.happened(f)
		for all := []byte{1}; ; {
			all = bytes.Repeat(all, 2)
		}
	case fault.Lose:
		p.happened(f)
		return true
	case fault.Outside:
		p.outside(f)
	default: // it comes after the call
	}
	return false
}

// passed is called when a call was made.
func (p *point) passed() {
	p.mu.Lock()
	here, f := p.fault.Kind == fault.After && p.calls == p.fault.Call, p.fault
	p.mu.Unlock()
	if here {
		p.happened(f)
		kill()
	}
}

// answered is called when Lambda has the function's answer. A point that the invocation didn't
// come to waits for another one.
func (p *point) answered(ctx context.Context) {
	p.mu.Lock()
	f, calls, queue := p.fault, p.calls, p.queue
	p.fault = fault.Fault{}
	p.mu.Unlock()
	switch {
	case f.Kind == fault.Answered && (p.role != "" || queue):
		p.happened(f) //nolint:contextcheck // it is noted whatever the context says
		kill()
	case f.Kind == fault.Answered, f.Kind == fault.Unhidden, f.Kind == fault.Refuse, f.Kind != "" && p.role != "api" && calls < f.Call:
		p.write(ctx, fault.Waiting+p.name(), "fault", &types.AttributeValueMemberS{Value: f.String()})
	}
}

// refuses reports whether a call is a job's delivery that meets [fault.Refuse]. If the job has to be refused
// again, the fault waits for the next invocation.
func (p *point) refuses(ctx context.Context, body []byte) bool {
	p.mu.Lock()
	f := p.fault
	here := f.Kind == fault.Refuse && bytes.Contains(body, []byte(`"QueueUrl"`)) && sinks(body)
	if here {
		p.fault = fault.Fault{}
	}
	p.mu.Unlock()
	if !here {
		return false
	}
	p.happened(f) //nolint:contextcheck // it is noted whatever the context says
	if f.Call--; f.Call > 0 {
		p.write(ctx, fault.Waiting+p.name(), "fault", &types.AttributeValueMemberS{Value: f.String()})
	}
	return true
}

// unhides reports whether a call hides a message, and meets [fault.Unhidden].
func (p *point) unhides(target string) bool {
	p.mu.Lock()
	f := p.fault
	here := f.Kind == fault.Unhidden && target == "AmazonSQS.ChangeMessageVisibility"
	if here {
		p.fault = fault.Fault{}
	}
	p.mu.Unlock()
	if here {
		p.happened(f)
	}
	return here
}

// sinks reports whether a call to SQS is for the queue of a sink.
func sinks(body []byte) bool {
	var in struct{ QueueUrl string }
	return json.Unmarshal(body, &in) == nil && strings.Contains(os.Getenv("SAMEKEY_SINKS"), in.QueueUrl)
}

// outside deletes a record that isn't there: no role allows that. Without a permission the fault has happened. Another
// error shows nothing.
func (p *point) outside(f fault.Fault) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := p.db().DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(os.Getenv("IDEM_TABLE")), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: fault.Unneeded}},
		ConditionExpression: aws.String("attribute_exists(pk)"),
	})
	switch api, ok := errors.AsType[smithy.APIError](err); {
	case err == nil || ok && api.ErrorCode() == "ConditionalCheckFailedException":
		f.Cell += "-allowed"
	case !ok || api.ErrorCode() != "AccessDeniedException":
		return
	}
	p.happened(f)
}

// denied notes that AWS has denied a call to the role.
func (p *point) denied(ctx context.Context, call string) {
	p.write(ctx, fault.Denied+p.name()+" "+call, "at", &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)})
}

// happened notes that the fault was met, whatever its call's context says.
func (p *point) happened(f fault.Fault) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.write(ctx, fault.Happened+f.String(), "at", &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)})
}

// write puts an item into the provider's table.
func (p *point) write(ctx context.Context, id, name string, value types.AttributeValue) {
	if _, err := p.db().PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.table, Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id}, name: value,
	}}); err != nil {
		log.Print("a crash point that nobody will hear of: ", err)
	}
}

// name is the role's, for items.
func (p *point) name() string {
	if p.role == "" {
		return "worker"
	}
	return p.role
}

// kill ends the process as the system does when it takes a sandbox away.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	os.Exit(137)
}
