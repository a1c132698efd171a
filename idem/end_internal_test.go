package idem

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// The whole table of outcomes and doubts, without a store. "stored" ends the operation;
// "fails" tells the client to retry, and "breaks" people, too; "withheld" gives an answer only
// if nothing is kept under the key, "given" always; "refused" means that the key may be free.
func TestDecide(t *testing.T) {
	t.Parallel()
	failed, own, passed := errors.New("a phase"), errors.New("the handler"), errors.New("passed by")
	word := func(e ending) string {
		switch {
		case e.store:
			return "stored"
		case e.breaks:
			return "breaks"
		case e.err != nil:
			return "fails"
		case e.withheld && e.refused:
			return "withheld, refused"
		case e.withheld:
			return "withheld"
		case e.refused:
			return "given, refused"
		}
		return "given"
	}
	at := func(status int, o outcome) outcome { o.resp.Status = status; return o }
	doubts := []unresolved{{}, {missed: true}, {leftOut: passed}, {passed, true}}
	for _, row := range []struct {
		what string
		o    outcome
		want [4]string // without a doubt, a mark missed, work passed by, both
	}{
		{"an error", outcome{err: own}, [4]string{"fails", "fails", "fails", "fails"}},
		{"an error after a failed phase", outcome{err: own, failed: failed}, [4]string{"fails", "fails", "fails", "fails"}},
		{"a phase that still runs", at(200, outcome{stored: true, failed: failed, outlived: true}), [4]string{"fails", "fails", "fails", "fails"}},
		{"Respond while a phase runs", at(200, outcome{definitive: true, failed: failed, outlived: true}), [4]string{"fails", "fails", "fails", "fails"}},
		{"Respond", at(503, outcome{definitive: true}), [4]string{"stored", "withheld", "breaks", "breaks"}},
		{"Respond after a failed phase", at(200, outcome{definitive: true, failed: failed}), [4]string{"stored", "withheld", "breaks", "breaks"}},
		{"an answer to store", at(402, outcome{stored: true}), [4]string{"stored", "withheld", "breaks", "breaks"}},
		{"a 5xx to store", at(500, outcome{stored: true}), [4]string{"stored", "withheld", "breaks", "breaks"}},
		{"a refusal", at(409, outcome{}), [4]string{"withheld, refused", "withheld", "breaks", "breaks"}},
		{"a success that isn't stored", at(204, outcome{}), [4]string{"withheld", "withheld", "breaks", "breaks"}},
		{"a 5xx", at(500, outcome{}), [4]string{"given", "withheld", "given", "withheld"}},
		{"a success after a failed phase", at(200, outcome{failed: failed}), [4]string{"fails", "fails", "fails", "fails"}},
		{"a refusal after a failed phase", at(409, outcome{failed: failed}), [4]string{"withheld", "withheld", "withheld", "withheld"}},
		{"a 5xx after a failed phase", at(503, outcome{failed: failed}), [4]string{"given", "withheld", "given", "withheld"}},
	} {
		for i, d := range doubts {
			e := decide(row.o, d)
			if got := word(e); got != row.want[i] {
				t.Errorf("%s, doubt %+v: %s, want %s", row.what, d, got, row.want[i])
			}
			reasons := []error{own, failed, passed}
			if e.err != nil && !slices.Contains(reasons, e.err) || !e.store && e.cause == nil && e.why == "" {
				t.Errorf("%s, doubt %+v: err %v, and no reason is kept: %+v", row.what, d, e.err, fmt.Sprintf("%+v", e))
			}
		}
	}
}
