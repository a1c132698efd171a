package eventsource

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// failedItems reads a function's answer as Lambda does with ReportBatchItemFailures. It
// returns the positions of the failed records in ids, in ascending order. No record has
// failed if the answer is empty, null, {} or [], or if batchItemFailures is missing,
// null or an empty list.
//
// failedItems returns an error if the answer has another form, or if batchItemFailures
// names a record that isn't in ids. In this case, Lambda counts the whole batch as
// failed.
func failedItems(response []byte, ids []string) ([]int, error) {
	if len(bytes.TrimSpace(response)) == 0 {
		return nil, nil
	}
	v, err := decodeJSON(response)
	if err != nil {
		return nil, fmt.Errorf("the function's answer isn't JSON: %w", err)
	}
	if list, ok := v.([]any); v == nil || ok && len(list) == 0 {
		return nil, nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the function's answer isn't an object with batchItemFailures")
	}
	reported := object["batchItemFailures"]
	if reported == nil {
		return nil, nil
	}
	items, ok := reported.([]any)
	if !ok {
		return nil, errors.New("batchItemFailures isn't a list")
	}
	var failed []int
	for _, item := range items {
		object, _ := item.(map[string]any)
		id, _ := object["itemIdentifier"].(string)
		i := slices.Index(ids, id)
		if i < 0 {
			return nil, fmt.Errorf("batchItemFailures names no record of the batch: %v", item)
		}
		failed = append(failed, i)
	}
	slices.Sort(failed)
	return slices.Compact(failed), nil
}
