package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	layout "github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// entryItem is as much of a waiting record as its entry shows.
func entryItem(why state.Reason, pk string, since int64) layout.Map {
	return layout.Map{
		"pk": tabletest.Str(pk), "waits": tabletest.Str(layout.WaitKey(why, pk)), "wait_ms": tabletest.Num(since),
		"id": tabletest.Str("id-" + pk), "route": tabletest.Str("POST /rides"), "last_err": tabletest.Str("down"), "tries": tabletest.Num(3),
		"secret": tabletest.Str("not in the index"),
	}
}

// load puts items into the table, 25 at a time.
func load(ctx context.Context, tab *tabletest.Table, items ...layout.Map) error {
	for chunk := range slices.Chunk(items, 25) {
		var puts []types.WriteRequest
		for _, it := range chunk {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		out, err := tab.Direct.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{tab.Name: puts}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			return fmt.Errorf("%w; %d are left", err, len(out.UnprocessedItems))
		}
	}
	return nil
}

func list(t testing.TB, w *stream.Waiting, most int) (pks []string) {
	t.Helper()
	for e, err := range w.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if pks = append(pks, e.PK); len(pks) == most {
			break
		}
	}
	return pks
}

// The list has everything that waits, once and the oldest first, however it lies in the
// partitions and pages of the index, and goes on behind any of its entries.
func TestWaitingInOrder(t *testing.T) {
	t.Parallel()
	tab := tabletest.Local(t)
	now := time.Now().Truncate(time.Millisecond)
	var items []layout.Map
	var want []stream.Entry
	for i := range 600 {
		why := []state.Reason{state.ReasonStuck, state.ReasonStuck, state.ReasonStuck, state.ReasonParked, state.ReasonUnknown}[rand.N(5)]
		since := now.Add(-time.Duration(rand.N(40)) * time.Minute) // many at the same time
		pk := fmt.Sprintf("v1##%04d", i)
		items = append(items, entryItem(why, pk, since.UnixMilli()))
		want = append(want, stream.Entry{Reason: why, PK: pk, Since: since})
	}
	slices.SortFunc(want, func(a, b stream.Entry) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.PK, b.PK)
	})
	expired := entryItem(state.ReasonBlocked, "v1##expired", now.Add(-time.Hour).UnixMilli())
	expired["exp_s"] = tabletest.Num(now.Add(-time.Minute).Unix())
	items = append(items, expired, layout.Map{"pk": tabletest.Str("v1##good"), "st": tabletest.Str("done")})
	if err := load(t.Context(), tab, items...); err != nil {
		t.Fatal(err)
	}
	pks := func(keep func(stream.Entry) bool) (pks []string) {
		for _, e := range want {
			if keep(e) {
				pks = append(pks, e.PK)
			}
		}
		return pks
	}
	all := pks(func(stream.Entry) bool { return true })
	if diff := cmp.Diff(all, list(t, stream.NewWaiting(tab.Client, tab.Store), 0)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	parked := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.Only = []state.Reason{state.ReasonParked} })
	if diff := cmp.Diff(pks(func(e stream.Entry) bool { return e.Reason == state.ReasonParked }), list(t, parked, 0)); diff != "" {
		t.Errorf("only parked (-want +got):\n%s", diff)
	}
	for _, at := range []int{0, 1, 300, 598, 599} {
		on := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.After = want[at] })
		if diff := cmp.Diff(all[at+1:], list(t, on, 0)); diff != "" && at < 599 {
			t.Errorf("behind entry %d (-want +got):\n%s", at, diff)
		}
	}
	got, err := stream.NewWaiting(tab.Client, tab.Store, func(o *stream.WaitingOptions) { o.Now = func() time.Time { return now } }).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted := stream.Counted{ByReason: map[state.Reason]stream.Tally{
		state.ReasonUnknown: {}, state.ReasonStuck: {}, state.ReasonBlocked: {}, state.ReasonParked: {}, state.ReasonUnreadable: {},
	}}
	for _, e := range want {
		tally := counted.ByReason[e.Reason]
		tally.Count++
		tally.Oldest = max(tally.Oldest, int64(now.Sub(e.Since)/time.Second))
		counted.ByReason[e.Reason] = tally
		counted.Count++
		counted.Oldest = max(counted.Oldest, tally.Oldest)
	}
	if diff := cmp.Diff(counted, *got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// A table of an earlier version has no index: callers must be able to tell.
func TestWaitingWithoutIndex(t *testing.T) {
	t.Parallel()
	tab := tabletest.Local(t)
	in := dynamo.CreateTableInput("old-" + tab.Name)
	in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:1]
	if _, err := tab.Direct.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	old, err := dynamo.New(tab.Client, *in.TableName)
	if err != nil {
		t.Fatal(err)
	}
	waiting := stream.NewWaiting(tab.Client, old)
	if _, err := waiting.Count(t.Context()); !errors.Is(err, stream.ErrNoIndex) {
		t.Errorf("Count: %v", err)
	}
	for _, err := range waiting.All(t.Context()) {
		if !errors.Is(err, stream.ErrNoIndex) {
			t.Errorf("All: %v", err)
		}
	}
	none, err := dynamo.New(tab.Client, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.NewWaiting(tab.Client, none).Count(t.Context()); err == nil || errors.Is(err, stream.ErrNoIndex) {
		t.Errorf("Count without a table: %v", err)
	}
}

// A worker counts what waits on a schedule of its own, zero included, and neither scans
// nor writes for that.
func TestWorkerCountsWhatWaits(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	var got []*stream.Counted
	w := worker.New(tab.Client, tab.Store, asSQS(&tickets{}), func(o *worker.Options) {
		o.Hooks.Counted = func(_ context.Context, c *stream.Counted) { got = append(got, c) }
	})
	const event = `{"source":"aws.scheduler","task":"count"}`
	if out, err := w.Invoke(t.Context(), []byte(event)); err != nil ||
		string(out) != `{"count":0,"oldest_s":0,"by_reason":{"blocked":{"count":0,"oldest_s":0},"parked":{"count":0,"oldest_s":0},`+
			`"stuck":{"count":0,"oldest_s":0},"unknown":{"count":0,"oldest_s":0},"unreadable":{"count":0,"oldest_s":0}}}` {
		t.Errorf("answered %s, %v", out, err)
	}
	crowd(t, tab)
	swept(t, tab)
	tab.Transport.Reset()
	if _, err := w.Invoke(t.Context(), []byte(event)); err != nil {
		t.Fatal(err)
	}
	if calls := tab.Transport.Calls(); calls["Query"] == 0 || calls["Query"]+1 != tab.Transport.Total() || calls["GetItem"] != 1 /* the sweep's place */ {
		t.Errorf("a count took %v", calls)
	}
	counts := make(map[state.Reason]int)
	for why, tally := range got[1].ByReason {
		counts[why] = tally.Count
		if tally.Count > 0 != (tally.Oldest > 0) && why == state.ReasonStuck { // a minute old
			t.Errorf("%s: %+v", why, tally)
		}
	}
	want := map[state.Reason]int{state.ReasonUnknown: 0, state.ReasonStuck: 1, state.ReasonBlocked: 0, state.ReasonParked: 1, state.ReasonUnreadable: 1}
	if diff := cmp.Diff(want, counts); diff != "" || len(got) != 2 || got[0].Count != 0 || got[1].Count != 3 || got[1].Oldest < 50 {
		t.Errorf("counted %+v (-want +got):\n%s", got[1], diff)
	}
}

// meanwhile is a client that lets another writer come in before its first update.
type meanwhile struct {
	*dynamodb.Client
	do func()
	at string // with which the key of the write begins: a sweep may write its cursor before
}

func (m *meanwhile) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if do := m.do; do != nil && strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, m.at) {
		m.do = nil
		do()
	}
	return m.Client.UpdateItem(ctx, in, opts...)
}

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
		if e.Reason == state.ReasonParked {
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
	tab.remove(t, pk)
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

// After each write, by an attempt, an operator, a drain or a sweep, the record is in the
// index exactly while it waits for people, and under its cause. The writers are late:
// each writes from what it has read earlier, and another one may write between a
// writer's read and its write.
func TestWaitingFollowsEveryWrite(t *testing.T) {
	t.Parallel()
	seen := make(chan map[state.Reason]int)
	const walks = 4
	for seed := range uint64(walks) {
		tab := tabletest.New(t)
		go func() { seen <- walk(t, tab, seed, 80) }()
	}
	all := make(map[state.Reason]int)
	for range walks {
		for cause, n := range <-seen {
			all[cause] += n
		}
	}
	for _, cause := range []state.Reason{state.NoReason, state.ReasonUnknown, state.ReasonStuck, state.ReasonBlocked, state.ReasonParked} {
		if all[cause] < 5 {
			t.Errorf("%d records waited for %q: the walks show nothing about it", all[cause], cause)
		}
	}
}

// walker writes a record in many ways.
type walker struct {
	t    *testing.T
	rand *rand.Rand
	tab  *tabletest.Table
	late *dynamo.Store // another writer comes in between its calls
	now  time.Time

	view   *store.Record   // as its holder knows it
	images []*store.Record // as drains know it
	last   *store.Record   // as it was checked last
	inside bool
	steps  []string
	causes map[state.Reason]int
}

// step does one of the writes that the record allows. A refusal is no error.
func (w *walker) step(s *dynamo.Store) {
	ctx := w.t.Context()
	w.now = w.now.Add(time.Second)
	r, err := w.tab.Store.Load(ctx, walkPK)
	if err != nil {
		w.t.Error(err)
		return
	}
	if r == nil || !r.Expires.IsZero() {
		w.claim(s)
		return
	}
	if w.images = append(w.images, r); len(w.images) > 4 {
		w.images = w.images[1:]
	}
	image := w.images[w.rand.IntN(len(w.images))]
	job := ""
	for name := range image.Jobs {
		job = max(job, name)
	}
	do := func(name string, err error) {
		w.steps = append(w.steps, name)
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, jobs.ErrMoved) {
			w.t.Errorf("%s: %v", name, err)
		}
	}
	switch n := w.rand.IntN(12); {
	case n < 5:
		do(w.hold(s, r))
	case n == 5 && r.State == store.Stuck:
		do(w.settle(s, r))
	case n < 8 && job != "":
		_, err := stream.Fail(ctx, s, image, map[string]error{job: errors.New("refused")}, 1)
		do("park "+job, err)
	case n == 8 && job != "":
		do("acknowledge "+job, stream.Ack(ctx, s, image, job))
	case n == 9:
		_, err := stream.Redrive(ctx, s, walkPK, image.ID, "jane")
		do("redrive", err)
	case n == 10 && job != "":
		_, err := stream.Redrive(ctx, s, walkPK, image.ID, "jane", job)
		do("redrive "+job, err)
	case n == 11:
		do("let go", stream.LetGo(ctx, s, image))
	}
}

