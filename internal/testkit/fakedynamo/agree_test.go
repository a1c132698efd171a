package fakedynamo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // much fails on purpose here
	os.Exit(dynamotest.MainSeparate(m))
}

// TestStoresAgree plays a script of operations with faults, the same by its seed, on the
// memory store, on this DynamoDB and on DynamoDB Local: requests are answered alike, and the
// records are alike after each operation.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	const n = 300
	want := script(t, new(idem.MemoryStore), n)
	local := dynamotest.Start(t).Client(dynamo.Tune)
	if err := dynamo.CreateTable(t.Context(), local, "records"); err != nil {
		t.Fatal(err)
	}
	for name, api := range map[string]dynamo.API{"this DynamoDB": new(fakedynamo.DB), "DynamoDB Local": local} {
		s, err := dynamo.New(api, "records")
		if err != nil {
			t.Fatal(err)
		}
		if at, is, was := differ(want, script(t, s, n)); at >= 0 {
			t.Errorf("operation %d: %s: got %s, want as the memory store %s", at, name, is, was)
		}
	}
	kinds := make(map[string]bool)
	for _, line := range want {
		kind, _, _ := strings.Cut(line, ":")
		kinds[kind] = true
	}
	if len(kinds) < 8 {
		t.Errorf("got a script of %d kinds of outcomes, want at least 8: %v", len(kinds), kinds)
	}
}

// differ returns the first operation whose lines differ; -1 if there is none.
func differ(want, got []string) (at int, is, was string) {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return i, got[i], want[i]
		}
	}
	if len(want) != len(got) {
		return min(len(want), len(got)), strconv.Itoa(len(got)) + " lines", strconv.Itoa(len(want)) + " lines"
	}
	return -1, "", ""
}

// actor plays the script on a store.
type actor struct {
	rnd   *rand.Rand
	clock *idemtest.Clock
	store store.Store
	runs  int
	kept  []store.Commit // to be sent again later
	pks   []string
	pk    string // of the operation
	lines []string
}

func script(t *testing.T, s store.Store, n int) []string {
	t.Helper()
	a := &actor{rnd: rand.New(rand.NewPCG(42, 1)), clock: idemtest.NewClock(), store: s}
	for range n {
		a.operation(t)
	}
	for _, a.pk = range a.pks {
		a.say("in the end: %s", a.after(t.Context(), t))
	}
	return a.lines
}

