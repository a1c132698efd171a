package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// stuckOperation was abandoned and given up.
func stuckOperation(t *testing.T) *operation {
	t.Helper()
	a := abandon(t)
	a.leaseOver()
	if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came"); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.State != store.Stuck || r.LastErr != "nobody came" {
		t.Fatalf("state %q: %s", r.State, r.LastErr)
	}
	return a
}

// Two settlements that clients can distinguish.
var settlements = map[string]idem.Settlement{
	"tried again": {},
	"answered":    {Answer: &idem.Response{Status: 410}},
}

func TestOnlyWhatIsStuckIsSettled(t *testing.T) {
	t.Parallel()
	for how, s := range settlements {
		for name, state := range map[string]func(*testing.T, *operation){
			"open": func(_ *testing.T, a *operation) { a.leaseOver() },
			"held": func(*testing.T, *operation) {},
			"finished": func(t *testing.T, a *operation) {
				t.Helper()
				a.leaseOver()
				if err := a.resume(t, a.engine, state.TicketFor(a.record(t)), completes); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				a := abandon(t)
				state(t, a)
				before := a.record(t)
				if name == "open" && s.Answer != nil { // an abandoned operation may be answered
					err := a.engine.Settle(t.Context(), before.PK, s)
					if r := a.record(t); err != nil || r.State != store.Done || r.Response.Status != 410 {
						t.Errorf("%v: %s", err, r.State)
					}
					return
				}
				if err := a.engine.Settle(t.Context(), before.PK, s); !errors.Is(err, jobs.ErrMoved) {
					t.Errorf("got %v", err)
				}
				if diff := cmp.Diff(before, a.record(t)); diff != "" {
					t.Errorf("the record was written (-want +got):\n%s", diff)
				}
			})
		}
		t.Run("stuck is "+how, func(t *testing.T) {
			t.Parallel()
			a := stuckOperation(t)
			if err := a.engine.Settle(t.Context(), a.record(t).PK, s); err != nil {
				t.Fatal(err)
			}
			res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) })
			want := 201
			if s.Answer != nil {
				want = s.Answer.Status
			}
			if err != nil || res.Status != want || len(a.mem.Writes()) != 1 {
				t.Errorf("%+v, %v, writes %v; want %d", res, err, written(&a.mem), want)
			}
		})
	}
}

// An operator writes under a new nonce: no late write of the stuck attempt fits,
// whatever version it expects.
func TestLateWriteDoesNotFitAfterASettlement(t *testing.T) {
	t.Parallel()
	for how, s := range settlements {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a := stuckOperation(t)
			stuck := a.record(t)
			if err := a.engine.Settle(t.Context(), stuck.PK, s); err != nil {
				t.Fatal(err)
			}
			settled := a.record(t)
			for ver := range settled.Ver + 2 {
				prev := stuck.Clone()
				prev.Ver = ver
				next := prev.Clone()
				next.Ver++
				if held, err := a.mem.Commit(t.Context(), store.Commit{Prev: prev, Next: next}); held == nil || err != nil {
					t.Errorf("version %d fits: %v", ver, err)
				}
			}
		})
	}
}

// A worker that wakes up after its operation was given up changes nothing, not
// even the text for people.
func TestLateWriteDoesNotFitAfterGivingUp(t *testing.T) {
	t.Parallel()
	a := abandon(t)
	a.leaseOver()
	var given *store.Record
	_, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		a.leaseOver() // the worker falls asleep
		if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came"); err != nil {
			t.Error(err)
		}
		given = a.record(t)
		if _, err := completes(ctx, nil); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "two", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("two")); return 2, nil })
		return idem.Response{}, err
	})
	if !errors.Is(err, idem.ErrLeaseLost) {
		t.Errorf("the late worker gets %v", err)
	}
	if diff := cmp.Diff(given, a.record(t)); diff != "" {
		t.Errorf("the record was written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one"}, written(&a.mem)); diff != "" {
		t.Error(diff)
	}
}

// A dead attempt may have made calls since its last write. The settlement must
// decide about those calls.
func TestGivingUpKeepsTheDoubt(t *testing.T) {
	t.Parallel()
	a := abandon(t, func(o *idem.Options) { o.CallsOut = true })
	a.leaseOver()
	before := a.record(t)
	if err := a.engine.MarkStuck(t.Context(), state.TicketFor(before), "nobody came"); err != nil {
		t.Fatal(err)
	}
	after := a.record(t)
	if diff := cmp.Diff([]string{state.AnyCall}, after.Doubts); diff != "" || !after.DoubtSince.Equal(before.Run) {
		t.Errorf("in doubt since %v, want %v (-want +got):\n%s", after.DoubtSince, before.Run, diff)
	}
}

