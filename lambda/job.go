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
//	hear := lambda.WrapEach(engine, lambda.EventBridge.WithKey(lambda.JobKey), listen)
type Job struct {
	Key       string          `json:"idempotency_key"` // the job's id: do each once
	Operation string          `json:"operation"`       // the id of the operation that staged it
	Kind      string          `json:"kind"`
	Args      json.RawMessage `json:"args"`
}

// JobKey is the key of an event of EventBridge that brings a [Job]. The event's
// own id is another one if the job is handed on twice.
func JobKey(ev events.EventBridgeEvent) (string, error) {
	var j Job
	if err := json.Unmarshal(ev.Detail, &j); err != nil {
		return "", fmt.Errorf("lambda: the detail is no job: %w", err)
	}
	return j.Key, nil
}
