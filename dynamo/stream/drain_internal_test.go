package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/tracetest"
	"github.com/samekey/samekey/seal"
)

// byKind is a sink that fails for some kinds.
func byKind(errs map[string]error, got *[]string) jobs.Sink {
	return jobs.SinkFunc(func(_ context.Context, d jobs.Delivery) error {
		*got = append(*got, d.Kind)
		return errs[d.Kind]
	})
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
			td := &todo{image: rec, gone: tt.gone, letGo: tt.letGo, at: 9}
			for i, name := range slices.Sorted(maps.Keys(tt.jobs)) {
				td.jobs = append(td.jobs, jobRef{name, 3 + i})
			}
			if tt.gone {
				td.lost = []jobRef{{"0.7", 3}}
			}
			first, delivered := d.run(t.Context(), []*todo{td})
			if first != tt.first || delivered != tt.delivered || db.updates != tt.updates || told != tt.told || td.again != (first != none) || td.first != first {
				t.Errorf("first %d, %d delivered, %d updates, told %q, again %v from %d; want %+v", first, delivered, db.updates, told, td.again, td.first, tt)
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

// A job that this process has delivered isn't delivered again, but acknowledged.
func TestDeliveredJobIsRemembered(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
	var got []string
	calls := &sinkCalls{Sink: byKind(nil, &got)}
	d := NewDrain(st, calls)
	for range 2 {
		td := &todo{image: rec, jobs: []jobRef{{name: "0.0"}}}
		if first, n := d.run(t.Context(), []*todo{td}); first != none || n != 1 {
			t.Errorf("first %d, %d delivered", first, n)
		}
	}
	if len(got) != 1 || calls.n != 1 || db.updates < 2 {
		t.Errorf("delivered %q in %d calls with %d updates", got, calls.n, db.updates)
	}
}

// sinkCalls counts the calls of a sink.
type sinkCalls struct {
	jobs.Sink
	n int
}

func (s *sinkCalls) Deliver(ctx context.Context, all []jobs.Delivery) []error {
	s.n++
	return s.Sink.Deliver(ctx, all)
}

// lockable is a key that can't be had for a while.
type lockable struct {
	seal.Provider
	locked bool
	calls  int
}

func (l *lockable) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	if l.calls++; l.locked {
		return nil, errBroken
	}
	return l.Provider.Open(ctx, id, wrapped)
}

// Jobs whose args can't be opened are told as failed, and nobody's fault: all jobs under their
// key wait, after one call for it, and so do later jobs of their groups.
func TestSealedJobsWait(t *testing.T) {
	t.Parallel()
	static, err := seal.NewStatic("one", map[string][]byte{"one": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	key := &lockable{Provider: static}
	db := &restless{}
	_, _ = db.open(t, nil)
	withSeal, err1 := dynamo.New(db, fakeTable, func(o *dynamo.Options) { o.Seal = seal.New(static) })
	reader, err2 := dynamo.New(db, fakeTable, func(o *dynamo.Options) { o.Seal = seal.New(key) })
	plain, err3 := dynamo.New(db, fakeTable)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond)
	read := func(st *dynamo.Store, id string, all map[string]store.Job) *todo {
		rec := &store.Record{
			PK: "v1##" + id, State: store.Done, Owner: "o", Ver: 2, ID: id, Keep: store.KeepJobs, Until: now.Add(time.Hour).Truncate(time.Second),
			Response: &store.Response{Status: 201}, Jobs: all, Fingerprint: "f", Created: now, Run: now, Route: "POST /orders",
		}
		if held, err := st.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil || held != nil {
			t.Fatal(held, err)
		}
		image, err := reader.Table().Glance(t.Context(), rec.PK)
		if err != nil {
			t.Fatal(err)
		}
		td := &todo{image: image}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			td.jobs = append(td.jobs, jobRef{name: name})
		}
		return td
	}
	args := []byte("1")
	first := read(withSeal, "a", map[string]store.Job{"0.0": {Kind: "a1", Group: "g", Args: args}, "0.1": {Kind: "a2", Group: "h", Args: args}})
	second := read(withSeal, "b", map[string]store.Job{"0.0": {Kind: "b1", Group: "i", Args: args}})
	third := read(plain, "c", map[string]store.Job{"0.0": {Kind: "c1", Group: "g", Args: args}, "0.1": {Kind: "c2", Group: "j", Args: args}})
	var got []string
	failed := make(map[string]error)
	d := NewDrain(reader, byKind(nil, &got), func(o *DrainOptions) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Hooks.Failed = func(_ context.Context, j jobs.Delivery, err error) { failed[j.Kind] = err }
	})
	key.locked = true
	if n, _ := d.run(t.Context(), []*todo{first, second, third}); n == none || !slices.Equal(got, []string{"c2"}) || key.calls != 1 {
		t.Errorf("delivered %q after %d calls for the key", got, key.calls)
	}
	for kind, want := range map[string]error{"a1": jobs.ErrSinkDown, "a2": jobs.ErrSinkDown, "b1": jobs.ErrSinkDown, "c1": jobs.ErrHeldBack} {
		if !errors.Is(failed[kind], want) {
			t.Errorf("%s: %v, want %v", kind, failed[kind], want)
		}
	}
}

// An item of the stream that can't be read is listed for people by the drain.
func TestDrainListsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, _ := db.open(t, nil)
	var v item.Values
	rec := imaged("INSERT", item.Map{"pk": v.Str("v1##u"), "v": v.Num(99), "st": v.Str("open")})
	d := NewDrain(st, jobs.Route{}, func(o *DrainOptions) { o.Logger = slog.New(slog.DiscardHandler) })
	if _, err := d.Handle(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{rec}}); err != nil {
		t.Fatal(err)
	}
	if got, ok := findingOf(db.Item(fakeTable, findingPK("v1##u"))); !ok || got.pk != "v1##u" || got.reason != ReasonUnreadable {
		t.Errorf("listed %+v, %v", got, ok)
	}
}

// glanced is a table that counts its reads, which may fail.
type glanced struct {
	restless
	broken bool
	reads  int
}

func (g *glanced) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if g.reads++; g.broken {
		return nil, errForbidden
	}
	return g.restless.GetItem(ctx, in, opts...)
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
				d := &Drain{jobs: jobWriter{item.Table{Access: db, Name: st.Table().Name}}, opt: DrainOptions{Concurrency: 2}}
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

// The span of a delivery says how it ended.
func TestSpanOfADelivery(t *testing.T) {
	t.Parallel()
	var rec tracetest.Recorder
	d := &Drain{opt: DrainOptions{Tracer: &rec}}
	ends := d.traced(t.Context(), slices.Repeat(deliveries([]*todo{{image: version("a", 1, "0.0"), jobs: []jobRef{{name: "0.0"}}}}), 4))
	for i, err := range []error{nil, jobs.ErrHeldBack, jobs.ErrSinkDown, errors.New("x")} {
		ends(i, err)
	}
	want := []string{"", "held_back", "sink_unavailable", "delivery_failed"}
	for i, s := range rec.Spans() {
		if s.Code != want[i] {
			t.Errorf("span %d ends with %q, want %q", i, s.Code, want[i])
		}
	}
}
