package lambda

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// KindAttribute is the message attribute that carries the kind of a job, where a
// drain has sent it to SQS or SNS. The message itself is the job's Args.
const KindAttribute = "kind"

// Job is a staged job as it arrives where there are no message attributes: as
// the detail of an event of EventBridge, or as the payload of a function:
//
//	send := lambda.Wrap(engine, lambda.Direct[lambda.Job, struct{}](func(j lambda.Job) (string, error) { return j.Key, nil }), mail)
//	hear := lambda.WrapEach(engine, lambda.EventBridge, listen)
//
// [SQS], [SNS] and [EventBridge] know a Job by its four members and take its key by
// themselves.
type Job struct {
	Key       string          `json:"idempotency_key"` // the job's id: do each once
	Operation string          `json:"operation"`       // the id of the operation that staged it
	Kind      string          `json:"kind"`
	Args      json.RawMessage `json:"args"`
}

// JobKey is the key of an event of EventBridge whose detail is a [Job], or has at
// least the member idempotency_key. [EventBridge] itself takes it of a Job only: any
// other event has its own id for a key.
func JobKey(ev events.EventBridgeEvent) (string, error) {
	var j Job
	if err := json.Unmarshal(ev.Detail, &j); err != nil {
		return "", fmt.Errorf("lambda: the detail is no job: %w", err)
	}
	return j.Key, nil
}