// A freed key is left to its client, not to the completer.
func TestFreedKeyIsNotGivenUp(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	e := idem.New(&mem, callertest.Anybody)
	if _, err := do(t, e, func(context.Context) (idem.Response, error) { return idem.Response{}, errors.New("fails") }); err == nil {
		t.Fatal("no error")
	}
	for pk, r := range mem.Records() {
		if err := e.MarkStuck(t.Context(), state.TicketFor(r), "test"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(r, mem.Records()[pk]); diff != "" {
			t.Errorf("the record was written (-want +got):\n%s", diff)
		}
	}
}

// meddled allows another write just before a commit.
type meddled struct {
	*idem.MemoryStore
	first func()
}

func (m *meddled) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	if first := m.first; first != nil {
		m.first = nil
		first()
	}
	return m.MemoryStore.Commit(ctx, c)
}

func TestTwoOperatorsDecideOnce(t *testing.T) {
	t.Parallel()
	a := stuckOperation(t)
	pk := a.record(t).PK
	slow := idem.New(&meddled{MemoryStore: &a.mem, first: func() {
		if err := a.engine.Settle(t.Context(), pk, settlements["answered"]); err != nil {
			t.Error(err)
		}
	}}, callertest.Anybody, func(o *idem.Options) { o.Now = a.clock.Now })
	if err := slow.Settle(t.Context(), pk, idem.Settlement{}); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("the slower operator gets %v", err)
	}
	if r := a.record(t); r.State != store.Done || r.Response.Status != 410 {
		t.Errorf("state %q: the first decision doesn't stand", r.State)
	}
}

// unknownOutcome is stuck in a call with an unknown outcome.
func unknownOutcome(t *testing.T) *operation {
	t.Helper()
	a := accepting()
	if _, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return a.charge(ctx, "", errors.New("timeout")) }); !errors.Is(err, idem.ErrStuck) {
		t.Fatal(err)
	}
	return a
}

// charge calls a provider without keys.
func (a *operation) charge(ctx context.Context, id string, err error) (idem.Response, error) {
	got, err := idem.Foreign(ctx, "charged", func(context.Context, *idem.Tx) (string, error) { return id, err }, idem.NotIdempotent())
	return idem.Response{Status: 201, Body: []byte(got)}, err
}

// A settlement contains one decision: two contradictory decisions change nothing.
func TestSettlementIsOneDecision(t *testing.T) {
	t.Parallel()
	answer, result := &idem.Response{Status: 410}, json.RawMessage(`"ch_1"`)
	for name, s := range map[string]idem.Settlement{
		"a result, and not made":             {Result: result, NotMade: true},
		"an answer and a result":             {Answer: answer, Result: result},
		"an answer, and not made":            {Answer: answer, NotMade: true},
		"a result, and the risk of twice":    {Result: result, RiskTwice: true},
		"not made, and the risk of twice":    {NotMade: true, RiskTwice: true},
		"an answer, and the risk of twice":   {Answer: answer, RiskTwice: true},
		"all of them":                        {Answer: answer, Result: result, NotMade: true},
		"a result that is no JSON":           {Result: json.RawMessage(`ch_1`)},
		"a result of nothing":                {Result: json.RawMessage{}},
		"a result that is no JSON, not made": {Result: json.RawMessage(`ch_1`), NotMade: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := unknownOutcome(t)
			before := a.record(t)
			if err := a.engine.Settle(t.Context(), before.PK, s); !errors.Is(err, idem.ErrResult) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, a.record(t)); diff != "" {
				t.Errorf("the record was written (-want +got):\n%s", diff)
			}
		})
	}
}

// The decision, its author and its time stay in the record, even after its
// answer.
func TestSettlementsStayInTheRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settle idem.Settlement
		what   string
		to     string // the state that it leads to
		answer string // answer to the client's next retry
	}{
		"the call was made":     {idem.Settlement{By: "jane", Result: json.RawMessage(`"ch_secret"`)}, "result of charged", "released", "ch_secret"},
		"the call was not made": {idem.Settlement{By: "jane", NotMade: true}, "not made: charged", "released", "ch_new"},
		"it may happen twice":   {idem.Settlement{By: "jane", RiskTwice: true}, "risk of twice: charged", "released", "ch_new"},
		"answered":              {idem.Settlement{By: "jane", Answer: &idem.Response{Status: 410, Body: []byte("secret")}}, "answer 410", "done", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := unknownOutcome(t)
			a.clock.Advance(time.Hour)
			want := []store.Decision{{By: "jane", At: a.clock.Now(), What: tt.what, From: "stuck", To: tt.to}}
			if err := a.engine.Settle(t.Context(), a.record(t).PK, tt.settle); err != nil {
				t.Fatal(err)
			}
			want[0].ID = a.record(t).Owner
			if r := a.record(t); !cmp.Equal(want, r.Settled) || !r.Run.Equal(a.clock.Now()) {
				t.Errorf("settled: %+v, run at %v; want %+v, and the same time", r.Settled, r.Run, want)
			}
			a.clock.Advance(time.Hour)
			res, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return a.charge(ctx, "ch_new", nil) })
			if err != nil || string(res.Body) != tt.answer {
				t.Errorf("answer %q, %v; want %q", res.Body, err, tt.answer)
			}
			if r := a.record(t); !cmp.Equal(want, r.Settled) || r.State != store.Done {
				t.Errorf("finished, settled: %+v, want %+v", r.Settled, want)
			}
		})
	}
}

