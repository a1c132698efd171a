package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// netTodo is a todo in short.
type netTodo struct {
	ID         string
	Gone       bool
	Jobs, Lost map[string]int // and the stream record that has them come again
	LetGo      int            // the stream record that asks for it; -1 for none
}

// A batch is netted: what its later records say counts, and a job comes again from the first
// record that has it.
func TestNetted(t *testing.T) {
	t.Parallel()
	kept := func(r *store.Record, keep store.Keep) *store.Record { r.Keep = keep; return r }
	type jobsAt = map[string]int
	for name, tt := range map[string]struct {
		changes []change
		want    []netTodo
	}{
		"staged, and staged again": {
			[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 2, "0.0", "1.0")}, {old: version("a", 1), new: version("a", 2, "0.0", "1.0")}},
			[]netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0, "1.0": 1}, LetGo: -1}},
		},
		"delivered in the same batch":               {[]change{{new: version("a", 1, "0.0", "0.1")}, {old: version("a", 1, "0.0", "0.1"), new: version("a", 1, "0.1")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.1": 0}, LetGo: -1}}},
		"parked in the same batch":                  {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 1, "0.0!")}}, nil},
		"redriven":                                  {[]change{{old: version("a", 1, "0.0!"), new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
		"delivered, and acknowledged":               {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 1)}}, nil},
		"parked, and redriven":                      {[]change{{new: version("a", 1, "0.0!")}, {old: version("a", 1, "0.0!"), new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 1}, LetGo: -1}}},
		"an acknowledgement":                        {[]change{{old: version("a", 1, "0.0"), new: version("a", 1)}}, nil},
		"finished without jobs":                     {[]change{{new: version("b", 1, "0.0")}, {old: version("a", 1), new: version("a", 2)}}, []netTodo{{ID: "b", Jobs: jobsAt{"0.0": 0}, LetGo: -1}, {ID: "a", LetGo: 1}}},
		"finished at once, without jobs":            {[]change{{new: version("a", 1)}}, []netTodo{{ID: "a", LetGo: 0}}},
		"finished without jobs, and gone":           {[]change{{new: version("a", 1)}, {old: version("a", 1)}}, nil},
		"finished without jobs, and let go":         {[]change{{new: version("a", 1)}, {old: version("a", 1), new: kept(version("a", 1), "")}}, nil},
		"finished without jobs, which another adds": {[]change{{new: version("a", 1)}, {old: version("a", 1), new: version("a", 2, "1.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"1.0": 1}, LetGo: -1}}},
		"gone, with a job that waits for people":    {[]change{{old: version("a", 1, "0.0", "0.1!")}}, []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 0}, Lost: jobsAt{"0.1": 0}, LetGo: -1}}},
		"staged, and gone":                          {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
		"gone, and put back":                        {[]change{{old: version("a", 1, "0.0")}, {new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tt.changes {
				tt.changes[i].at = i
			}
			if diff := cmp.Diff(tt.want, inShort(netted(tt.changes))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("the key is used anew", func(t *testing.T) {
		t.Parallel()
		next := version("b", 1, "0.0")
		next.PK = "v1##a"
		got := inShort(netted([]change{{at: 7, old: version("a", 4, "0.0"), new: next}}))
		want := []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 7}, LetGo: -1}, {ID: "b", Jobs: jobsAt{"0.0": 7}, LetGo: -1}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func inShort(todos []*todo) (all []netTodo) {
	places := func(refs []jobRef) map[string]int {
		if len(refs) == 0 {
			return nil
		}
		m := make(map[string]int)
		for _, j := range refs {
			m[j.name] = j.at
		}
		return m
	}
	for _, t := range todos {
		short := netTodo{ID: t.image.ID, Gone: t.gone, Jobs: places(t.jobs), Lost: places(t.lost), LetGo: -1}
		if t.letGo {
			short.LetGo = t.letGoAt
		}
		all = append(all, short)
	}
	return all
}

// Jobs with a time are put off. Those of a deleted record are delivered if their time had come
// by its removal, or their delivery had begun; the others are lost with it.
func TestPutOff(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(d time.Duration) store.Job { return store.Job{At: now.Add(d)} }
	begun := store.Job{At: now.Add(time.Hour), Begun: now}
	for name, tt := range map[string]struct {
		job               store.Job
		gone              bool
		removed           time.Time
		jobs, later, lost int
	}{
		"without a time":                         {store.Job{}, false, now, 1, 0, 0},
		"to come":                                {at(time.Hour), false, now, 0, 1, 0},
		"its time has come":                      {at(-time.Hour), false, now, 0, 1, 0},
		"on its way":                             {begun, false, now, 0, 1, 0},
		"gone, without a time":                   {store.Job{}, true, now, 1, 0, 0},
		"gone, to come":                          {at(time.Hour), true, now, 0, 0, 1},
		"gone, its time had come":                {at(-time.Hour), true, now, 1, 0, 0},
		"gone, on its way":                       {begun, true, now, 1, 0, 0},
		"gone before its time, which has come":   {at(-time.Minute), true, now.Add(-time.Hour), 0, 0, 1},
		"gone, nobody knows when":                {at(-time.Minute), true, time.Time{}, 1, 0, 0},
		"gone in time to come, by a wrong clock": {at(time.Minute), true, now.Add(time.Hour), 0, 0, 1},
	} {
		td := &todo{image: &store.Record{Jobs: map[string]store.Job{"0.0": tt.job}}, gone: tt.gone, time: tt.removed, jobs: []jobRef{{name: "0.0"}}}
		if td.putOff(now); len(td.jobs) != tt.jobs || len(td.later) != tt.later || len(td.lost) != tt.lost {
			t.Errorf("%s: %d to deliver, %d for later, %d lost", name, len(td.jobs), len(td.later), len(td.lost))
		}
	}
}

// What a drain does about each outcome: whether the job comes again, and what it writes.
func TestOutcomesOfDeliveries(t *testing.T) {
	t.Parallel()
	down, held := fmt.Errorf("x: %w", jobs.ErrSinkDown), fmt.Errorf("x: %w", jobs.ErrHeldBack)
	mail, post := store.Job{Kind: "mail"}, store.Job{Kind: "post"}
	for name, tt := range map[string]struct {
		jobs      map[string]store.Job // of the record
		errs      map[string]error     // of the sink
		maxTries  int
		gone      bool
		letGo     bool
		broken    bool
		meanwhile string // before the first update
		forbidden int    // the update that is

		first, delivered, updates int
		told                      string
	}{
		"delivered":                         {jobs: map[string]store.Job{"0.0": mail, "0.1": post}, first: none, delivered: 2, updates: 1, told: "delivered delivered "},
		"the sink is down":                  {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": down}, first: 3, told: "failed "},
		"held back":                         {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": held}, first: 3, told: "failed "},
		"failed":                            {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 2, first: 3, updates: 1, told: "failed "},
		"failed often enough":               {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 1, first: none, updates: 2, told: "failed parked "},
		"the second fails":                  {jobs: map[string]store.Job{"0.0": mail, "0.1": {Kind: "post", Group: "g"}}, errs: map[string]error{"post": errBroken}, maxTries: 2, first: 4, delivered: 1, updates: 2, told: "delivered failed "},
		"not acknowledged":                  {jobs: map[string]store.Job{"0.0": mail, "0.1": post}, forbidden: 1, first: 3, delivered: 2, updates: 1, told: "delivered delivered "},
		"not counted":                       {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 2, forbidden: 1, first: 3, updates: 1, told: "failed "},
		"not parked":                        {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 1, forbidden: 2, first: 3, updates: 2, told: "failed "},
		"its record is gone":                {jobs: map[string]store.Job{"0.0": mail}, gone: true, first: none, delivered: 1, told: "delivered job_lost "},
		"it fails, and its record is gone":  {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 1, gone: true, first: 3, told: "failed job_lost "},
		"nothing is left":                   {letGo: true, first: none, updates: 1},
		"nothing is left, not written":      {letGo: true, forbidden: 1, first: 9, updates: 1},
		"it fails, and another delivers it": {jobs: map[string]store.Job{"0.0": mail, "0.1": post}, errs: map[string]error{"mail": errBroken, "post": held}, maxTries: 2, meanwhile: "ack 0.0", first: 4, updates: 1, told: "failed failed "},
		"it fails, and can't be read":       {jobs: map[string]store.Job{"0.0": mail}, errs: map[string]error{"mail": errBroken}, maxTries: 2, broken: true, first: none, updates: 1, told: "failed skipped "},
		"its record can't be read":          {jobs: map[string]store.Job{"0.0": mail}, broken: true, first: none, delivered: 1, updates: 1, told: "delivered skipped "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, tt.jobs)
			if tt.broken {
				db.edit(t, rec.PK, "SET resp = :x", nil, item.Map{":x": new(item.Values).Str("broken")})
			}
			db.before = func() {
				if db.fails = nil; db.updates == tt.forbidden {
					db.fails = errForbidden
				}
				if db.updates == 1 {
					db.meanwhile(t, rec.PK, tt.meanwhile)
				}
			}
			var got []string
			told := ""
			var log bytes.Buffer
			d := NewDrain(st, byKind(tt.errs, &got), func(o *DrainOptions) {
				o.MaxTries, o.Logger = tt.maxTries, slog.New(slog.NewTextHandler(&log, nil))
				o.Hooks = Hooks{
					Delivered: func(context.Context, jobs.Delivery) { told += "delivered " },
					Failed:    func(context.Context, jobs.Delivery, error) { told += "failed " },
					Parked:    func(_ context.Context, e Entry) { told += string(e.Reason) + " " },
					JobLost:   func(_ context.Context, e Entry) { told += string(e.Reason) + " " },
					Skipped:   func(context.Context, Skipped) { told += "skipped " },
				}
			})
			td := &todo{image: rec, gone: tt.gone, letGo: tt.letGo, letGoAt: 9}
			for i, name := range slices.Sorted(maps.Keys(tt.jobs)) {
				td.jobs = append(td.jobs, jobRef{name, 3 + i})
			}
			if tt.gone {
				td.lost = []jobRef{{"0.7", 3}}
			}
			first, delivered := d.run(t.Context(), []*todo{td})
			if first != tt.first || delivered != tt.delivered || db.updates != tt.updates || told != tt.told || td.retry != (first != none) || td.retryFrom != first {
				t.Errorf("first %d, %d delivered, %d updates, told %q, again %v from %d; want %+v", first, delivered, db.updates, told, td.retry, td.retryFrom, tt)
			}
			failures := 0 // those that the job or its sink is to blame for
			for _, kind := range got {
				if err := tt.errs[kind]; err != nil && !errors.Is(err, jobs.ErrHeldBack) {
					failures++
				}
			}
			if n := strings.Count(log.String(), "delivery failed"); n != failures {
				t.Errorf("%d failures are logged, want %d:\n%s", n, failures, log.String())
			}
			quiet := NewDrain(st, byKind(tt.errs, &got), func(o *DrainOptions) { o.MaxTries, o.Logger = 1, slog.New(slog.DiscardHandler) })
			quiet.run(t.Context(), []*todo{td}) // without hooks
		})
	}
}

// An image that is five minutes old is no evidence: the record says which of its jobs wait. If
// the record is gone, none does here; if it can't be read, all do.
func TestOldImages(t *testing.T) {
	t.Parallel()
	parked := store.Job{Kind: "mail", Failed: "bad"}
	for name, tt := range map[string]struct {
		age    time.Duration
		gone   bool // says the stream
		edit   string
		reads  int
		jobs   []string
		later  []string
		letGo  bool
		broken bool
	}{
		"young":              {age: oldImage - 1, jobs: []string{"0.0", "0.1", "0.2"}, later: []string{"0.3"}},
		"without a time":     {age: -1, jobs: []string{"0.0", "0.1", "0.2"}, later: []string{"0.3"}},
		"of a record's end":  {age: time.Hour, gone: true, jobs: []string{"0.0", "0.1", "0.2"}, later: []string{"0.3"}},
		"old":                {age: oldImage, reads: 1, jobs: []string{"0.0"}, later: []string{"0.3"}},
		"the key is used":    {age: oldImage, edit: "SET id = :x", reads: 1},
		"it can't be read":   {age: oldImage, broken: true, reads: 1, jobs: []string{"0.0", "0.1", "0.2"}, later: []string{"0.3"}},
		"all were delivered": {age: oldImage, edit: "SET jobs = :none", reads: 1, letGo: true},
		"it isn't there":     {age: oldImage, edit: "elsewhere", reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := &glanced{broken: tt.broken}
				st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": parked, "0.3": {Kind: "mail", At: time.Now().Add(time.Hour)}})
				var v item.Values
				switch tt.edit {
				case "SET id = :x":
					db.edit(t, rec.PK, tt.edit, nil, item.Map{":x": v.Str("another")})
				case "SET jobs = :none":
					db.edit(t, rec.PK, tt.edit, nil, item.Map{":none": v.Map(nil)})
				}
				image := *rec
				if tt.edit == "elsewhere" {
					image.PK = "v1##elsewhere"
				}
				d := &Drain{writer: jobWriter{item.Table{Access: db, Name: st.Table().Name}}, opt: DrainOptions{Concurrency: 2}}
				d.log = slog.New(slog.DiscardHandler)
				td := &todo{image: &image, gone: tt.gone, jobs: []jobRef{{name: "0.0"}, {name: "0.1"}, {name: "0.2"}}, later: []jobRef{{name: "0.3"}}}
				if tt.age >= 0 {
					td.time = time.Now().Add(-tt.age)
				}
				d.recheck(t.Context(), []*todo{td})
				names := func(refs []jobRef) (all []string) {
					for _, j := range refs {
						all = append(all, j.name)
					}
					return all
				}
				if db.reads != tt.reads || !slices.Equal(names(td.jobs), tt.jobs) || !slices.Equal(names(td.later), tt.later) || td.letGo != tt.letGo || td.image.ID != rec.ID {
					t.Errorf("after %d reads %v wait, and %v for later; let go %v, of %s", db.reads, td.jobs, td.later, td.letGo, td.image.ID)
				}
			})
		})
	}
}

// A tenth of the time is left for the acknowledgement, a second at least.
func TestReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for whole, want := range map[time.Duration]time.Duration{time.Minute: 54 * time.Second, 10 * time.Second: 9 * time.Second, 5 * time.Second: 4 * time.Second, time.Second: 0} {
			ctx, cancel := context.WithTimeout(t.Context(), whole)
			short, stop := withReserve(ctx)
			if deadline, _ := short.Deadline(); time.Until(deadline) != want {
				t.Errorf("of %v the sink has %v, want %v", whole, time.Until(deadline), want)
			}
			stop()
			cancel()
		}
		ctx, cancel := withReserve(t.Context())
		if _, limited := ctx.Deadline(); limited {
			t.Error("without a deadline there is one")
		}
		if cancel(); ctx.Err() == nil {
			t.Error("it goes on")
		}
	})
}

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
			{image: image("gone"), gone: true, retry: true, retryFrom: 6, jobs: job},
			{image: image("failed"), retry: true, retryFrom: 1, jobs: job, heldBack: job},
			{image: image("held"), retry: true, retryFrom: 2, heldBack: job},
			{image: image("unread"), retry: true, retryFrom: 2},
			{image: image("gone first"), gone: true, retry: true, retryFrom: 4, jobs: job},
			{image: image("refused"), retry: true, retryFrom: 3, jobs: job},
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
			if tt.pk != "" {
				image.PK = tt.pk
			}
			var log bytes.Buffer
			d := &Drain{writer: jobWriter{item.Table{Access: db, Name: st.Table().Name}}, sink: jobs.Route{}}
			d.log = slog.New(slog.NewTextHandler(&log, nil))
			td := &todo{image: &image, jobs: []jobRef{{"0.1", 1}, {"0.2", 1}}}
			d.holdBack(t.Context(), td)
			if len(td.heldBack) != tt.held || len(td.jobs) != 2-tt.held || td.jobs[len(td.jobs)-1].name != "0.2" || db.reads != tt.n {
				t.Errorf("after %d reads %v go on, and %v are held back", db.reads, td.jobs, td.heldBack)
			}
			if (log.Len() > 0) != tt.logs {
				t.Errorf("the log is %q", log.String())
			}
		})
	}
}

