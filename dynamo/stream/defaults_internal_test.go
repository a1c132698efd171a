package stream

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
)

// The defaults are those that the options' comments name.
func TestDefaults(t *testing.T) {
	t.Parallel()
	client := dynamodb.New(dynamodb.Options{})
	store, err := dynamo.New(client, "table")
	if err != nil {
		t.Fatal(err)
	}
	if d := NewDrain(store, jobs.Route{}).opt; d.MaxTries != 5 || d.Concurrency != 8 {
		t.Errorf("a drain has %+v", d)
	}
	if c := NewCompleter(noQueue{}).opt; c.Grace != jobs.DefaultGrace || c.LeaveToSweep {
		t.Errorf("a completer has %+v", c)
	}
	s := NewSweep(client, store).opt
	if s.Late != 15*time.Minute || s.Grace != jobs.DefaultGrace || s.PassWithin != 24*time.Hour ||
		s.Segments != 8 || s.PageSize != 1000 || s.PagesPerSecond != 10 || s.MaxEntries != 1000 {
		t.Errorf("a sweep has %+v", s)
	}
}

type noQueue struct{ jobs.TicketQueue }