// A decision about one state of the record is not carried out on another state:
// the operation may by then wait for a different call.
func TestSettlementIsAboutWhatWasSeen(t *testing.T) {
	t.Parallel()
	a := unknownOutcome(t)
	pk, seen := a.record(t).PK, state.TicketFor(a.record(t))
	if err := a.engine.Settle(t.Context(), pk, idem.Settlement{Seen: seen, NotMade: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return a.charge(ctx, "", errors.New("timeout")) }); !errors.Is(err, idem.ErrStuck) {
		t.Fatal(err)
	}
	before := a.record(t)
	for _, s := range []idem.Settlement{{Seen: seen, NotMade: true}, {Seen: seen, Result: json.RawMessage(`1`)}, {Seen: seen, Answer: &idem.Response{Status: 410}}} {
		if err := a.engine.Settle(t.Context(), pk, s); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v", err)
		}
	}
	if diff := cmp.Diff(before, a.record(t)); diff != "" {
		t.Errorf("the record was written (-want +got):\n%s", diff)
	}
}

// All decisions about an operation are kept, up to a limit, the latest first to
// stay.
func TestManySettlements(t *testing.T) {
	t.Parallel()
	a := stuckOperation(t)
	const n = 12
	for i := range n {
		if err := a.engine.Settle(t.Context(), a.record(t).PK, idem.Settlement{By: fmt.Sprintf("%d %s", i, strings.Repeat("x", 300))}); err != nil {
			t.Fatal(err)
		}
		a.leaseOver()
		if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came"); err != nil {
			t.Fatal(err)
		}
	}
	r := a.record(t)
	if len(r.Settled) != 10 {
		t.Fatalf("%d decisions, want the last 10", len(r.Settled))
	}
	for i, d := range r.Settled {
		if !strings.HasPrefix(d.By, fmt.Sprintf("%d ", i+n-10)) || len(d.By) != 256 || d.What != "try again" {
			t.Errorf("decision %d: %+v", i, d)
		}
	}
}

// chargedAs is what a call came to.
type chargedAs struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// People can't give a result that the program could not read, and are told what it reads.
// They may correct a wrong one as long as nothing was done with it.
func TestResultHasTheShapeThatTheProgramReads(t *testing.T) {
	t.Parallel()
	a := accepting()
	book := func(got, after error) (idem.Result, error) {
		return do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
			r, err := idem.Foreign(ctx, "charged", func(context.Context, *idem.Tx) (chargedAs, error) { return chargedAs{}, got }, idem.NotIdempotent())
			if err != nil {
				return idem.Response{}, err
			}
			_, err = idem.Foreign(ctx, "mailed", func(_ context.Context, tx *idem.Tx) (bool, error) { return tx.Key("mail") != "", after })
			return idem.Response{Status: 201, Body: []byte(r.ID)}, err
		})
	}
	if _, err := book(errors.New("timeout"), nil); !errors.Is(err, idem.ErrStuck) {
		t.Fatal(err)
	}
	pk := a.record(t).PK
	settle := func(result string) error {
		return a.engine.Settle(t.Context(), pk, idem.Settlement{Result: json.RawMessage(result)})
	}
	for result, want := range map[string]string{
		`{}`:                              `"amount" is missing`,
		`"ch_1"`:                          "the result is an object, not a text",
		`{"id":"ch_1","amount":"5"}`:      `"amount" is a whole number, not a text`,
		`{"id":"ch_1","amount":5,"ok":1}`: `there is no field "ok"`,
	} {
		if err := settle(result); !errors.Is(err, idem.ErrResult) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `the program reads {"id":"TEXT","amount":0}`) {
			t.Errorf("%s: %v", result, err)
		}
	}
	for _, id := range []string{"ch_wrong", "ch_1"} {
		if err := settle(`{"id":"` + id + `","amount":5}`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := book(nil, errors.New("timeout")); err == nil {
		t.Fatal("the mail was sent")
	}
	if err := settle(`{"id":"ch_2","amount":5}`); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("corrected after a call that may have begun: %v", err)
	}
	a.leaseOver()
	if res, err := book(nil, nil); err != nil || string(res.Body) != "ch_1" {
		t.Errorf("%s, %v", res.Body, err)
	}
}

// version1 commits its first phase and fails in its second.
func version1(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) { tx.Write(note("one")); return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("down") })
	return idem.Response{}, err
}

// repaired is version1 without the failure.
func repaired(ctx context.Context) (idem.Response, error) { return completes(ctx, nil) }