// A job without an outcome isn't acknowledged, and comes again.
func TestConcludeWithoutOutcome(t *testing.T) {
	t.Parallel()
	db := &glanced{}
	_, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": {Kind: "mail"}})
	d := &Drain{writer: jobWriter{item.Table{Access: db, Name: fakeTable}}}
	d.log, d.hooks = slog.New(slog.DiscardHandler), &Hooks{}
	td := &todo{image: rec, jobs: []jobRef{{"0.0", 3}, {"0.1", 4}}}
	if first, delivered := d.conclude(t.Context(), td, map[string]error{"0.1": nil}); first != 3 || delivered != 1 {
		t.Errorf("comes again from %d, %d delivered; want 3 and 1", first, delivered)
	}
	now, err := d.writer.table.Glance(t.Context(), rec.PK)
	if err != nil {
		t.Fatal(err)
	}
	if left := slices.Sorted(maps.Keys(now.Jobs)); !slices.Equal(left, []string{"0.0"}) {
		t.Errorf("the record has the jobs %q, want only 0.0", left)
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
		d.recent.add(state.JobID("o", "0.0"))
		if got := d.ahead(todo, "1.0"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: waits for %v, want %v", name, got, tt.want)
		}
	}
}

// A job waits for the earlier jobs of its group only, which aren't in its batch.
func TestJobWaitsForItsGroupOnly(t *testing.T) {
	t.Parallel()
	d := &Drain{sink: jobs.Route{}}
	todo := &todo{image: &store.Record{ID: "o", Jobs: map[string]store.Job{
		"0.0": {Kind: "a", Group: "g"}, "0.1": {Kind: "a", Group: "h"}, "0.2": {Kind: "a", Group: "g"}, "0.3": {Kind: "a"},
		"0.4": {Kind: "a", Group: "h"}, "0.5": {Kind: "a", Group: "g", Failed: "parked"}, "0.6": {Kind: "a", Group: "g"},
	}}, jobs: []jobRef{{name: "0.2"}, {name: "0.6"}}}
	for name, want := range map[string][]string{"0.0": nil, "0.1": nil, "0.2": {"0.0"}, "0.3": nil, "0.4": {"0.1"}, "0.6": {"0.0"}} {
		if got := d.ahead(todo, name); !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v", name, got, want)
		}
	}
}

