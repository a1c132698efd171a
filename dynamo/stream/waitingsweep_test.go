package stream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	layout "github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// waits returns what the index has, as "why pk".
func waits(t testing.TB, tab *table, optFns ...func(*stream.WaitingOptions)) map[string]stream.Entry {
	t.Helper()
	all := make(map[string]stream.Entry)
	for e, err := range stream.NewWaiting(tab.Client, tab.Store, optFns...).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[string(e.Reason)+" "+e.PK] = e
	}
	return all
}

func swept(t testing.TB, tab *table, optFns ...func(*stream.SweepOptions)) *stream.Report {
	t.Helper()
	rep, err := tab.sweep(optFns...).Run(t.Context())
	if err != nil || !rep.Complete {
		t.Fatalf("got %+v, %v", rep, err)
	}
	return rep
}

func remove(t testing.TB, tab *table, pk string) {
	t.Helper()
	if _, err := tab.Direct.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tab.Name, Key: layout.Key(pk)}); err != nil {
		t.Fatal(err)
	}
}

// A sweep puts into the index what an earlier version of Samekey left waiting, takes out
// what that version has ended, and leaves everything else out: companions, other
// people's items, and what a completer or client will end.
func TestSweepPlacesWhatWaits(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	crowd(t, tab)
	blocked := item(t, open(map[string]any{"pk": text("v1##blocked")}))
	blocked["blocked"] = layout.Yes
	tab.Put(t, blocked)
	tab.Put(t, item(t, open(map[string]any{
		"pk": text("v1##resumed"), "waits": text(layout.WaitKey(state.ReasonStuck, "v1##resumed")), "wait_ms": digits(1000), "wait_in": map[string]any{"M": map[string]any{}},
	})))
	tab.Put(t, item(t, open(map[string]any{
		"pk": text("v1##moved"), "st": text("stuck"), "waits": text(layout.WaitKey(state.ReasonParked, "v1##moved")), "wait_ms": digits(1000),
		"wait_in": map[string]any{"M": map[string]any{"j": text("0.0")}},
	})))
	tab.Put(t, item(t, open(map[string]any{ // given up before its first job, in its first attempt
		"pk": text("v1##early"), "v": digits(1), "st": text("stuck"), "jobs": nil, "run_ms": nil,
	})))
	look(t, tab) // changes nothing
	rep := swept(t, tab)
	got := make(map[string]int)
	for why, e := range waits(t, tab) {
		if e.Reason == stream.ReasonParked {
			why = "parked " + e.Job + " " + e.LastErr
		}
		got[why]++
		switch e.PK {
		case "v1##stuck":
			if e.LastErr != "gave up" || e.Tries != 3 || e.Route != "POST /orders" || e.ID != "i" || !e.Since.Equal(e.Run) || e.Run.IsZero() {
				t.Errorf("the stuck one is %+v", e)
			}
		case "v1##early":
			if !e.Run.Equal(e.Created) || !e.Since.Equal(e.Run) || e.Run.IsZero() {
				t.Errorf("the early one is %+v", e)
			}
		case "v1##moved":
			if e.Since.UnixMilli() != 1000 || e.Job != "" {
				t.Errorf("the moved one is %+v", e)
			}
		case "v1##future":
			if !strings.Contains(e.LastErr, "layout version 2") || e.Record == "" {
				t.Errorf("the unreadable one is %+v", e)
			}
		}
	}
	want := map[string]int{"stuck v1##stuck": 1, "stuck v1##moved": 1, "stuck v1##early": 1, "blocked v1##blocked": 1, "parked 0.0 bad": 1, "unreadable v1##future": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the index (-want +got):\n%s", diff)
	}
	if rep.Placed != 5 {
		t.Errorf("%d records were placed, want 5", rep.Placed)
	}
	if again := swept(t, tab); again.Placed != 0 {
		t.Errorf("%d records were placed again", again.Placed)
	}
}