// refusals are versions whose phases don't fit the record of version1, or can
// never be committed.
var refusals = map[string]struct {
	fn   func(context.Context) (idem.Response, error)
	want error
}{
	"another phase comes first": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "zero", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrPhaseOrder},
	"fewer phases": {func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }, idem.ErrPhaseOrder},
	"a result of another type": {func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) ([]string, error) { return nil, nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrResult},
	"a result that can't be stored": {func(ctx context.Context) (idem.Response, error) {
		if _, err := completes(ctx, nil); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (float64, error) { return math.NaN(), nil })
		return idem.Response{Status: 201}, err
	}, idem.ErrResult},
	"its error is swallowed": {func(ctx context.Context) (idem.Response, error) {
		_, _ = idem.Atomic(ctx, "zero", func(context.Context, *idem.Tx) (int, error) { return 0, nil })
		return idem.Response{}, errors.New("something went wrong")
	}, idem.ErrPhaseOrder},
}

// An operation that its program refuses waits for people from that moment on, is
// open for a rollback, and no longer waits once it continues.
func TestRefusedWaitsForPeople(t *testing.T) {
	t.Parallel()
	for name, refusal := range refusals {
		for how, resumable := range map[string]bool{"resumable": true, "not resumable": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				var told []idem.Event
				a := accepting(func(o *idem.Options) {
					o.Resumable = resumable
					o.Hooks.Blocked = func(_ context.Context, e idem.Event) { told = append(told, e) }
				})
				_, _ = do(t, a.engine, version1)
				if r := a.record(t); r.Blocked || len(told) != 0 {
					t.Fatalf("blocked %v, told %v, by an error that goes away", r.Blocked, told)
				}
				for n := range 2 { // the client retries at once: Blocked is reported again, and the operation still waits
					_, _ = do(t, a.engine, refusal.fn)
					r := a.record(t)
					if !r.Blocked || r.State != store.Open || r.Keep != store.KeepOpen || len(told) != n+1 || !errors.Is(told[n].Err, refusal.want) {
						t.Fatalf("blocked %v, state %q, keep %q, told %v", r.Blocked, r.State, r.Keep, told)
					}
					if cause := redact.Error(told[n].Err); r.LastErr == "" || r.LastErr != cause || told[n].Record == "" || told[n].ID != r.ID {
						t.Errorf("last error %q, told %+v", r.LastErr, told[n])
					}
				}
				if res, err := do(t, a.engine, repaired); err != nil || res.Status != 201 {
					t.Fatalf("after the rollback %+v, %v", res, err)
				}
				if r := a.record(t); r.Blocked || r.State != store.Done {
					t.Errorf("blocked %v, state %q", r.Blocked, r.State)
				}
			})
		}
	}
}

// The mark disappears with the first sign that the operation continues, and stays
// while an attempt has only begun.
func TestBlockedUntilItGoesOn(t *testing.T) {
	t.Parallel()
	refuse := refusals["another phase comes first"].fn
	for name, tt := range map[string]struct {
		fn      func(context.Context, *testing.T, *operation) (idem.Response, error)
		blocked bool
	}{
		"an attempt that has begun": {func(_ context.Context, t *testing.T, a *operation) (idem.Response, error) {
			t.Helper()
			if !a.record(t).Blocked {
				t.Error("not blocked while it is not known whether it goes on")
			}
			return idem.Response{}, errors.New("down")
		}, false},
		"a phase": {func(ctx context.Context, t *testing.T, a *operation) (idem.Response, error) {
			t.Helper()
			if _, err := completes(ctx, nil); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Atomic(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 2, nil })
			if a.record(t).Blocked {
				t.Error("blocked though a phase was committed")
			}
			return idem.Response{}, err
		}, false},
		"given up": {func(ctx context.Context, t *testing.T, _ *operation) (idem.Response, error) {
			t.Helper()
			if _, err := completes(ctx, nil); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Foreign(ctx, "two", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("timeout") }, idem.NotIdempotent())
			return idem.Response{}, err
		}, false},
		"refused again": {func(ctx context.Context, _ *testing.T, _ *operation) (idem.Response, error) { return refuse(ctx) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accepting()
			_, _ = do(t, a.engine, version1)
			_, _ = do(t, a.engine, refuse)
			_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return tt.fn(ctx, t, a) })
			if r := a.record(t); r.Blocked != tt.blocked {
				t.Errorf("blocked %v, state %q: %s", r.Blocked, r.State, r.LastErr)
			}
		})
	}
	t.Run("settled", func(t *testing.T) {
		t.Parallel()
		a := accepting(func(o *idem.Options) { o.MaxTries = 1 })
		_, _ = do(t, a.engine, version1)
		for range 2 {
			a.clock.Advance(time.Hour)
			_ = a.resume(t, a.engine, state.TicketFor(a.record(t)), func(ctx context.Context, _ *idem.Request) (idem.Response, error) { return refuse(ctx) })
		}
		if r := a.record(t); r.State != store.Stuck || r.Blocked {
			t.Fatalf("state %q, blocked %v", r.State, r.Blocked)
		}
		if err := a.engine.Settle(t.Context(), a.record(t).PK, idem.Settlement{}); err != nil {
			t.Fatal(err)
		}
		if r := a.record(t); r.Blocked || r.State != store.Open {
			t.Errorf("blocked %v, state %q", r.Blocked, r.State)
		}
	})
}

