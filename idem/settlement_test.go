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
