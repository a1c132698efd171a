package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	layout "github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

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
		w.now, w.now.Add(time.Hour), state.Life{})
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
		next := state.TakenByClient(r, w.now, w.now.Add(time.Hour), state.Life{}, r.Input, r.Handler)
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