// A freed key waits for no one, whatever mistake its program made.
func TestFreedIsNotBlocked(t *testing.T) {
	t.Parallel()
	a := accepting(func(o *idem.Options) {
		o.Resumable = false
		o.Hooks.Blocked = func(_ context.Context, e idem.Event) { t.Errorf("told %+v", e) }
	})
	_, _ = do(t, a.engine, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(context.Context, *idem.Tx) (float64, error) { return math.NaN(), nil })
		return idem.Response{}, err
	})
	if r := a.record(t); r.Blocked || r.Keep != store.KeepFreed {
		t.Errorf("blocked %v, keep %q", r.Blocked, r.Keep)
	}
}

// underOperators runs do while an attempt holds an operation that an attempt holds, with committed work and a job.
func underOperators(t *testing.T, do func(e *idem.Engine, rec func() *store.Record)) {
	t.Helper()
	mem := &idem.MemoryStore{}
	e := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.CallsOut = true })
	rec := func() *store.Record {
		for _, r := range mem.Records() {
			return r
		}
		return nil
	}
	_, _ = e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(idem.NewJob("mail", 1))
			return 1, nil
		})
		if err != nil {
			t.Error(err)
		}
		do(e, rec)
		return idem.Response{Status: 201}, nil
	})
}

// A lease is ended only as it was seen, and what its attempt may have called is in doubt.
func TestEndLease(t *testing.T) {
	t.Parallel()
	underOperators(t, func(e *idem.Engine, rec func() *store.Record) {
		seen := state.TicketFor(rec())
		for _, moved := range []jobs.Ticket{{PK: seen.PK, Owner: seen.Owner, Ver: seen.Ver - 1}, {PK: seen.PK, Owner: "another", Ver: seen.Ver}} {
			if err := e.EndLease(t.Context(), moved, "jane"); !errors.Is(err, jobs.ErrMoved) {
				t.Errorf("got %v for a record that has moved", err)
			}
		}
		if err := e.EndLease(t.Context(), seen, "jane"); err != nil {
			t.Fatal(err)
		}
		r := rec()
		if !r.Lease.IsZero() || r.Owner == seen.Owner || !slices.Equal(r.Doubts, []string{"?"}) || len(r.Settled) != 1 || r.Settled[0].By != "jane" ||
			r.Settled[0].From != "held" || r.Settled[0].To != "released" {
			t.Errorf("got %+v", r)
		}
		if err := e.EndLease(t.Context(), state.TicketFor(r), "jane"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v for a record that nobody holds", err)
		}
	})
}

// A key is freed only with the losses that were accepted.
func TestForget(t *testing.T) {
	t.Parallel()
	underOperators(t, func(e *idem.Engine, rec func() *store.Record) {
		for _, accepted := range []idem.Loss{{}, {Held: true, Work: true}, {Held: true, Jobs: true}, {Work: true, Jobs: true}} {
			if _, err := e.Forget(t.Context(), state.TicketFor(rec()), "jane", accepted); !errors.Is(err, jobs.ErrMoved) {
				t.Errorf("%+v: got %v", accepted, err)
			}
		}
		seen := state.TicketFor(rec())
		id := rec().ID
		if lost, err := e.Forget(t.Context(), seen, "jane", idem.Loss{Held: true, Work: true, Jobs: true}); err != nil || !slices.Equal(lost, []string{id + ".0.0"}) {
			t.Fatal(lost, err)
		}
		if r := rec(); r.Jobs != nil || r.Settled[0].What != "forget "+id+", with its jobs 0.0" || r.Owner == seen.Owner || r.Keep != store.KeepFreed || len(r.Settled) != 1 || r.Settled[0].To != "free" {
			t.Errorf("got %+v", r)
		}
		res, err := e.Do(t.Context(), idem.Request{Key: "k", Identity: idem.Identity{Kind: "jwt", Subject: "s"}, Method: "POST"}, func(context.Context) (idem.Response, error) { return idem.Response{Status: 202}, nil })
		if err != nil || res.Status != 202 || res.Replayed {
			t.Errorf("a request with the key got %+v, %v", res, err)
		}
	})
}

