package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// now is what is left of a record: its jobs, those that are parked with a "!" behind them, and
// whether it is kept and waits for people; "gone" if there is none.
func (r *restless) now(t testing.TB, pk string) string {
	t.Helper()
	got, err := r.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(fakeTable), Key: item.Key(pk)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Item == nil {
		return "gone"
	}
	rec, err := item.Glance(got.Item)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(rec.Jobs)) {
		if rec.Jobs[name].Failed != "" {
			name += "!"
		}
		words = append(words, name)
	}
	if rec.Keep != "" {
		words = append(words, "kept")
	}
	if _, waits := got.Item[item.AttrWait]; waits {
		words = append(words, "waits")
	}
	return strings.Join(words, " ")
}

// meanwhile is what others do to a record before a write.
func (r *restless) meanwhile(t testing.TB, pk, what string) {
	t.Helper()
	var v item.Values
	name := func(n string) map[string]string { return map[string]string{"#j": n} }
	switch what {
	case "":
	case "delete":
		if !r.Expire(fakeTable, pk) {
			t.Error("it is gone already")
		}
	case "anew":
		r.edit(t, pk, "SET id = :x", nil, item.Map{":x": v.Str("another")})
	case "add":
		r.edit(t, pk, "SET jobs.#j = :x", name("1.0"), item.Map{":x": v.Job("1.0", store.Job{Kind: "mail"})})
	case "break":
		r.edit(t, pk, "SET resp = :x", nil, item.Map{":x": v.Str("broken")})
	case "ver":
		r.edit(t, pk, "SET ver = ver + :one", nil, item.Map{":one": v.Num(1)})
	case "let go":
		r.edit(t, pk, "SET jobs = :x, exp_s = until_s REMOVE keep", nil, item.Map{":x": v.Map(nil)})
	case "unpark 0.1", "park 0.1":
		path := map[string]string{"#j": "0.1", "#f": item.JobFailed}
		if what == "park 0.1" {
			r.edit(t, pk, "SET jobs.#j.#f = :x", path, item.Map{":x": v.Str("bad")})
		} else {
			r.edit(t, pk, "REMOVE jobs.#j.#f", path, nil)
		}
	default: // "ack 0.1"
		r.edit(t, pk, "REMOVE jobs.#j", name(strings.TrimPrefix(what, "ack ")), nil)
	}
}

// What an acknowledgement leaves of the record, whatever has happened since the image, and how
// many writes that takes.
func TestAcknowledgement(t *testing.T) {
	t.Parallel()
	mail, parked := store.Job{Kind: "mail"}, store.Job{Kind: "mail", Tries: 5, Failed: "bad"}
	for name, tt := range map[string]struct {
		jobs      map[string]store.Job
		meanwhile string
		ack       string
		want      string
		updates   int
	}{
		"the last jobs":                      {map[string]store.Job{"0.0": mail, "0.1": mail}, "", "0.0 0.1", "", 1},
		"one of two":                         {map[string]store.Job{"0.0": mail, "0.1": mail}, "", "0.0", "0.1 kept", 1},
		"the last, beside another's":         {map[string]store.Job{"0.0": mail, "0.1": mail}, "ack 0.1", "0.0", "", 2},
		"the last, and a commit adds one":    {map[string]store.Job{"0.0": mail}, "add", "0.0", "1.0 kept", 2},
		"the last, which another has":        {map[string]store.Job{"0.0": mail}, "ack 0.0", "0.0", "", 2},
		"the last, of which another has one": {map[string]store.Job{"0.0": mail, "0.1": mail}, "ack 0.1", "0.0 0.1", "", 3},
		"the last, which another has let go": {map[string]store.Job{"0.0": mail}, "let go", "0.0", "", 1},
		"its record is gone":                 {map[string]store.Job{"0.0": mail}, "delete", "0.0", "gone", 1},
		"one of two, and the record is gone": {map[string]store.Job{"0.0": mail, "0.1": mail}, "delete", "0.0", "gone", 1},
		"another operation's":                {map[string]store.Job{"0.0": mail}, "anew", "0.0", "0.0 kept", 1},
		"beside a parked job":                {map[string]store.Job{"0.0": mail, "0.1": parked}, "", "0.0", "0.1! kept waits", 2},
		"beside a parked job, by another":    {map[string]store.Job{"0.0": mail, "0.1": parked}, "ack 0.0", "0.0", "0.1! kept waits", 1},
		"a parked job":                       {map[string]store.Job{"0.0": parked, "0.1": mail}, "", "0.0", "0.1 kept", 2},
		"the last, which is parked":          {map[string]store.Job{"0.0": parked}, "", "0.0", "", 1},
		"nothing":                            {map[string]store.Job{"0.0": mail}, "", "", "0.0 kept", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, tt.jobs)
			db.meanwhile(t, rec.PK, tt.meanwhile)
			if err := Ack(t.Context(), st, rec, strings.Fields(tt.ack)...); err != nil {
				t.Error(err)
			}
			if got := db.now(t, rec.PK); got != tt.want || db.updates != tt.updates {
				t.Errorf("%q after %d updates, want %q after %d", got, db.updates, tt.want, tt.updates)
			}
			db.fails = errForbidden
			if err := Ack(t.Context(), st, rec, strings.Fields(tt.ack)...); (err == nil) != (tt.ack == "") {
				t.Errorf("forbidden: %v", err)
			}
		})
	}
}

