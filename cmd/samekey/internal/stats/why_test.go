package stats

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
)

// A lease that ends hours ahead belongs to a working attempt. Only a lease that
// ends in more than a day comes from a wrong clock. The sweep decides the same.
func TestLongLeaseIsAtWork(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]string{2 * time.Hour: "at work", 25 * time.Hour: "waits for the client"} {
		r := &store.Record{State: store.Open, Keep: store.KeepOpen, Lease: now.Add(ahead), Run: now}
		if got := why(r, now, time.Minute); got != want {
			t.Errorf("a lease of %v: %s, want %s", ahead, got, want)
		}
	}
}

// An unfinished record that is kept for its jobs waits for people.
func TestStuckBesideItsJobs(t *testing.T) {
	t.Parallel()
	r := &store.Record{State: store.Stuck, Keep: store.KeepJobs}
	if got := why(r, time.Now(), time.Minute); got != "waits for people" {
		t.Errorf("it %s", got)
	}
}

// A report counts all added items, and scales the monthly units from a sample to the table.
func TestReport(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	rep := New("records", now, time.Minute)
	add := func(size int, age time.Duration, r *store.Record) {
		r.Created, r.PK = now.Add(-age), "v1#rides#"+string(r.State)+r.ID
		if r.Run.IsZero() {
			r.Run = r.Created
		}
		rep.Add(records.Item{PK: r.PK, Record: r, Size: size})
	}
	f, g := store.HandlerID{Function: "f"}, store.HandlerID{Function: "g"}
	add(1024, time.Hour, &store.Record{State: store.Done, Expires: now.Add(time.Hour), Ver: 3, Route: "/a", Handler: f, Secret: "s"})
	add(1025, day, &store.Record{State: store.Done, Expires: now, Ver: 5, Route: "/a", Handler: f, Secret: "s"})
	add(2048, day+1, &store.Record{
		State: store.Done, Keep: store.KeepJobs, Until: now.Add(time.Hour), Run: now, Ver: 7, Route: "/b", Handler: f, Jobs: map[string]store.Job{"0.0": {Failed: "550"}, "0.1": {}, "0.2": {}},
	})
	add(2049, time.Hour+1, &store.Record{State: store.Done, Expires: now.Add(30 * time.Second), Run: now, Ver: 1, Route: "/b", Handler: g, Secret: "s", Scheme: "x"})
	add(0, 0, &store.Record{State: store.Done, Expires: now.Add(29 * time.Second), Route: "/b", Handler: store.HandlerID{Function: "freed"}, Secret: "s"})
	add(0, 7*day, &store.Record{State: store.Open, Blocked: true, Route: "/c"})
	add(0, 7*day+1, &store.Record{State: store.Stuck, WaitSince: now})
	add(0, 30*day, &store.Record{State: store.Open, ID: "1", Keep: store.KeepOpen, Lease: now.Add(time.Second)})
	add(0, 30*day+1, &store.Record{State: store.Open, ID: "2", Keep: store.KeepOpen, Input: &store.Input{}})
	add(0, 31*day, &store.Record{State: store.Open, ID: "3", Keep: store.KeepFreed, Expires: now.Add(-time.Second)})
	add(0, 2*time.Minute, &store.Record{State: store.Open, ID: "4", Expires: now.Add(time.Hour)})
	add(0, time.Hour, &store.Record{State: store.Open, ID: "5", Keep: store.KeepOpen})
	add(0, time.Second, &store.Record{State: store.Open, ID: "6", Keep: store.KeepOpen})
	add(0, 40*day, &store.Record{State: store.Stuck, ID: "7", WaitSince: now, Phases: []store.Phase{{Intent: true}}})
	rep.Add(records.Item{Record: &store.Record{State: store.Done, Created: now, Expires: now.Add(time.Hour), Secret: "no run"}})
	rep.Add(records.Item{PK: "samekey#sweep#"})
	rep.Add(records.Item{PK: "x", Err: errors.New("v is 3")})
	rep.Items = 30
	rep.End(15, false)
	inHour := now.Add(time.Hour)
	want := &Report{
		Table: "records", At: now, Items: 30, Seen: 15, Records: 15, Others: 1, Unreadable: 1,
		States: []*Count{
			{"done", "replayable", 4},
			{"done", "expired", 1},
			{"done", "with undelivered jobs", 1},
			{"open", "abandoned a moment ago", 1},
			{"open", "abandoned, expires", 1},
			{"open", "at work", 1},
			{"open", "blocked: the program refuses to continue", 1},
			{"open", "freed", 1},
			{"open", "waits for the client", 1},
			{"open", "waits for the completer", 1},
			{"stuck", "waits for people", 2},
		},
		Routes:    []*Count{{"", "", 9}, {"/b", "", 3}, {"/a", "", 2}, {"/c", "", 1}},
		Ages:      []*Count{{"up to 1 hour", "", 6}, {"up to 1 day", "", 2}, {"up to 7 days", "", 2}, {"up to 30 days", "", 2}, {"older", "", 3}},
		Retention: []*Kept{{"f", 3600, 86400, 3}, {"g", 60, 60, 1}},
		Needs:     []*Need{{"", "", 9, 8, inHour}, {"no run", "", 1, 0, inHour}, {"s", "", 2, 0, inHour}, {"s", "x", 1, 0, now.Add(30 * time.Second)}},
		Jobs:      2, Parked: 1, MeanBytes: 409, MostBytes: 2049, OverKB: 3, OldestOpen: now.Add(-30*day - 1), OldestOpenRecord: "v1#rides#open2", WriteUnits: 16 * 30 * 2,
	}
	if diff := cmp.Diff(want, rep, cmpopts.IgnoreUnexported(Report{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	units := rep.WriteUnits
	for _, tt := range []struct {
		items, seen int64
		whole       bool
		want        int64
	}{{30, 15, true, units / 2}, {15, 15, false, units / 2}, {16, 15, false, 16 * units / 30}, {30, 0, false, units / 2}, {14, 15, false, units / 2}, {30, 1, false, 15 * units}} {
		rep.Items = tt.items
		if rep.End(tt.seen, tt.whole); rep.WriteUnits != tt.want || rep.Seen != tt.seen || rep.Whole != tt.whole {
			t.Errorf("%+v: %d write units of %d items, whole: %t", tt, rep.WriteUnits, rep.Seen, rep.Whole)
		}
	}
	none := New("records", now, time.Minute)
	if none.End(0, true); none.MeanBytes != 0 || none.Ages == nil || len(none.Ages) > 0 {
		t.Errorf("of nothing, the mean is %d, the ages are %v", none.MeanBytes, none.Ages)
	}
	none.Add(records.Item{Record: &store.Record{Created: now}, Size: 7})
	if none.End(1, true); none.MeanBytes != 7 || len(none.Ages) != 1 {
		t.Errorf("of one, the mean is %d, the ages are %v", none.MeanBytes, none.Ages)
	}
}