// An abandoned call whose client never comes back is given up after retention, and so
// listed. No request has to be stored for that.
func TestForsakenCallWaitsForPeople(t *testing.T) {
	t.Parallel()
	a := &operation{clock: idemtest.NewClock()}
	a.engine = idem.New(&a.mem, func(o *idem.Options) { o.Now, o.CallsOut = a.clock.Now, true })
	dying := idemtest.Faulty(&a.mem, nil)
	_, _ = do(t, idem.New(dying, func(o *idem.Options) { o.Now, o.CallsOut = a.clock.Now, true }), charging("charge", func(string) { dying.Crash() }))
	a.clock.Advance(25 * time.Hour)
	if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "its client never came back"); err != nil {
		t.Fatal(err)
	}
	if r := a.record(t); r.State != store.Stuck || len(r.Doubts) == 0 || r.WaitSince.IsZero() {
		t.Errorf("state %q, in doubt %v, waits since %v", r.State, r.Doubts, r.WaitSince)
	}
}

// A request under a key that an operator has freed has the decision in its record: the author
// of what was forgotten may not have got an answer.
func TestForgetLeavesItsTrace(t *testing.T) {
	t.Parallel()
	former := func(claims bool) func(*idem.Options) {
		return func(o *idem.Options) {
			o.Former = &idem.Former{Scope: func(context.Context, *idem.Request) (string, error) { return "ann's account", nil }, Claims: claims}
		}
	}
	for name, tt := range map[string]struct{ before, after func(*idem.Options) }{
		"in its own place":       {asIs, asIs},
		"under the former scope": {former(true), former(false)},
		"under the coming scope": {former(false), former(true)},
	} {
		var mem idem.MemoryStore
		before := idem.New(&mem, tt.before)
		if _, err := before.Do(t.Context(), ann, reserves(201)); err != nil {
			t.Fatal(err)
		}
		if _, err := before.Forget(t.Context(), state.TicketFor(one(&mem)), "jane", idem.Loss{Work: true}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		forgotten := one(&mem)
		var settled []store.Decision
		_, err := idem.New(&mem, tt.after).Do(t.Context(), ann, func(context.Context) (idem.Response, error) {
			for _, rec := range mem.Records() {
				if rec.ID != forgotten.ID {
					settled = rec.Settled
				}
			}
			return idem.Response{Status: 202}, nil
		})
		if err != nil || len(settled) != 1 || settled[0].By != "jane" || !cmp.Equal(settled, forgotten.Settled) {
			t.Errorf("%s: %v; the new record has %+v, want %+v", name, err, settled, forgotten.Settled)
		}
	}
}

// leaves has a request sent by a program that dies after a phase with a job, on a store that
// keeps the request's body elsewhere.
func leaves(t *testing.T, optFns ...func(*idem.Options)) (*bodied, jobs.Ticket) {
	t.Helper()
	st := elsewhereStore()
	dying := idemtest.Faulty(st, nil)
	r := ann
	r.Body = []byte("a long body")
	_, _ = idem.New(dying, append(optFns, callertest.Anybody, resumable)...).Do(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (int, error) {
			tx.Stage(receipt)
			return 1, nil
		})
		dying.Crash()
		return idem.Response{}, err
	})
	return st, state.TicketFor(one(st.MemoryStore))
}

// at has another do something before the nth call of a kind.
func at(verb string, n int, other func()) idemtest.Plan {
	return func(_ context.Context, c idemtest.Call) idemtest.Fault {
		if c.Verb == verb && c.N == n {
			other()
		}
		return idemtest.Fault{}
	}
}

// each asks plans in turn for a fault.
func each(plans ...idemtest.Plan) idemtest.Plan {
	return func(ctx context.Context, c idemtest.Call) idemtest.Fault {
		for _, plan := range plans {
			if f := plan(ctx, c); f != (idemtest.Fault{}) {
				return f
			}
		}
		return idemtest.Fault{}
	}
}