// What failures leave of the record.
func TestFailures(t *testing.T) {
	t.Parallel()
	tried := func(n int) store.Job { return store.Job{Kind: "mail", Tries: n} }
	for name, tt := range map[string]struct {
		jobs      map[string]store.Job
		meanwhile string
		failed    []string
		want      string
		tries     int // of 0.0
		updates   int
	}{
		"the first":              {map[string]store.Job{"0.0": tried(0)}, "", []string{"0.0"}, "0.0 kept", 1, 1},
		"the last but one":       {map[string]store.Job{"0.0": tried(1)}, "", []string{"0.0"}, "0.0 kept", 2, 1},
		"the last":               {map[string]store.Job{"0.0": tried(2)}, "", []string{"0.0"}, "0.0! kept waits", 3, 2},
		"the last of one of two": {map[string]store.Job{"0.0": tried(2), "0.1": tried(0)}, "", []string{"0.0", "0.1"}, "0.0! 0.1 kept waits", 3, 2},
		"it was delivered since": {map[string]store.Job{"0.0": tried(2), "0.1": tried(0)}, "ack 0.0", []string{"0.0"}, "0.1 kept", 0, 1},
		"it is parked":           {map[string]store.Job{"0.0": {Kind: "mail", Tries: 3, Failed: "bad"}}, "", []string{"0.0"}, "0.0! kept waits", 3, 0},
		"the record is gone":     {map[string]store.Job{"0.0": tried(2)}, "delete", []string{"0.0"}, "gone", 0, 1},
		"another operation's":    {map[string]store.Job{"0.0": tried(2)}, "anew", []string{"0.0"}, "0.0 kept", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, tt.jobs)
			db.meanwhile(t, rec.PK, tt.meanwhile)
			failures := make(map[string]error)
			for _, name := range tt.failed {
				failures[name] = errBroken
			}
			now, err := Fail(t.Context(), st, rec, failures, 3)
			if err != nil || now.Jobs["0.0"].Tries != tt.tries {
				t.Errorf("got %+v, %v", now, err)
			}
			if got := db.now(t, rec.PK); got != tt.want || db.updates != tt.updates {
				t.Errorf("%q after %d updates, want %q after %d", got, db.updates, tt.want, tt.updates)
			}
		})
	}
}

// A job that is parked has its error, and the record waits for the first of them.
func TestParkedJobsInOrder(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, map[string]store.Job{"10.0": {Kind: "late", Tries: 4}, "2.0": {Kind: "early", Tries: 6}})
	now, err := Fail(t.Context(), st, rec, map[string]error{"10.0": errors.New("ten"), "2.0": errors.New("")}, 5)
	if err != nil || now.Jobs["10.0"].Failed != "ten" || now.Jobs["2.0"].Failed != "unknown" || now.WaitSince.IsZero() {
		t.Fatalf("got %+v, %v", now, err)
	}
	d := item.Decoder{It: db.Items(fakeTable)[0]}
	if at := d.WaitIn(); at.Job != "2.0" || at.Kind != "early" || at.Failed != "unknown" || at.Tries != 7 {
		t.Errorf("waits for %+v", at)
	}
}

