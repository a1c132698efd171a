package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

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
		"the last jobs":                                  {map[string]store.Job{"0.0": mail, "0.1": mail}, "", "0.0 0.1", "", 1},
		"one of two":                                     {map[string]store.Job{"0.0": mail, "0.1": mail}, "", "0.0", "0.1 kept", 1},
		"the last, beside another's":                     {map[string]store.Job{"0.0": mail, "0.1": mail}, "ack 0.1", "0.0", "", 2},
		"the last, and a commit adds one":                {map[string]store.Job{"0.0": mail}, "add", "0.0", "1.0 kept", 2},
		"the last, which another has, and a commit adds": {map[string]store.Job{"0.0": mail}, "replace 0.0", "0.0", "1.0 kept", 1},
		"the last, which another has":                    {map[string]store.Job{"0.0": mail}, "ack 0.0", "0.0", "", 2},
		"the last, of which another has one":             {map[string]store.Job{"0.0": mail, "0.1": mail}, "ack 0.1", "0.0 0.1", "", 3},
		"the last, which another has let go":             {map[string]store.Job{"0.0": mail}, "let-go", "0.0", "", 1},
		"the last, of an operation that is open by now":  {map[string]store.Job{"0.0": mail}, "open", "0.0", "kept", 2},
		"the last, and the record has no end":            {map[string]store.Job{"0.0": mail}, "endless", "0.0", "kept", 3},
		"its record is gone":                             {map[string]store.Job{"0.0": mail}, "delete", "0.0", "gone", 1},
		"one of two, and the record is gone":             {map[string]store.Job{"0.0": mail, "0.1": mail}, "delete", "0.0", "gone", 1},
		"another operation's":                            {map[string]store.Job{"0.0": mail}, "anew", "0.0", "0.0 kept", 1},
		"beside a parked job":                            {map[string]store.Job{"0.0": mail, "0.1": parked}, "", "0.0", "0.1! kept waits", 2},
		"beside a parked job, by another":                {map[string]store.Job{"0.0": mail, "0.1": parked}, "ack 0.0", "0.0", "0.1! kept waits", 1},
		"a parked job":                                   {map[string]store.Job{"0.0": parked, "0.1": mail}, "", "0.0", "0.1 kept", 2},
		"the last, which is parked":                      {map[string]store.Job{"0.0": parked}, "", "0.0", "", 1},
		"nothing":                                        {map[string]store.Job{"0.0": mail}, "", "", "0.0 kept", 0},
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
		at        int // before this update; 0: before all
		failed    []string
		want      string
		tries     int // of 0.0
		updates   int
	}{
		"the first":                {map[string]store.Job{"0.0": tried(0)}, "", 0, []string{"0.0"}, "0.0 kept", 1, 1},
		"the last but one":         {map[string]store.Job{"0.0": tried(1)}, "", 0, []string{"0.0"}, "0.0 kept", 2, 1},
		"the last":                 {map[string]store.Job{"0.0": tried(2)}, "", 0, []string{"0.0"}, "0.0! kept waits", 3, 2},
		"the last of one of two":   {map[string]store.Job{"0.0": tried(2), "0.1": tried(0)}, "", 0, []string{"0.0", "0.1"}, "0.0! 0.1 kept waits", 3, 2},
		"it was delivered since":   {map[string]store.Job{"0.0": tried(2), "0.1": tried(0)}, "ack 0.0", 0, []string{"0.0"}, "0.1 kept", 0, 1},
		"it is parked":             {map[string]store.Job{"0.0": {Kind: "mail", Tries: 3, Failed: "bad"}}, "", 0, []string{"0.0"}, "0.0! kept waits", 3, 0},
		"redriven as it is parked": {map[string]store.Job{"0.0": tried(2)}, "redrive 0.0", 2, []string{"0.0"}, "0.0 kept", 0, 2},
		"parked by another":        {map[string]store.Job{"0.0": tried(2)}, "park 0.0", 2, []string{"0.0"}, "0.0! kept", 3, 2},
		"the record is gone":       {map[string]store.Job{"0.0": tried(2)}, "delete", 0, []string{"0.0"}, "gone", 0, 1},
		"another operation's":      {map[string]store.Job{"0.0": tried(2)}, "anew", 0, []string{"0.0"}, "0.0 kept", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			st, rec := db.open(t, tt.jobs)
			if db.before = func() {
				if db.updates == tt.at {
					db.meanwhile(t, rec.PK, tt.meanwhile)
				}
			}; tt.at == 0 {
				db.meanwhile(t, rec.PK, tt.meanwhile)
			}
			failures := make(map[string]error)
			for _, name := range tt.failed {
				failures[name] = errBroken
			}
			now, err := Fail(t.Context(), st, rec, failures, 3)
			if err != nil || now.Jobs["0.0"].Tries != tt.tries || tt.meanwhile == "park 0.0" && now.Jobs["0.0"].Failed != "bad" {
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
		"of no record":               {jobs: map[string]store.Job{"0.0": parked}, pk: "v1##none", want: "0.0! kept waits", err: jobs.ErrMoved},
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

// A write about jobs is sent six times while its result is unknown, and once if another
// time can't help, or if the time is over.
func TestWriteAboutJobsIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		ended  bool
		want   error
		sent   int
	}{
		"the record is in a transaction": {&types.TransactionConflictException{}, false, store.ErrConflict, 6},
		"the result is unknown":          {&types.InternalServerError{}, false, store.ErrUnknown, 6},
		"the write is forbidden":         {&smithy.GenericAPIError{Code: "AccessDeniedException"}, false, nil, 1},
		"the time is over":               {&types.TransactionConflictException{}, true, store.ErrConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the pauses are virtual
				db := &restless{}
				s, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
				db.fails = tt.answer
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ended {
					cancel()
				}
				err := Ack(ctx, s, rec, "0.0")
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || db.updates != tt.sent {
					t.Errorf("sent %d times, want %d: %v", db.updates, tt.sent, err)
				}
			})
		})
	}
}

