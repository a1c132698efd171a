package lambdatest

import (
	"testing"

	"github.com/samekey/samekey/idem/idemtest"
)

// Replays sends ev twice and returns the first answer. The test passes if the handler
// makes the first answer, and the second answer is a replay with the same status, body
// and stored headers. An answer of 500 or above, or a batch that reports a failure,
// makes the test fail.
//
// An HTTP answer says whether it is a replay. Answers of lambda.Direct and of batches
// don't say so. For such answers pass the store's log: the test then fails if the
// second event commits anything.
//
//	store := idemtest.Watch(new(idem.MemoryStore))
//	h := lambda.Wrap(idem.New(store), lambda.Direct[Order, Receipt](byID), charge)
//	receipt := lambdatest.Replays(t, h, order, store)
func Replays[H Handler[Ev, Re], Ev, Re any](t testing.TB, h H, ev Ev, logs ...idemtest.Log) Re {
	t.Helper()
	commits := func() (n int) {
		for _, l := range logs {
			n += len(l.Commits())
		}
		return n
	}
	send := func(which string) (Re, answer) {
		re, err := h.Handle(t.Context(), ev)
		if err != nil {
			t.Fatalf("%s: %v", which, err)
		}
		a, err := read(re)
		if err != nil {
			t.Fatalf("%s: %v", which, err)
		}
		if err := a.failed(); err != nil {
			t.Fatalf("%s: %v", which, err)
		}
		return re, a
	}
	before := commits()
	first, a := send("the first event")
	switch {
	case !a.http && len(logs) == 0:
		t.Fatal("this answer doesn't say whether it is a replay: give the store's log, idemtest.Watch(store)")
	case a.replayed || len(logs) > 0 && commits() == before:
		t.Fatal("the first event was answered from a record, or not by the engine: its key is not new")
	}
	before = commits()
	again, b := send("the same event again")
	switch d := diff(first, again); {
	case a.http && !b.replayed, commits() != before:
		t.Errorf("the same event again ran the handler: its answer is not stored: %s", b.raw)
	case d != "":
		t.Errorf("the same event again is answered otherwise (-first +again):\n%s", d)
	}
	return first
}
