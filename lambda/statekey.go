package lambda

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/samekey/samekey/internal/base/rawjson"
)

// StateKey makes the key of a task of AWS Step Functions from the execution, the state,
// and, in a Map, the item. The parameter context is a JSON Pointer to the context
// object in the payload. The state machine has to pass this object beside the input:
//
//	"Payload": { "context.$": "$$", "input.$": "$" }                                 JSONPath
//	"Payload": { "context": "{% $states.context %}", "input": "{% $states.input %}" } JSONata
//
//	lambda.Direct[Task, Receipt](lambda.StateKey("/context"))
//
// A state has the same key when it is tried again (Retry), and when its execution is
// redriven. Tasks with the same key must have the same payload, except the context
// object, which holds times and counters. StateKey reads only Execution.Id, State.Name
// and Map.Item.Index of the context object, so a state machine need not pass more than
// these three.
//
// The context object can't distinguish the rounds of a loop that enters a state again,
// or the outer items of a Map in a Map. In these cases add pointers to values of the
// payload that distinguish the rounds or items: StateKey("/context", "/input/round").
func StateKey(context string, more ...string) BodyKey {
	at := parsePointers("StateKey", []string{context})[0]
	own := parsePointers("StateKey", []string{context + "/Execution/Id", context + "/State/Name"})
	item := parsePointers("StateKey", []string{context + "/Map/Item/Index"})
	further := parsePointers("StateKey", more)
	return BodyKey{
		Key: func(body []byte) (string, error) {
			texts, err := rawjson.Texts(body, own)
			if err != nil {
				return "", err
			}
			index, err := rawjson.Texts(body, item)
			if err != nil && !errors.Is(err, rawjson.ErrAbsent) {
				return "", err
			}
			extra, err := rawjson.Texts(body, further)
			if err != nil {
				return "", err
			}
			return textKey(slices.Concat([]string{"state"}, texts, []string{strconv.Itoa(len(index))}, index, extra)...), nil
		},
		Same: func(body []byte) ([]byte, error) {
			rest, err := at.Without(body)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at.Text, err)
			}
			return canonical("the payload", rest)
		},
	}
}