// Where others write before each write, nobody decides for ever about their records.
func TestNobodyDecidesForEver(t *testing.T) {
	t.Parallel()
	parked := store.Job{Kind: "mail", Tries: 5, Failed: "bad"}
	for name, tt := range map[string]struct {
		jobs  map[string]store.Job
		do    func(*dynamo.Store, *store.Record) error
		first int // writes before the rounds
	}{
		"an acknowledgement in a record that waits for people": {
			map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": parked},
			func(s *dynamo.Store, r *store.Record) error { return Ack(t.Context(), s, r, "0.0") }, 1,
		},
		"a redrive": {
			map[string]store.Job{"0.0": parked, "0.1": parked},
			func(s *dynamo.Store, r *store.Record) error {
				n, err := Redrive(t.Context(), s, r.PK, r.ID, "jane", "0.0")
				if n != 0 {
					t.Errorf("%d jobs are redriven", n)
				}
				return err
			}, 0,
		},
		"a cancellation": {
			map[string]store.Job{"0.0": {Kind: "mail", At: time.Now().Truncate(time.Millisecond)}},
			func(s *dynamo.Store, r *store.Record) error {
				_, err := Cancel(t.Context(), s, r.PK, r.ID, "jane")
				return err
			}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			s, rec := db.open(t, tt.jobs)
			ver := rec.Ver
			db.before = func() {
				var v item.Values
				ver++
				db.edit(t, rec.PK, "SET ver = :ver", nil, item.Map{":ver": v.Num(ver)})
			}
			if err := tt.do(s, rec); !errors.Is(err, store.ErrConflict) || db.updates != tt.first+6 {
				t.Errorf("%d writes, want %d: %v", db.updates, tt.first+6, err)
			}
		})
	}
}

// A record without the map is no record of ours: that is told, and not that the request was
// malformed, which a drain would repeat for ever.
func TestAcknowledgementInARecordWithoutItsMap(t *testing.T) {
	t.Parallel()
	db := &restless{}
	st, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
	db.edit(t, rec.PK, "REMOVE jobs", nil, nil)
	early := *rec
	early.State = store.Open // so that this job isn't the record's last
	for name, image := range map[string]*store.Record{"the last job": rec, "a job": &early} {
		if err := Ack(t.Context(), st, image, "0.0"); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: got %v, want corrupt", name, err)
		}
	}
}

// A finished record without jobs is let go, and no other.
func TestLetGo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		jobs            map[string]store.Job
		meanwhile, want string
	}{
		"finished":            {map[string]store.Job{}, "", ""},
		"let go before":       {map[string]store.Job{}, "let-go", ""},
		"jobs are there":      {map[string]store.Job{"0.0": {Kind: "mail"}}, "", "0.0 kept"},
		"another operation's": {map[string]store.Job{}, "anew", "kept"},
		"not finished":        {map[string]store.Job{}, "open", "kept"},
		"without an end":      {map[string]store.Job{}, "endless", "kept"},
		"gone":                {map[string]store.Job{}, "delete", "gone"},
	} {
		db := &restless{}
		st, rec := db.open(t, tt.jobs)
		db.meanwhile(t, rec.PK, tt.meanwhile)
		if err := LetGo(t.Context(), st, rec); err != nil || db.now(t, rec.PK) != tt.want {
			t.Errorf("%s: %v, left is %q, want %q", name, err, db.now(t, rec.PK), tt.want)
		}
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