// An operator's decision about jobs: which it takes, what it leaves of the record, and how often
// it may have to write.
func TestDecisionsAboutJobs(t *testing.T) {
	t.Parallel()
	parked, soon := store.Job{Kind: "mail", Tries: 5, Failed: "bad"}, store.Job{Kind: "mail", At: time.Now().Add(time.Hour).Truncate(time.Millisecond)}
	begun := soon
	begun.Begun = time.Now().Truncate(time.Millisecond)
	for name, tt := range map[string]struct {
		cancel    bool
		jobs      map[string]store.Job
		names     string
		meanwhile string // before the first write
		id, pk    string
		n         int
		want      string
		updates   int
		err       error
	}{
		"all parked jobs":            {jobs: map[string]store.Job{"0.0": parked, "0.1": parked, "0.2": {Kind: "mail"}}, n: 2, want: "0.0 0.1 0.2 kept", updates: 1},
		"one of them":                {jobs: map[string]store.Job{"0.0": parked, "0.1": parked}, names: "0.1", n: 1, want: "0.0! 0.1 kept waits", updates: 1},
		"one of two, both redriven":  {jobs: map[string]store.Job{"0.0": parked, "0.1": parked}, names: "0.0", meanwhile: "unpark 0.1", n: 1, want: "0.0 0.1 kept", updates: 2},
		"one, and another is parked": {jobs: map[string]store.Job{"0.0": parked, "0.1": {Kind: "mail"}}, names: "0.0", meanwhile: "park 0.1", n: 1, want: "0.0 0.1! kept waits", updates: 2},
		"one that isn't parked":      {jobs: map[string]store.Job{"0.0": parked, "0.1": {Kind: "mail"}}, names: "0.1", want: "0.0! 0.1 kept waits"},
		"one that was delivered":     {jobs: map[string]store.Job{"0.0": parked, "0.1": parked}, names: "0.0", meanwhile: "ack 0.0", want: "0.1! kept waits", updates: 1},
		"of another operation":       {jobs: map[string]store.Job{"0.0": parked}, id: "another", want: "0.0! kept waits", err: jobs.ErrMoved},
		"of another since":           {jobs: map[string]store.Job{"0.0": parked}, meanwhile: "anew", want: "0.0! kept waits", updates: 1, err: store.ErrUnknown},
		"of no record":               {jobs: map[string]store.Job{"0.0": parked}, pk: "v1##none", want: "0.0! kept waits"},
		"cancel all":                 {cancel: true, jobs: map[string]store.Job{"0.0": soon, "0.1": soon}, n: 2, want: "", updates: 2},
		"cancel one":                 {cancel: true, jobs: map[string]store.Job{"0.0": soon, "0.1": soon}, names: "0.1", n: 1, want: "0.0 kept", updates: 1},
		"cancel one on its way":      {cancel: true, jobs: map[string]store.Job{"0.0": begun}, want: "0.0 kept"},
		"cancel one without a time":  {cancel: true, jobs: map[string]store.Job{"0.0": {Kind: "mail"}}, want: "0.0 kept"},
		"cancel beside a parked job": {cancel: true, jobs: map[string]store.Job{"0.0": soon, "0.1": parked}, n: 1, want: "0.1! kept waits", updates: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, tt.jobs)
			db.before = func() {
				if db.updates == 1 {
					db.meanwhile(t, rec.PK, tt.meanwhile)
				}
			}
			decide, pk, id := Redrive, rec.PK, rec.ID
			if tt.cancel {
				decide = Cancel
			}
			if tt.pk != "" {
				pk = tt.pk
			}
			if tt.id != "" {
				id = tt.id
			}
			n, err := decide(t.Context(), st, pk, id, "jane", strings.Fields(tt.names)...)
			if n != tt.n || !errors.Is(err, tt.err) || db.updates != tt.updates {
				t.Errorf("%d decided, %v, after %d updates; want %d, %v, %d", n, err, db.updates, tt.n, tt.err, tt.updates)
			}
			if got := db.now(t, rec.PK); got != tt.want {
				t.Errorf("left is %q, want %q", got, tt.want)
			}
		})
	}
}

// torn is a table in memory that loses the answers to its updates.
type torn struct {
	restless
	applied bool // the writes are
	blind   bool // for reads, after the first
	reads   int
}

func (a *torn) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if a.applied {
		_, _ = a.restless.UpdateItem(ctx, in, opts...)
	}
	return nil, errForbidden // what no client repeats
}

func (a *torn) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if a.reads++; a.blind && a.reads > 1 {
		return nil, errBroken
	}
	return a.restless.GetItem(ctx, in, opts...)
}

