package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// lateQueue is a queue of tickets that refuses some.
type lateQueue struct {
	refused string // a record
	got     []string
	err     error         // of the context
	left    time.Duration // until its end
}

func (q *lateQueue) Put(ctx context.Context, all []jobs.Ticket) []error {
	errs := make([]error, len(all))
	for i, t := range all {
		q.got = append(q.got, fmt.Sprint(t.PK, " in ", time.Until(t.Due)))
		if t.PK == q.refused {
			errs[i] = errors.New("refused")
		}
	}
	deadline, _ := ctx.Deadline()
	q.err, q.left = ctx.Err(), time.Until(deadline)
	return errs
}

// Tickets are queued for what has to come again and for the times of jobs, also if the batch
// has taken all its time. Only a deleted record comes again by the stream.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &lateQueue{refused: "refused"}
		var told []string
		d := &Drain{opt: DrainOptions{Delayed: q, Hooks: Hooks{Delayed: func(_ context.Context, t jobs.Ticket) { told = append(told, t.PK) }}}}
		d.log, d.hooks = slog.New(slog.DiscardHandler), &d.opt.Hooks
		image := func(pk string) *store.Record {
			return &store.Record{PK: pk, Jobs: map[string]store.Job{"0.0": {At: time.Now().Add(time.Hour)}}}
		}
		job := []jobRef{{name: "0.0"}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		first := d.delay(ctx, []*todo{
			{image: image("delivered"), jobs: job},
			{image: image("gone"), gone: true, again: true, first: 6, jobs: job},
			{image: image("failed"), again: true, first: 1, jobs: job, held: job},
			{image: image("held"), again: true, first: 2, held: job},
			{image: image("unread"), again: true, first: 2},
			{image: image("gone first"), gone: true, again: true, first: 4, jobs: job},
			{image: image("refused"), again: true, first: 3, jobs: job},
			{image: image("later"), later: job},
		})
		if first != 4 {
			t.Errorf("comes again from %d, want 4", first)
		}
		soon, held := fmt.Sprint(" in ", state.JobPause), fmt.Sprint(" in ", state.HeldPause)
		if want := []string{"failed" + soon, "held" + held, "unread" + soon, "refused" + soon, "later in 1h0m0s"}; !slices.Equal(q.got, want) {
			t.Errorf("tickets %q, want %q", q.got, want)
		}
		if want := []string{"failed", "held", "unread"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
		if q.err != nil || q.left != 5*time.Second {
			t.Errorf("the queue has %v, %v", q.left, q.err)
		}
	})
}

// Without anything to wait for, the queue isn't asked.
func TestDelayOfNothing(t *testing.T) {
	t.Parallel()
	q := &ticketList{}
	if first := (&Drain{opt: DrainOptions{Delayed: q}}).delay(t.Context(), []*todo{{image: &store.Record{}}}); first != none || q.calls != 0 {
		t.Errorf("comes again from %d after %d calls", first, q.calls)
	}
}

// A job is held back behind an earlier job that still waits in its record. If the record can't
// be seen, it is held back too, and the drain tells so; if nobody can read the record, the job
// goes on.
func TestHeldBackBehindTheRecord(t *testing.T) {
	t.Parallel()
	var v item.Values
	for name, tt := range map[string]struct {
		edit    string
		names   map[string]string
		values  item.Map
		pk      string // of the image
		broken  bool
		held, n int // jobs held back, and reads
		logs    bool
	}{
		"it waits":            {held: 1, n: 1},
		"it was delivered":    {edit: "REMOVE jobs.#j", names: map[string]string{"#j": "0.0"}, n: 1},
		"it was parked":       {edit: "SET jobs.#j.#f = :x", names: map[string]string{"#j": "0.0", "#f": item.JobFailed}, values: item.Map{":x": v.Str("bad")}, n: 1},
		"another operation's": {edit: "SET id = :x", values: item.Map{":x": v.Str("another")}, n: 1},
		"the record is gone":  {pk: "v1##elsewhere", n: 1},
		"nobody can read it":  {edit: "SET st = :x", values: item.Map{":x": v.Str("?")}, n: 1},
		"it can't be seen":    {broken: true, held: 1, n: 1, logs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &glanced{broken: tt.broken}
			st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": {Kind: "mail"}, "0.2": {Kind: "mail", Group: "g"}})
			if tt.edit != "" {
				db.edit(t, rec.PK, tt.edit, tt.names, tt.values)
			}
			image := *rec
			image.PK = cmp.Or(tt.pk, image.PK)
			var log bytes.Buffer
			d := &Drain{jobs: jobWriter{item.Table{Access: db, Name: st.Table().Name}}, sink: jobs.Route{}}
			d.log = slog.New(slog.NewTextHandler(&log, nil))
			td := &todo{image: &image, jobs: []jobRef{{"0.1", 1}, {"0.2", 1}}}
			d.holdBack(t.Context(), td)
			if len(td.held) != tt.held || len(td.jobs) != 2-tt.held || td.jobs[len(td.jobs)-1].name != "0.2" || db.reads != tt.n {
				t.Errorf("after %d reads %v go on, and %v are held back", db.reads, td.jobs, td.held)
			}
			if (log.Len() > 0) != tt.logs {
				t.Errorf("the log is %q", log.String())
			}
		})
	}
}

// kinds is a sink that knows which kinds it delivers in order.
type kinds struct{ jobs.Sink }

func (kinds) Together(a, b string) bool { return a == b }

// A job waits for those before it that go to the same sink, and that this process has not
// delivered. Without a word of the sink all go to the same.
func TestJobWaitsForItsSinkOnly(t *testing.T) {
	t.Parallel()
	todo := &todo{image: &store.Record{ID: "o", Jobs: map[string]store.Job{
		"0.0": {Kind: "a"}, "0.1": {Kind: "b"}, "0.2": {Kind: "a"}, "0.3": {Kind: "a", At: time.Now()}, "1.0": {Kind: "a"}, "10.0": {Kind: "b"},
	}}}
	for name, tt := range map[string]struct {
		sink jobs.Sink
		want []string
	}{
		"one that knows":       {kinds{}, []string{"0.2"}},
		"one that doesn't say": {jobs.SinkFunc(nil), []string{"0.1", "0.2"}},
	} {
		d := &Drain{sink: tt.sink}
		d.sent.add(jobs.JobID("o", "0.0"))
		if got := d.ahead(todo, "1.0"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: waits for %v, want %v", name, got, tt.want)
		}
	}
}
