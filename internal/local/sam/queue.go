package sam

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Queue is an SQS queue.
type Queue struct {
	ID, Name string
	FIFO     bool
	// Attributes are the SQS attributes that the template sets, except the redrive policy.
	Attributes map[string]string
	Redrive    *Redrive // nil for none
}

// Redrive is the redrive policy: messages that were received too often go to Queue.
type Redrive struct {
	Queue           string // logical id of the dead-letter queue
	MaxReceiveCount int
}

// queueAttributes are the properties whose names are also the names of SQS attributes.
var queueAttributes = []string{
	"ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoThroughputLimit", "MaximumMessageSize",
	"MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds", "VisibilityTimeout",
}

// Queues returns the template's queues in the template's order, and after them the queues
// of nested templates.
func (t *Template) Queues() ([]Queue, error) {
	var out []Queue
	var errs []error
	for in := range t.all() {
		for _, r := range in.resources {
			if r.kind != typeQueue {
				continue
			}
			q, err := in.queue(r)
			out = append(out, q)
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (t *Template) queue(r resource) (Queue, error) {
	name, err := t.name(r)
	if err != nil {
		return Queue{}, err
	}
	p := t.props(r)
	q := Queue{ID: t.full(r.id), Name: name, FIFO: p.boolean("FifoQueue"), Attributes: make(map[string]string)}
	if q.FIFO != strings.HasSuffix(name, ".fifo") {
		p.fail("QueueName", fmt.Errorf("%s: the name of a FIFO queue, and of no other, ends in .fifo", name))
	}
	for _, attribute := range queueAttributes {
		if s := p.str(attribute); s != "" {
			q.Attributes[attribute] = s
		}
	}
	q.Redrive = t.redrive(p)
	return q, p.err()
}

func (t *Template) redrive(p *props) *Redrive {
	var in *props
	switch v := p.value("RedrivePolicy").(type) {
	case nil:
		return nil
	case string: // the template may write the policy as a string of JSON
		var policy map[string]any
		if err := json.Unmarshal([]byte(v), &policy); err != nil {
			p.fail("RedrivePolicy", err)
			return nil
		}
		for key, value := range policy {
			policy[key] = fmt.Sprint(value)
		}
		in = &props{t: t, path: p.path + ".RedrivePolicy", errs: p.errs, node: asNode(policy, 0)}
	default:
		in = p.mapping("RedrivePolicy")
	}
	arn := in.required("deadLetterTargetArn")
	count, _ := in.integer("maxReceiveCount")
	if count < 1 {
		in.fail("maxReceiveCount", errors.New("is not a number above 0"))
	}
	id, ok := t.queueByARN(arn)
	if !ok && arn != "" {
		in.fail("deadLetterTargetArn", fmt.Errorf("%s is no queue of this template", arn))
	}
	return &Redrive{Queue: id, MaxReceiveCount: count}
}

// queueByARN returns the id of the queue with this ARN, from any template of the stack.
func (t *Template) queueByARN(arn string) (id string, ok bool) {
	for in := range t.outermost.all() {
		for _, r := range in.resources {
			if r.kind != typeQueue {
				continue
			}
			if v, err := in.attribute(r.id, "Arn"); err == nil && v == arn {
				return in.full(r.id), true
			}
		}
	}
	return "", false
}