// A decision whose write fails counts if the record has it.
func TestDecisionWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	soon := store.Job{Kind: "mail", At: time.Now().Add(time.Hour).Truncate(time.Millisecond)}
	for name, tt := range map[string]struct {
		applied, blind bool
		n              int
		left           string
	}{"made": {true, false, 1, ""}, "not made": {false, false, 0, "0.0 kept"}, "nobody can see": {true, true, 0, "kept"}} {
		db := &torn{applied: tt.applied, blind: tt.blind}
		_, rec := db.open(t, map[string]store.Job{"0.0": soon})
		w := jobWriter{item.Table{Access: db, Name: fakeTable}}
		pick := func(r *store.Record) []string { return []string{"0.0"} }
		n, err := w.decide(t.Context(), "cancel", rec.PK, rec.ID, "jane", pick, w.strike)
		if n != tt.n || (err == nil) != (tt.n == 1) || err != nil && !errors.Is(err, errForbidden) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if left := db.now(t, rec.PK); left != tt.left {
			t.Errorf("%s: left is %q, want %q", name, left, tt.left)
		}
	}
	db := &glanced{broken: true}
	_, rec := db.open(t, nil)
	w := jobWriter{item.Table{Access: db, Name: fakeTable}}
	if n, err := w.decide(t.Context(), "cancel", rec.PK, rec.ID, "jane", nil, nil); n != 0 || !errors.Is(err, errForbidden) {
		t.Errorf("a record that can't be read: %d, %v", n, err)
	}
}

// A delivery that begins is noted, once for all; if that can't be written, none of its jobs is
// delivered, and those that somebody has cancelled are left out.
func TestBeginOfDeliveries(t *testing.T) {
	t.Parallel()
	due := store.Job{Kind: "due", At: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
	for name, tt := range map[string]struct {
		meanwhile string
		forbidden bool
		gone      bool
		again     bool
		want      string
		updates   int
	}{
		"both":               {want: "at once, due", updates: 2},
		"cancelled":          {meanwhile: "ack 0.1", want: "at once", updates: 2},
		"another's by now":   {meanwhile: "anew", want: "", updates: 1},
		"nobody can read it": {meanwhile: "break", want: "at once", updates: 2},
		"not noted":          {forbidden: true, again: true, want: "at once", updates: 2},
		"its record is gone": {gone: true, want: "at once, due"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "at once"}, "0.1": due, "0.2": {Kind: "later"}})
			db.before = func() {
				if db.fails = nil; db.updates == 1 {
					db.meanwhile(t, rec.PK, tt.meanwhile)
					if tt.forbidden {
						db.fails = errForbidden
					}
				}
			}
			var got []string
			d := NewDrain(st, byKind(nil, &got))
			td := &todo{image: rec, gone: tt.gone, jobs: []jobRef{{"0.0", 1}, {"0.1", 2}}}
			first, _ := d.run(t.Context(), []*todo{td})
			slices.Sort(got)
			if strings.Join(got, ", ") != tt.want || (first == 2) != tt.again || !tt.again && first != none || db.updates != tt.updates {
				t.Errorf("delivered %q, comes again from %d after %d updates", got, first, db.updates)
			}
		})
	}
}

// What was read as a delivery began is what its acknowledgement goes by.
func TestBeginSeesTheRecord(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "at once"}, "0.1": {Kind: "due", At: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}})
	db.before = func() {
		if db.updates == 1 {
			db.meanwhile(t, rec.PK, "ack 0.0")
		}
	}
	var got []string
	first, n := NewDrain(st, byKind(nil, &got)).run(t.Context(), []*todo{{image: rec, jobs: []jobRef{{name: "0.1"}}}})
	if first != none || n != 1 || db.updates != 2 || db.now(t, rec.PK) != "" {
		t.Errorf("comes again from %d, %d delivered, %d updates; left is %q", first, n, db.updates, db.now(t, rec.PK))
	}
}

// An acknowledgement in a record that waits for people goes on from what another has written,
// and tells if it can't be written.
func TestAcknowledgementBesideAWait(t *testing.T) {
	t.Parallel()
	both := map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": {Kind: "mail", Tries: 5, Failed: "bad"}}
	db := &restless{}
	st, rec := db.open(t, both)
	db.before = func() {
		if db.updates == 2 {
			db.meanwhile(t, rec.PK, "ver")
		}
	}
	if err := Ack(t.Context(), st, rec, "0.0"); err != nil || db.updates != 3 || db.now(t, rec.PK) != "0.1! kept waits" {
		t.Errorf("%v after %d updates; left is %q", err, db.updates, db.now(t, rec.PK))
	}
	db = &restless{}
	st, rec = db.open(t, both)
	db.before = func() {
		if db.updates == 2 {
			db.fails = errForbidden
		}
	}
	if err := Ack(t.Context(), st, rec, "0.0"); !errors.Is(err, errForbidden) {
		t.Errorf("got %v", err)
	}
}