// An operator hears that it is decided, that it isn't, or that nobody knows; and never of a
// decision that somebody else's write has replaced.
func TestDecisionsInTrouble(t *testing.T) {
	t.Parallel()
	lost, applied := idemtest.Fault{Err: store.ErrUnknown}, idemtest.Fault{Err: store.ErrUnknown, Applied: true}
	conflict, denied := idemtest.Fault{Err: idem.ErrConflict}, idemtest.Fault{Err: errors.New("access denied")}
	commit := func(n int, f idemtest.Fault) func(*bodied) idemtest.Plan {
		return func(*bodied) idemtest.Plan { return idemtest.At("Commit", n, f) }
	}
	load := func(n int, f idemtest.Fault) func(*bodied) idemtest.Plan {
		return func(*bodied) idemtest.Plan { return idemtest.At("Load", n, f) }
	}
	another := func(st *bodied, c string) idemtest.Plan {
		return at(c, 1, func() { st.meddle(idemtest.Call{PK: one(st.MemoryStore).PK}, func(*store.Record) {}) })
	}
	for name, tt := range map[string]struct {
		plan    func(*bodied) idemtest.Plan
		want    error
		decided bool
	}{
		"no trouble":                     {func(*bodied) idemtest.Plan { return nil }, nil, true},
		"the write is lost":              {commit(1, lost), nil, true},
		"its answer is lost":             {commit(1, applied), nil, true},
		"it conflicts":                   {commit(1, conflict), nil, true},
		"it conflicts each time":         {commit(0, conflict), idem.ErrUnavailable, false},
		"each write is lost":             {commit(0, lost), idem.ErrUnavailable, false},
		"each write is denied":           {commit(0, denied), idem.ErrUnavailable, false},
		"applied, and said to be denied": {commit(1, idemtest.Fault{Err: denied.Err, Applied: true}), nil, true},
		"nothing can be read":            {load(1, denied), idem.ErrUnavailable, false},
		"nothing tells": {func(*bodied) idemtest.Plan {
			return each(idemtest.At("Commit", 0, applied), func(_ context.Context, c idemtest.Call) idemtest.Fault {
				if c.Verb == "Load" && c.N > 1 {
					return denied
				}
				return idemtest.Fault{}
			})
		}, store.ErrUnknown, true},
		"somebody else has written it": {func(st *bodied) idemtest.Plan { return another(st, "Commit") }, jobs.ErrMoved, false},
		"it was lost, and the record is gone": {func(st *bodied) idemtest.Plan {
			return each(at("Load", 2, st.empty), idemtest.At("Commit", 1, lost))
		}, store.ErrUnknown, false},
		"a job is delivered meanwhile": {func(st *bodied) idemtest.Plan {
			return at("Commit", 1, func() { st.change(one(st.MemoryStore).PK, func(r *store.Record) { r.Jobs = nil }) })
		}, nil, true},
	} {
		for op, decide := range map[string]func(context.Context, *idem.Engine, jobs.Ticket) error{
			"EndLease": func(ctx context.Context, e *idem.Engine, seen jobs.Ticket) error {
				return e.EndLease(ctx, seen, "jane")
			},
			"Forget": func(ctx context.Context, e *idem.Engine, seen jobs.Ticket) error {
				_, err := e.Forget(ctx, seen, "jane", idem.Loss{Held: true, Work: true, Jobs: true})
				return err
			},
		} {
			t.Run(op+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					st, seen := leaves(t)
					e := idem.New(idemtest.Faulty(st, tt.plan(st)), callertest.Anybody)
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					err := decide(ctx, e, seen)
					if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
						t.Errorf("got %v, want %v", err, tt.want)
					}
					if r := one(st.MemoryStore); r != nil && (len(r.Settled) == 1) != tt.decided {
						t.Errorf("decided: %+v, want one decision: %t", r.Settled, tt.decided)
					}
				})
			})
		}
	}
}

// What is sealed, and can't be opened, can be forgotten; what can't be read can't.
func TestForgetOfASealedRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err      error
		returned bool
		want     error
	}{
		"sealed":            {store.ErrSealed, true, nil},
		"sealed, no record": {store.ErrSealed, false, idem.ErrUnavailable},
		"denied":            {errDown, true, idem.ErrUnavailable},
	} {
		st, seen := leaves(t)
		e := idem.New(&spoilt{Store: st, load: func(ctx context.Context, pk string) (*store.Record, error) {
			r, err := st.Load(ctx, pk)
			if !tt.returned {
				r = nil
			}
			return r, errors.Join(err, tt.err)
		}}, callertest.Anybody)
		_, err := e.Forget(t.Context(), seen, "jane", idem.Loss{Held: true, Work: true, Jobs: true})
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || state.Freed(one(st.MemoryStore)) != (tt.want == nil) {
			t.Errorf("%s: got %v, want %v; the record is %+v", name, err, tt.want, one(st.MemoryStore))
		}
	}
}

// A freed record whose contents can't be opened is not "already erased": it still has its caller.
func TestEraseOfASealedFreedRecord(t *testing.T) {
	t.Parallel()
	mem := new(idem.MemoryStore)
	_, _ = idem.New(mem, callertest.Anybody).Do(t.Context(), ann, func(context.Context) (idem.Response, error) { return idem.Response{}, errDown })
	closed := &spoilt{Store: mem, load: func(ctx context.Context, pk string) (*store.Record, error) {
		r, err := mem.Load(ctx, pk)
		r.Scope = "" // as the decoder of dynamo leaves a sealed scope
		return r, errors.Join(err, store.ErrSealed)
	}}
	if err := idem.New(closed, callertest.Anybody).Erase(t.Context(), state.TicketFor(one(mem)), "jane"); errors.Is(err, jobs.ErrMoved) || !errors.Is(err, store.ErrSealed) {
		t.Errorf("got %v, want store.ErrSealed", err)
	}
}

