package lambda

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/samekey/samekey/lambda/internal/rawjson"
)

// StateKey makes the key of a task of AWS Step Functions: of the execution, the state,
// and, inside of a Map, the item. context is a JSON Pointer to the context object,
// which the state machine hands on beside its input:
//
//	"Payload": { "context.$": "$$", "input.$": "$" }                                 JSONPath
//	"Payload": { "context": "{% $states.context %}", "input": "{% $states.input %}" } JSONata
//
//	lambda.Direct[Task, Receipt](lambda.StateKey("/context"))
//
// A state that is tried again (Retry), and one that is redriven with its execution,
// has the same key. What must be the same is the rest of the payload: the context
// object holds times and counters. Only Execution.Id, State.Name and Map.Item.Index
// of it are read, so a state machine may hand on no more than those.
//
// Two things can't be told from the context object: a state that is entered again in a
// loop, and the outer item of a Map in a Map. There take in what tells them apart:
// StateKey("/context", "/input/round").
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
