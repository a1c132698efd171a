package stream_test

import (
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// What leaves the table's stream says to whom it is to go: tickets name the
// record's function and tenant, jobs their tenant.
func TestTicketsAndJobsAreAddressed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change                    map[string]any
		function, handler, tenant string
	}{
		"all of it":         {map[string]any{"fn": text("rides"), "hn": text("POST /rides"), "tn": text("jane")}, "rides", "POST /rides", "jane"},
		"without a name":    {map[string]any{"fn": text("rides")}, "rides", "", ""},
		"from elsewhere":    {nil, "", "", ""},
		"without its claim": {map[string]any{"hn": text("POST /rides")}, "", "POST /rides", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record(t, 1, "INSERT", nil, staged(tt.change))}}
			queue := &tickets{}
			handle(t, stream.NewCompleter(queue), ev)
			got := queue.all()
			if len(got) != 1 || got[0].Function != tt.function || got[0].Tenant != tt.tenant {
				t.Errorf("tickets %+v", got)
			}
			out := &outbox{}
			handle(t, stream.NewDrain(newTable(t).Store, out), ev)
			if len(out.all) != 1 || out.all[0].Tenant != tt.tenant {
				t.Errorf("delivered %+v", out.all)
			}
		})
	}
}

// The sweep's tickets and list say so, too.
func TestSweepAddressesWhatItFinds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	now := time.Now().Truncate(time.Millisecond)
	r := &store.Record{
		PK: "v1##swept", State: store.Open, Owner: "o", Ver: 1, ID: "i", Fingerprint: "f", Keep: store.KeepOpen, Input: &store.Input{Method: "POST", Path: "/"},
		Lease: now.Add(-time.Hour), Created: now.Add(-2 * time.Hour), Run: now.Add(-2 * time.Hour),
		Handler: store.HandlerID{Function: "rides", Name: "POST /rides"}, Tenant: "jane",
	}
	if held, err := tab.Store.Claim(t.Context(), store.Claim{Next: r, Now: now}); err != nil || held != nil {
		t.Fatalf("got %+v, %v", held, err)
	}
	queue := &tickets{}
	report, err := tab.sweep(func(o *stream.SweepOptions) { o.Queue = queue }).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Entries) != 1 || report.Entries[0].Function != "rides" || report.Entries[0].Handler != "POST /rides" {
		t.Errorf("listed %+v", report.Entries)
	}
	want := jobs.TicketFor(r).From(time.Time{})
	if got := queue.all(); len(got) != 1 {
		t.Errorf("tickets %+v", got)
	} else if got[0].Due = (time.Time{}); !cmp.Equal(want, got[0]) {
		t.Errorf("ticket %+v, want %+v", got[0], want)
	}
}