func (w *walker) claim(s *dynamo.Store) {
	claimed := state.Claimed(store.Record{PK: walkPK, ID: tabletest.NewKey(), Fingerprint: "f", Input: &store.Input{Method: "POST", Path: "/"}},
		w.now, w.now.Add(time.Hour))
	state.Stamp(claimed, nil, tabletest.NewKey())
	w.steps = append(w.steps, "claim")
	held, err := s.Claim(w.t.Context(), store.Claim{Next: claimed, Now: w.now.Add(100 * time.Hour)})
	if err != nil {
		w.t.Error(err)
	}
	if held == nil {
		w.view = claimed
	}
}

// hold is a write of the holder, or the take-over by the next.
func (w *walker) hold(s *dynamo.Store, r *store.Record) (string, error) {
	v := w.view
	if v == nil || v.State != store.Open || v.Lease.IsZero() {
		if r.State != store.Open {
			return "nothing", nil
		}
		next := state.TakenByClient(r, w.now, w.now.Add(time.Hour), 0, r.Input, r.Handler)
		return w.commit(s, "take over", r, next, tabletest.NewKey())
	}
	staged := map[string]store.Job{fmt.Sprintf("%d.0", len(v.Phases)): {Kind: "mail", Args: []byte("{}")}}
	one := []store.Phase{{Name: fmt.Sprintf("p%d", len(v.Phases)), Result: []byte("1")}}
	switch w.rand.IntN(8) {
	case 0, 1, 2:
		return w.commit(s, "phase", v, state.Advanced(v, w.now, one, staged, nil), v.Owner)
	case 3:
		return w.commit(s, "give up", v, state.MadeStuck(v, w.now, "why"), v.Owner)
	case 4:
		one[0].Result, one[0].Intent = nil, true
		return w.commit(s, "give up a call", v, state.MadeStuck(state.Advanced(v, w.now, one, nil, nil), w.now, "why"), v.Owner)
	case 5:
		return w.commit(s, "refuse", v, state.Released(v, w.now, state.Release{Refusal: errors.New("another phase")}), v.Owner)
	case 6:
		return w.commit(s, "release", v, state.Released(v, w.now, state.Release{Calls: []string{"pay#1"}[:w.rand.IntN(2)]}), v.Owner)
	}
	return w.commit(s, "finish", v, state.Finished(v, store.Response{Status: 201}, w.now), v.Owner)
}

