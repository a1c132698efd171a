package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// unknownOutcome is stuck in a call with an unknown outcome.
func unknownOutcome(t *testing.T) *abandoned {
	t.Helper()
	a := accepting()
	if _, err := do(t, a.engine, func(ctx context.Context) (idem.Response, error) { return a.charge(ctx, "", errors.New("timeout")) }); !errors.Is(err, idem.ErrStuck) {
		t.Fatal(err)
	}
	return a
}

// charge calls a provider without keys.
func (a *abandoned) charge(ctx context.Context, id string, err error) (idem.Response, error) {
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
	pk, seen := a.record(t).PK, jobs.TicketFor(a.record(t))
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
		if err := a.engine.MarkStuck(t.Context(), jobs.TicketFor(a.record(t)), "nobody came"); err != nil {
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
