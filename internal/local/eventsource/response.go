package eventsource

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// failedItems reads a function's answer as Lambda does with ReportBatchItemFailures. It
// returns the positions in ids of the failed records, in ascending order. It returns no
// position for an empty answer, null, {}, [], and an empty or missing list.
//
// The error says why the whole batch counts as failed: an answer of another
// form, or an item that names none of the records.
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