// A part is begun with two seconds left, and not with less; the first is begun in any case.
func TestTimeForAPart(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{2 * time.Second: "", 2*time.Second - 1: "1", time.Minute: ""} {
		t.Run(left.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := imaged("INSERT", soundItem(t))
				b := batch{n: 2, size: func(int) int { return mostAtOnce }, at: func(i int) (*events.DynamoDBEventRecord, error) {
					rec := rec
					rec.Change.SequenceNumber = strconv.Itoa(i)
					return &rec, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), left+time.Second)
				defer cancel()
				r := &reader{log: slog.New(slog.DiscardHandler), hooks: &Hooks{}}
				re, err := r.inParts(ctx, b, func([]change) int { time.Sleep(time.Second); return none }) //nolint:forbidigo // virtual
				again := ""
				for _, f := range re.BatchItemFailures {
					again += f.ItemIdentifier
				}
				if again != want || err != nil {
					t.Errorf("%q comes again, want %q, %v", again, want, err)
				}
			})
		})
	}
}

// The ticket of jobs ends when none of them waits in its record, and waits while one does.
func TestRetryOfATicket(t *testing.T) {
	t.Parallel()
	parked := store.Job{Kind: "mail", Failed: "bad"}
	for name, tt := range map[string]struct {
		jobs      map[string]store.Job
		operation string
		pk        string
		edit      string
		broken    bool
		down      bool
		delivered int
		again     bool
		skipped   int
	}{
		"two jobs":            {jobs: map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": {Kind: "mail"}, "0.2": parked}, delivered: 2},
		"the sink is down":    {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, down: true, delivered: 1, again: true},
		"parked":              {jobs: map[string]store.Job{"0.0": parked}},
		"nothing is left":     {},
		"another operation's": {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, operation: "another"},
		"no record":           {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, pk: "v1##none"},
		"nobody can read it":  {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, edit: "SET st = :x", skipped: 1},
		"it can't be seen":    {jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, broken: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &glanced{broken: tt.broken}
			_, rec := db.open(t, tt.jobs)
			if tt.edit != "" {
				db.edit(t, rec.PK, tt.edit, nil, item.Map{":x": new(item.Values).Str("?")})
			}
			ticket := jobs.Ticket{PK: rec.PK, Operation: rec.ID, Jobs: true}
			if tt.pk != "" {
				ticket.PK = tt.pk
			}
			if tt.operation != "" {
				ticket.Operation = tt.operation
			}
			var got []string
			errs := map[string]error{}
			if tt.down {
				errs["mail"] = jobs.ErrSinkDown
			}
			skipped := 0
			d := &Drain{writer: jobWriter{item.Table{Access: db, Name: fakeTable}}, sink: byKind(errs, &got), opt: DrainOptions{Concurrency: 1, MaxTries: 5}}
			d.log, d.hooks = slog.New(slog.DiscardHandler), &Hooks{Skipped: func(context.Context, Skipped) { skipped++ }}
			if err := d.Retry(t.Context(), ticket); (err != nil) != tt.again || len(got) != tt.delivered || skipped != tt.skipped {
				t.Errorf("%v, delivered %q, skipped %d", err, got, skipped)
			}
			if tt.jobs == nil {
				if held, err := d.writer.table.Glance(t.Context(), rec.PK); err != nil || held.Keep != "" {
					t.Errorf("not let go: %+v, %v", held, err)
				}
			}
		})
	}
}

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
	if c := NewCompleter(noQueue{}).opt; c.Grace != state.DefaultGrace || c.LeaveToSweep {
		t.Errorf("a completer has %+v", c)
	}
	s := NewSweep(client, store).opt
	if s.Late != 15*time.Minute || s.Grace != state.DefaultGrace || s.PassWithin != 24*time.Hour ||
		s.Segments != 8 || s.PageSize != 1000 || s.PagesPerSecond != 10 || s.MaxEntries != 1000 {
		t.Errorf("a sweep has %+v", s)
	}
}

type noQueue struct{ TicketQueue }
