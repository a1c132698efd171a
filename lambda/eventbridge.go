package lambda

import (
	"context"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const eventBridgeKind = "an EventBridge event"

// EventBridge takes the events of a bus from a rule that passes on whole events. Don't
// change EventBridge: change a copy, as [Batch] shows. If a rule, a pipe or a schedule
// has its own input, use [Direct].
//
// EventBridge invokes the function asynchronously. If an event fails, so does its
// invocation. Lambda runs a failed invocation again, by default twice, and then hands
// the event to the function's failure destination. So configure a failure destination.
//
// The key of an event is the id of the [JobEvent] in its detail, or else the event's
// id. The scope is the event's account, region and source, and the function. The rule
// is part of neither. So if two rules pass one event to one function, the handler runs
// once. If an archive replays an event under the old id, the handler doesn't run again
// while the key lives. Events with the same key must have the same detail type,
// resources and detail.
var EventBridge = Batch[events.EventBridgeEvent, events.EventBridgeEvent, struct{}]{
	Records: eventBridgeRecords,
	ID:      func(ev events.EventBridgeEvent) string { return ev.ID },
	Key:     func(ev events.EventBridgeEvent) (string, error) { return detailKey(ev.Detail, ev.ID) },
	Request: eventBridgeRequest,
	Keeps:   keepsEventBridge,
	shared:  true,
}

// keepsEventBridge is the sum of the 24 hours for which EventBridge tries to deliver
// (MaximumEventAgeInSeconds of a target), and of the time for which the invocation may
// then wait in Lambda. Replays from an archive are not counted: they are possible for
// as long as the archive keeps the events.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
const keepsEventBridge = day + keepsAsync

func eventBridgeRecords(ev events.EventBridgeEvent) ([]events.EventBridgeEvent, error) {
	switch {
	case ev.ID == "":
		return nil, notA(eventBridgeKind, "it has no id")
	case ev.Source == "":
		return nil, notA(eventBridgeKind, "it has no source")
	case ev.DetailType == "":
		return nil, notA(eventBridgeKind, "it has no detail-type")
	}
	return []events.EventBridgeEvent{ev}, nil
}

func eventBridgeRequest(ctx context.Context, ev events.EventBridgeEvent) (idem.Request, error) {
	return idem.Request{
		Source: consumerScope(ctx, "events:"+ev.AccountID+":"+ev.Region+":"+ev.Source),
		Route:  "EventBridge " + ev.Source + " " + ev.DetailType,
		Header: jsonHeader(),
		Query:  url.Values{"@type": {ev.DetailType}, "@resource": ev.Resources}.Encode(),
		Body:   ev.Detail,
		Trace:  jobTrace(ev.Detail),

		Asynchronous: true,
	}, nil
}
