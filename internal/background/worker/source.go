package worker

import (
	"encoding/json"
	"fmt"
)

// source is where an event comes from.
type source int

const (
	sourceUnknown source = iota
	sourceStream
	sourceQueue
	sourceSchedule
	sourceCount // a schedule whose Input asks for a count
)

// The values of the field task in a schedule's Input. If the field is missing, the task is a sweep.
const (
	taskSweep = "sweep"
	taskCount = "count" // counts what waits for people
)

// sourceOf returns the source of an event. If the event has records, sourceOf looks at
// the first one only, since the source's handler checks each record. An event without
// records must have the field source of a schedule's event; the field task is optional.
func sourceOf(payload []byte) (source, error) {
	var ev struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
		Source string `json:"source"`
		Task   string `json:"task"`
	}
	if err := json.Unmarshal(payload, &ev); err != nil {
		return sourceUnknown, fmt.Errorf("worker: not an event: %w", err)
	}
	if len(ev.Records) > 0 {
		switch name := ev.Records[0].EventSource; name {
		case "aws:dynamodb":
			return sourceStream, nil
		case "aws:sqs":
			return sourceQueue, nil
		default:
			return sourceUnknown, fmt.Errorf("worker: an event of %.40q: it takes those of the table's stream, of the tickets' queue and of a schedule", name)
		}
	}
	switch ev.Source {
	case "aws.scheduler", "aws.events":
		switch ev.Task {
		case "", taskSweep:
			return sourceSchedule, nil
		case taskCount:
			return sourceCount, nil
		}
		return sourceUnknown, fmt.Errorf("worker: a schedule with the task %.40q: it has %q or %q", ev.Task, taskSweep, taskCount)
	}
	return sourceUnknown, fmt.Errorf("worker: an event without records, of the source %.40q: a schedule's has \"aws.scheduler\" or \"aws.events\"; "+
		"leave its Input empty, or give it that field", ev.Source)
}
