package rides

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// BySource is a function with several event sources: it hands each event to the
// handler of the source its records are of, such as "aws:sqs".
type BySource map[string]awslambda.Handler

// Invoke implements the runtime's Handler. An event of no source that is known
// is an error.
func (b BySource) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return nil, fmt.Errorf("not an event with records: %w", err)
	}
	if len(ev.Records) == 0 {
		return nil, errors.New("not an event with records")
	}
	h := b[ev.Records[0].EventSource]
	if h == nil {
		return nil, fmt.Errorf("no handler for events of %.40q", ev.Records[0].EventSource)
	}
	return h.Invoke(ctx, payload)
}