func (w *walker) settle(s *dynamo.Store, r *store.Record) (string, error) {
	how := []state.Settlement{{}, {NotMade: true}, {Result: []byte("1")}}[w.rand.IntN(3)]
	next, err := state.Settled(r, how, w.now)
	if err != nil {
		return "nothing", nil //nolint:nilerr // the decision doesn't fit the record
	}
	return w.commit(s, "settle", r, next, "operator")
}

func (w *walker) commit(s *dynamo.Store, name string, prev, next *store.Record, owner string) (string, error) {
	if next == prev {
		return "nothing", nil
	}
	written := *next
	state.Stamp(&written, prev, owner)
	held, err := s.Commit(w.t.Context(), store.Commit{Prev: prev, Next: &written})
	if err == nil && held == nil {
		w.view = &written // its jobs as the attempt knows them: what became of them it doesn't see
	}
	if held != nil {
		w.view, name = nil, name+" refused"
	}
	return name, err
}

// check compares the attributes of the index with the record.
func (w *walker) check() bool {
	out, err := w.tab.Direct.GetItem(w.t.Context(), &dynamodb.GetItemInput{TableName: &w.tab.Name, Key: layout.Key(walkPK), ConsistentRead: aws.Bool(true)})
	if err != nil {
		w.t.Error(err)
		return false
	}
	r, err := layout.Decode(out.Item)
	if err != nil {
		w.t.Error(err)
		return false
	}
	want, got, key := state.WaitOf(r), "", ""
	w.causes[want.Reason]++
	if v, ok := out.Item["waits"].(*types.AttributeValueMemberS); ok {
		got = v.Value
	}
	if want.Reason != state.NoReason {
		key = layout.WaitKey(want.Reason, walkPK)
	}
	_, placed := out.Item["wait_in"]
	if got != key || r.WaitSince.IsZero() != (key == "") || placed == (key == "") {
		w.t.Errorf("waits %q since %v, in the list %t; the record waits for %q", got, r.WaitSince, placed, key)
		return false
	}
	last := w.last
	if w.last = r; last != nil && last.ID == r.ID && !last.WaitSince.IsZero() && key != "" && !last.WaitSince.Equal(r.WaitSince) {
		w.t.Errorf("the record has waited since %v, and now since %v", last.WaitSince, r.WaitSince)
		return false
	}
	at := (&layout.Decoder{It: out.Item}).WaitIn()
	if want.Reason == state.ReasonParked { // any of the parked jobs
		if r.Jobs[at.Job].Failed == "" {
			w.t.Errorf("the list shows job %q, which is not parked", at.Job)
		}
		return r.Jobs[at.Job].Failed != ""
	}
	at.Reason = want.Reason
	if diff := cmp.Diff(want, at); diff != "" {
		w.t.Errorf("the list shows (-want +got):\n%s", diff)
		return false
	}
	return true
}

const walkPK = "v1##walk"

func walk(t *testing.T, tab *tabletest.Table, seed uint64, steps int) map[state.Reason]int {
	w := &walker{t: t, rand: rand.New(rand.NewPCG(seed, 7)), tab: tab, now: time.Now().Truncate(time.Millisecond), causes: make(map[state.Reason]int)}
	var err error
	if w.late, err = dynamo.New(between{w.tab.Client, w}, w.tab.Name); err != nil {
		t.Error(err)
		return nil
	}
	for range steps {
		w.step(w.late)
		if !w.check() {
			t.Errorf("seed %d: after %q", seed, w.steps)
			break
		}
	}
	return w.causes
}

// between is a client between whose reads and writes another writer comes.
type between struct {
	*dynamodb.Client
	w *walker
}

func (b between) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if w := b.w; !w.inside && w.rand.IntN(3) == 0 {
		w.inside = true
		w.step(w.tab.Store)
		w.check()
		w.inside = false
	}
	return b.Client.UpdateItem(ctx, in, opts...)
}