// Nobody decides about another namespace's records, or without the time to do so.
func TestDecisionsThatDoNotBegin(t *testing.T) {
	t.Parallel()
	st, seen := leaves(t)
	short, cancel := context.WithTimeout(t.Context(), defaults.Reserve/2)
	defer cancel()
	e := idem.New(st, callertest.Anybody)
	for name, tt := range map[string]struct{ got, want error }{
		"Settle, elsewhere":    {e.Settle(t.Context(), "x", idem.Settlement{}), jobs.ErrMoved},
		"MarkStuck, elsewhere": {e.MarkStuck(t.Context(), jobs.Ticket{PK: "x"}, "test"), jobs.ErrMoved},
		"EndLease, no time":    {e.EndLease(short, seen, "jane"), idem.ErrNoTime},
		"MarkStuck, no time":   {e.MarkStuck(short, seen, "test"), idem.ErrNoTime},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, tt.got, tt.want)
		}
	}
	if r := one(st.MemoryStore); r.Ver != seen.Ver {
		t.Errorf("the record was written: version %d, want %d", r.Ver, seen.Ver)
	}
}

// Giving an operation up is a take-over too: an operator hears if it failed.
func TestMarkStuckInTrouble(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan func(*bodied) idemtest.Plan
		want error
		is   store.State
	}{
		"it conflicts each time": {func(*bodied) idemtest.Plan {
			return idemtest.At("Commit", 0, idemtest.Fault{Err: idem.ErrConflict})
		}, idem.ErrUnavailable, store.Open},
		"nothing can be read": {func(*bodied) idemtest.Plan { return idemtest.At("Load", 1, idemtest.Fault{Err: errDown}) }, errDown, store.Open},
		"somebody is faster": {func(st *bodied) idemtest.Plan {
			return at("Commit", 1, func() { st.meddle(idemtest.Call{PK: one(st.MemoryStore).PK}, func(*store.Record) {}) })
		}, jobs.ErrMoved, store.Open},
		"its answer is lost": {func(*bodied) idemtest.Plan {
			return idemtest.At("Commit", 2, idemtest.Fault{Err: store.ErrUnknown, Applied: true})
		}, nil, store.Stuck},
	} {
		synctest.Test(t, func(t *testing.T) {
			st, ticket := leaves(t)
			time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := idem.New(idemtest.Faulty(st, tt.plan(st)), callertest.Anybody).MarkStuck(ctx, ticket, "nobody came")
			if r := one(st.MemoryStore); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || r.State != tt.is {
				t.Errorf("%s: got %v, the record is %s; want %v, %s", name, err, r.State, tt.want, tt.is)
			}
		})
	}
}

// An operator's decisions about a call that the provider may have forgotten, and how the
// operation continues: the call is made again under its key, or not at all.
func TestSettlingACallThatTheProviderMayHaveForgotten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		early      bool // before it is stuck in the call
		settlement idem.Settlement
		want       error
		charges    int // in the end
		body       string
	}{
		"without a word":         {false, idem.Settlement{}, idem.ErrResult, 1, ""},
		"its result":             {false, idem.Settlement{Result: []byte(`"ch_1"`)}, nil, 1, "ch_1"},
		"not made":               {false, idem.Settlement{NotMade: true}, nil, 2, ""},
		"at the own risk":        {false, idem.Settlement{RiskTwice: true}, nil, 2, ""},
		"early, not made":        {true, idem.Settlement{NotMade: true}, nil, 2, ""},
		"early, at the own risk": {true, idem.Settlement{RiskTwice: true}, nil, 2, ""},
	} {
		a := accepting()
		var w outside
		tips := make(map[string]bool)
		a.dies(t, func(die func()) handler { return charging("charge", func(key string) { w.charge(key); die() }) })
		a.clock.Advance(25 * time.Hour)
		if tc.early {
			if err := a.engine.MarkStuck(t.Context(), state.TicketFor(a.record(t)), "nobody came"); err != nil {
				t.Fatal(err)
			}
		} else if _, err := a.do(t, charging("charge", w.charge)); !errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		if err := a.engine.Settle(t.Context(), a.record(t).PK, tc.settlement); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: settled: %v, want %v", name, err, tc.want)
		}
		a.clock.Advance(30 * time.Hour) // the new attempt has no call in doubt
		res, err := a.do(t, func(ctx context.Context) (idem.Response, error) {
			id, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (string, error) { w.charge(tx.Key("payments")); return "", nil })
			if err != nil {
				return idem.Response{}, err
			}
			_, err = idem.Foreign(ctx, "tip", func(_ context.Context, tx *idem.Tx) (int, error) { tips[tx.Key("payments")] = true; return 1, nil })
			return idem.Response{Status: 201, Body: []byte(id)}, err
		})
		if len(w.calls) != tc.charges || len(w.charged()) != 1 || tips[w.calls[0]] {
			t.Errorf("%s: calls %v, tips %v; want %d under one key, and the tip under another", name, w.calls, tips, tc.charges)
		}
		if tc.want != nil && !errors.Is(err, idem.ErrStuck) || tc.want == nil && (err != nil || string(res.Body) != tc.body) {
			t.Errorf("%s: then %+v, %v, want %q", name, res, err, tc.body)
		}
	}
}
