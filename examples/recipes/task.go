package recipes

import (
	"context"
	"encoding/json"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Task is the payload of a state: "Payload": {"context.$": "$$", "input.$": "$"}.
type Task struct {
	Context json.RawMessage `json:"context"`
	Input   struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	} `json:"input"`
}

// Charged is a state's result.
type Charged struct {
	Charge string `json:"charge"`
}

// Charge calls a payment provider under a key.
type Charge func(ctx context.Context, key string, amount int) (id string, err error)

// ChargeTask is a task of a state machine. The key is the execution and the state: a state
// that is tried again, or redriven, gets the first result.
func ChargeTask(e *idem.Engine, charge Charge) *lambda.Handler[Task, Charged] {
	byState := lambda.Direct[Task, Charged](lambda.StateKey("/context"))
	return lambda.Wrap(e, byState, func(ctx context.Context, task Task) (Charged, error) {
		id, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
			return charge(ctx, tx.Key("payments"), task.Input.Amount)
		})
		return Charged{id}, err
	}, func(o *lambda.HandlerOptions) { o.Name = "charge" })
}