func (a *actor) say(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// operation is one step of the script. Everything is drawn before anything is done, so
// that the next steps don't depend on what this comes to.
func (a *actor) operation(t *testing.T) {
	t.Helper()
	what, key, body, fate, at, fault := a.rnd.IntN(20), a.rnd.IntN(12), a.rnd.IntN(6), a.rnd.IntN(5), 1+a.rnd.IntN(5), a.rnd.IntN(9)
	ctx, cancel := context.WithTimeout(t.Context(), storetest.Limit)
	defer cancel()
	process := idemtest.Faulty(a.store, func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == "Commit" && c.Total == 2 && what%4 == 0 {
			a.kept = append(a.kept, store.Commit{Prev: c.Commit.Prev.Clone(), Next: c.Commit.Next.Clone(), Writes: c.Commit.Writes})
		}
		if a.pk = c.PK; !slices.Contains(a.pks, c.PK) {
			a.pks = append(a.pks, c.PK)
		}
		if c.Total != at {
			return idemtest.Fault{}
		}
		switch fault {
		case 0:
			return idemtest.Fault{Err: store.ErrUnknown, Applied: true}
		case 1:
			return idemtest.Fault{Err: store.ErrUnknown}
		case 2:
			return idemtest.Fault{Crash: true}
		case 3:
			return idemtest.Fault{Crash: true, Applied: true}
		case 4:
			if c.Verb == "Claim" || c.Verb == "Commit" {
				return idemtest.Fault{Err: store.ErrConflict}
			}
		}
		return idemtest.Fault{}
	})
	engine := idem.New(process, callertest.Anybody, func(o *idem.Options) {
		o.Function, o.Now, o.Retention, o.Resumable = "f", a.clock.Now, 2*time.Hour, key%3 == 0
	})
	handler := func(ctx context.Context) (idem.Response, error) { return a.handle(ctx, fate, process) }
	switch {
	case what == 0:
		a.clock.Advance(storetest.LeaseOver)
		a.say("leases end:")
	case what == 1:
		a.clock.Advance(3 * time.Hour)
		a.say("records expire:")
	case what == 2 && len(a.kept) > 0:
		c := a.kept[key%len(a.kept)]
		held, err := a.store.Commit(ctx, store.Commit{Prev: c.Prev.Clone(), Next: c.Next.Clone(), Writes: c.Writes})
		a.say("late packet: %s %s", kindOf(err), a.record(held))
	case what == 3 && len(a.pks) > 0:
		rec, err := a.store.Load(ctx, a.pks[key%len(a.pks)])
		if err != nil || rec == nil {
			a.say("no ticket: %s", kindOf(err))
			return
		}
		res, err := engine.Resume(ctx, state.TicketFor(rec), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return handler(ctx) })
		a.say("ticket %s: %d %s %s", kindOf(err), res.Status, res.Body, a.after(ctx, t))
	default:
		res, err := engine.Do(ctx, idem.Request{
			Identity: idem.Identity{Kind: "jwt", Subject: "me"}, Key: "k" + strconv.Itoa(key), Method: http.MethodPost, Path: "/rides", Route: "/rides", Body: []byte{'a' + byte(body/5)},
			ReadFirst: key%4 == 1,
		}, handler)
		a.say("request %s, replayed %t: %d %s %s", kindOf(err), res.Replayed, res.Status, res.Body, a.after(ctx, t))
	}
}

var errScript = errors.New("the handler fails")

// handle is the handler. Its answers are numbered by run.
func (a *actor) handle(ctx context.Context, fate int, process *idemtest.FaultyStore) (idem.Response, error) {
	a.runs++
	n := strconv.Itoa(a.runs)
	if fate > 0 {
		if _, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("mail", n))
			return n, nil
		}); err != nil {
			return idem.Response{}, err
		}
	}
	switch fate {
	case 2:
		return idem.Response{}, errScript
	case 3:
		return idem.Response{Status: http.StatusTooManyRequests}, nil
	case 4:
		process.Crash()
	}
	return idem.Response{Status: http.StatusCreated, Body: []byte(n)}, nil
}

// kindOf is an error without what differs between stores.
func kindOf(err error) string {
	for _, known := range []error{
		idem.ErrInFlight, idem.ErrMismatch, idem.ErrStuck, idem.ErrPhaseOrder, idem.ErrLeaseLost, jobs.ErrMoved, jobs.ErrNotMine, idem.ErrUnavailable,
		store.ErrUnknown, store.ErrConflict, errScript, idemtest.ErrCrashed,
	} {
		if errors.Is(err, known) {
			return strings.ReplaceAll(known.Error(), ":", "")
		}
	}
	if err != nil {
		return "another error"
	}
	return "ok"
}

// after is the operation's record.
func (a *actor) after(ctx context.Context, t *testing.T) string {
	t.Helper()
	rec, err := a.store.Load(ctx, a.pk)
	if err != nil {
		t.Fatal(err)
	}
	return a.record(rec)
}

func (a *actor) record(r *store.Record) string {
	if r == nil {
		return "-"
	}
	since := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return at.Sub(a.clock.Now()).Truncate(10 * time.Second).String() // leases end with a real deadline
	}
	var phases []string
	for _, p := range r.Phases {
		phases = append(phases, p.Name+"="+string(p.Result))
	}
	status := 0
	if r.Response != nil {
		status = r.Response.Status
	}
	return fmt.Sprintf("%s ver %d lease %s expires %s keep %q phases %v jobs %d tries %d answer %d input %t doubts %v",
		r.State, r.Ver, since(r.Lease), since(r.Expires), r.Keep, phases, len(r.Jobs), r.Tries, status, r.Input != nil, r.Doubts)
}
