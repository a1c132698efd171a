package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/elasticmq"
)

// queues are the template's queues on a local server.
type queues struct {
	server *elasticmq.Server
	client *sqs.Client
	// made are the queues that exist, by logical id.
	made map[string]madeQueue
}

// madeQueue is an existing queue. The field dead is the ARN of its dead-letter queue, or "".
type madeQueue struct{ url, arn, dead string }

func openQueues(ctx context.Context) (*queues, error) {
	server, err := elasticmq.Find(ctx)
	if err != nil {
		return nil, err
	}
	return &queues{server: server, client: server.Client(), made: make(map[string]madeQueue)}, nil
}

func (q *queues) environ() []string { return []string{"AWS_ENDPOINT_URL_SQS=" + q.server.Endpoint} }

func (q *queues) close() error { return q.server.Close() }

// createAll makes the queues, dead-letter queues first, since a redrive policy must
// name an existing queue.
func (q *queues) createAll(ctx context.Context, all []sam.Queue) error {
	missing := func(def sam.Queue) bool {
		_, there := q.made[def.ID]
		return !there
	}
	for slices.ContainsFunc(all, missing) {
		before := len(q.made)
		for _, def := range all {
			if !missing(def) {
				continue
			}
			redrive := def.Redrive
			if redrive != nil {
				if _, ready := q.made[redrive.Queue]; !ready {
					continue
				}
			}
			if err := q.create(ctx, def); err != nil {
				return fmt.Errorf("create queue %s: %w", def.Name, err)
			}
		}
		if len(q.made) == before {
			return errors.New("queues are each other's dead-letter queues")
		}
	}
	return nil
}

func (q *queues) create(ctx context.Context, def sam.Queue) error {
	attributes, dead := maps.Clone(def.Attributes), ""
	if def.FIFO {
		attributes["FifoQueue"] = "true"
	}
	if def.Redrive != nil {
		dead = q.made[def.Redrive.Queue].arn
		policy, err := json.Marshal(map[string]any{
			"deadLetterTargetArn": dead, "maxReceiveCount": def.Redrive.MaxReceiveCount,
		})
		if err != nil {
			return err
		}
		attributes["RedrivePolicy"] = string(policy)
	}
	out, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &def.Name, Attributes: attributes})
	if err != nil {
		return err
	}
	got, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: out.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return err
	}
	q.made[def.ID] = madeQueue{url: *out.QueueUrl, arn: got.Attributes[string(types.QueueAttributeNameQueueArn)], dead: dead}
	return nil
}

// defaultVisibility is the visibility timeout if the template sets none.
const defaultVisibility = 30 * time.Second

func visibility(q sam.Queue) time.Duration {
	d, err := time.ParseDuration(q.Attributes["VisibilityTimeout"] + "s")
	if err != nil {
		return defaultVisibility
	}
	return d
}

// checkVisibility returns an error if a function reads a queue whose visibility timeout
// is shorter than the function's timeout. Lambda would refuse the event source mapping.
func checkVisibility(queues []sam.Queue, functions []sam.Function) error {
	var errs []error
	for _, f := range functions {
		for _, e := range f.Events {
			for _, q := range queues {
				if e.Queue != nil && e.Queue.Queue == q.ID && visibility(q) < f.Timeout {
					errs = append(errs, fmt.Errorf("event %s of function %s: the visibility timeout of queue %s, %s, is below the function's timeout, %s",
						e.Name, f.ID, q.ID, visibility(q), f.Timeout))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// scaleVisibility scales the visibility timeout of each queue that functions read. The
// parameter timeout replaces the timeout of every function. The factor is timeout,
// divided by the old timeout of the function that reads the queue. If several functions
// read the queue, the longest of their old timeouts counts.
func scaleVisibility(queues []sam.Queue, functions []sam.Function, timeout time.Duration) {
	for _, q := range queues {
		var was time.Duration
		for _, f := range functions {
			if slices.ContainsFunc(f.Events, func(e sam.Event) bool { return e.Queue != nil && e.Queue.Queue == q.ID }) {
				was = max(was, f.Timeout)
			}
		}
		if was > 0 {
			scaled := time.Duration(float64(visibility(q)) * float64(timeout) / float64(was))
			q.Attributes["VisibilityTimeout"] = strconv.Itoa(int(min((scaled+time.Second-1)/time.Second, maxVisibility)))
		}
	}
}

// maxVisibility is the longest visibility timeout of SQS, in seconds.
const maxVisibility = 12 * 60 * 60

// queues.send puts a message on the queue with this ARN. It returns false if there is
// no such queue.
func (q *queues) send(ctx context.Context, arn string, body []byte) (bool, error) {
	if q == nil {
		return false, nil
	}
	for _, made := range q.made {
		if made.arn != arn {
			continue
		}
		text := string(body)
		in := &sqs.SendMessageInput{QueueUrl: &made.url, MessageBody: &text}
		if strings.HasSuffix(arn, ".fifo") {
			return true, errors.New("a FIFO queue can't be a destination")
		}
		_, err := q.client.SendMessage(ctx, in)
		return true, err
	}
	return false, nil
}
