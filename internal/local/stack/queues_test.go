package stack

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/sam"
)

// Lambda makes no mapping of a queue that would bring a message again while the
// function still works on it.
func TestVisibilityBelowTheTimeoutIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		visibility string
		timeout    time.Duration
		refused    bool
	}{
		"by default, below": {"", 31 * time.Second, true},
		"equal":             {"60", time.Minute, false},
		"below":             {"59", time.Minute, true},
	} {
		q := sam.Queue{ID: "Q", Attributes: map[string]string{}}
		if tt.visibility != "" {
			q.Attributes["VisibilityTimeout"] = tt.visibility
		}
		fn := sam.Function{ID: "Fn", Timeout: tt.timeout, Events: []sam.Event{{Name: "E", Queue: &sam.QueueEvent{Queue: "Q"}}, {Schedule: &sam.ScheduleEvent{}}}}
		if err := checkVisibility([]sam.Queue{{ID: "Other"}, q}, []sam.Function{fn}); (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVisibilityGoesWithTheFunctionsTimeout(t *testing.T) {
	t.Parallel()
	feeds := func(timeout time.Duration, queues ...string) sam.Function {
		f := sam.Function{Timeout: timeout}
		for _, id := range queues {
			f.Events = append(f.Events, sam.Event{Queue: &sam.QueueEvent{Queue: id}})
		}
		return f
	}
	functions := []sam.Function{
		feeds(30*time.Second, "six times", "default", "shared", "zero", "odd"),
		feeds(60*time.Second, "shared"),
		{Timeout: time.Hour, Events: []sam.Event{{Route: &sam.RouteEvent{}}}},
	}
	for name, tt := range map[string]struct {
		given   string
		timeout time.Duration
		want    string
	}{
		"six times": {"180", 3 * time.Second, "18"},
		"default":   {"", 3 * time.Second, "3"},
		"shared":    {"360", 3 * time.Second, "18"},
		"nobody's":  {"300", 3 * time.Second, "300"},
	} {
		q := sam.Queue{ID: name, Attributes: map[string]string{}}
		if tt.given != "" {
			q.Attributes["VisibilityTimeout"] = tt.given
		}
		scaleVisibility([]sam.Queue{q}, functions, tt.timeout)
		if got := q.Attributes["VisibilityTimeout"]; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	long := sam.Queue{ID: "six times", Attributes: map[string]string{"VisibilityTimeout": "180"}}
	scaleVisibility([]sam.Queue{long}, functions, 24*time.Hour)
	if diff := cmp.Diff(map[string]string{"VisibilityTimeout": "43200"}, long.Attributes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