// A sweep reads late: a record that was settled since waits for nobody.
func TestSweepPlacesOnlyWhatItSaw(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.Put(t, item(t, open(map[string]any{"pk": text("v1##stuck"), "st": text("stuck")})))
	settle := func() {
		r, err := tab.Store.Load(t.Context(), "v1##stuck")
		if err != nil {
			t.Fatal(err)
		}
		next, err := state.Settled(r, state.Settlement{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		state.Stamp(next, r, "operator")
		if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); held != nil || err != nil {
			t.Fatal(held, err)
		}
	}
	client := &meanwhile{Client: tab.Client, do: settle, at: "v1#"}
	late, err := dynamo.New(client, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.NewSweep(tab.Client, late).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if client.do != nil {
		t.Error("nobody came in between: the test shows nothing")
	}
	if got := waits(t, tab); len(got) != 0 {
		t.Errorf("in the index: %v", got)
	}
}

// An unreadable item is listed beside itself, since nobody may change it. It leaves the
// list once it is readable or gone, or if nobody has seen it for a week.
func TestUnreadableItemsAreListed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	const pk = "v1##future"
	future := open(map[string]any{"pk": text(pk), "v": digits(2)})
	fromStream := func(event string) {
		t.Helper()
		drain := stream.NewDrain(tab.Store, &outbox{})
		if _, err := drain.Handle(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record(t, 1, event, nil, future)}}); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(want bool, after string, optFns ...func(*stream.WaitingOptions)) {
		t.Helper()
		if _, got := waits(t, tab, optFns...)["unreadable "+pk]; got != want {
			t.Errorf("%s: listed: %t", after, got)
		}
	}
	tab.Put(t, item(t, future))
	fromStream("INSERT")
	listed(true, "seen by a drain")
	unchanged := tab.item(t, pk)
	swept(t, tab)
	listed(true, "seen by a sweep")
	if diff := cmp.Diff(len(unchanged), len(tab.item(t, pk))); diff != "" {
		t.Error("the unreadable item was changed")
	}
	in := func(d time.Duration) func(*stream.WaitingOptions) {
		return func(o *stream.WaitingOptions) { o.Now = func() time.Time { return time.Now().Add(d) } }
	}
	listed(true, "after six days", in(6*24*time.Hour))
	listed(false, "after eight days", in(8*24*time.Hour))
	tab.Put(t, item(t, open(map[string]any{"pk": text(pk)})))
	swept(t, tab)
	listed(false, "readable again")
	tab.Put(t, item(t, future))
	swept(t, tab)
	listed(true, "unreadable again")
	remove(t, tab, pk)
	swept(t, tab)
	listed(false, "gone")
	fromStream("REMOVE")
	listed(false, "its removal is seen by a drain")
	many := events.DynamoDBEvent{}
	for i := range 30 {
		many.Records = append(many.Records, record(t, i, "INSERT", nil, open(map[string]any{"pk": text(pk + strings.Repeat("x", i)), "v": digits(2)})))
	}
	if _, err := stream.NewDrain(tab.Store, &outbox{}).Handle(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if n := len(waits(t, tab)); n != 10 {
		t.Errorf("%d of 30 unreadable items of a batch are listed, want 10", n)
	}
}

// An item that becomes unreadable while a sweep strikes it off the list stays there.
func TestUnreadableAgainMeanwhile(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	future := open(map[string]any{"pk": text("v1##future"), "v": digits(2)})
	tab.Put(t, item(t, future))
	swept(t, tab)
	remove(t, tab, "v1##future")
	again := func() {
		later := time.Now().Add(time.Hour)
		tab.Put(t, item(t, future))
		swept(t, tab, func(o *stream.SweepOptions) { o.Name, o.Now = "another", func() time.Time { return later } })
		remove(t, tab, "v1##future") // so that the late sweep doesn't list it anew
	}
	client := &meanwhile{Client: tab.Client, do: again, at: "samekey#unreadable#"}
	late, err := dynamo.New(client, tab.Name)
	if err != nil {
		t.Fatal(err)
	}
	// Another of its segments could come to the item while it is there, and list it within the second of its first listing.
	if _, err := stream.NewSweep(tab.Client, late, func(o *stream.SweepOptions) { o.Segments = 1 }).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if client.do != nil {
		t.Error("nobody came in between: the test shows nothing")
	}
	if got := waits(t, tab); len(got) != 1 {
		t.Errorf("in the index: %v", got)
	}
}
