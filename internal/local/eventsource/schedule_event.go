package eventsource

import (
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
)

// Stand-ins for the account and the Region that EventBridge names in its events.
const (
	scheduleAccount = "123456789012"
	scheduleRegion  = "us-east-1"
)

// scheduledEvent is the payload of a schedule without an input. Detail is an empty
// object in a rule's event, and the string "{}" in an event of EventBridge Scheduler.
type scheduledEvent struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

// Schedule.payload returns the function's input for the run that is due at the given
// time.
func (s Schedule) payload(at time.Time) []byte {
	if s.Input != nil {
		return s.Input
	}
	e := scheduledEvent{
		Version:    "0",
		ID:         ids.UUID(),
		DetailType: "Scheduled Event",
		Source:     "aws.scheduler",
		Account:    scheduleAccount,
		Time:       at.UTC().Format(time.RFC3339),
		Region:     scheduleRegion,
		Resources:  []string{"arn:aws:scheduler:" + scheduleRegion + ":" + scheduleAccount + ":schedule/default/" + s.Name},
		Detail:     "{}",
	}
	if s.Rule {
		e.Source = "aws.events"
		e.Resources = []string{"arn:aws:events:" + scheduleRegion + ":" + scheduleAccount + ":rule/" + s.Name}
		e.Detail = struct{}{}
	}
	return marshal(e)
}
