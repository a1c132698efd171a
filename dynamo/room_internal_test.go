package dynamo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// Calls count, too: after a commit with them a take-over still fits.
func TestRoomForCallsBesideAResult(t *testing.T) {
	t.Parallel()
	for calls, fits := range map[int]bool{1: true, 508: false} {
		r := &store.Record{Phases: []store.Phase{{Name: "one", Result: make([]byte, 375<<10)}}, Calls: make(map[string]int)}
		for i := range calls {
			r.Calls[fmt.Sprintf("payments/charge-of-item-%04d", i)] = 1
		}
		if n := atMost(r); (n <= maxItem-state.Room) != fits {
			t.Errorf("%d calls beside 375 KB: %d bytes at most; they leave room: %t", calls, n, fits)
		}
	}
}

// What a record has beside its phases counts, too: its stored request, to the byte, with its
// query and with what may come into the record of its body.
func TestRoomForARequestBesidePhases(t *testing.T) {
	t.Parallel()
	record := func(query, body int) *store.Record {
		return &store.Record{
			PK: "pk", Owner: "o", Ver: 1, ID: "i", State: store.Open, Phases: []store.Phase{{Name: "one", Result: []byte("1")}},
			Input: &store.Input{Method: "POST", Path: "/", Query: strings.Repeat("q", query), Body: make([]byte, body)},
		}
	}
	for query, fits := range map[int]bool{1000: true, maxItem - state.Room - 2000: true, maxItem - state.Room: false} {
		if err := leavesRoom(&nothing, record(query, 0), nil, nil); (err == nil) != fits || err != nil && !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("a query of %d bytes: %v", query, err)
		}
	}
	const rest = maxItem - state.Room - 2000
	for body, fits := range map[int]bool{1000: true, 3000: false, maxInline: false} {
		if err := leavesRoom(&nothing, record(rest, body), nil, nil); (err == nil) != fits {
			t.Errorf("a body of %d bytes beside %d: %v", body, rest, err)
		}
	}
	// Of a body in other items nothing comes into the record.
	r := record(rest, maxInline)
	r.Input.Overflow = &store.Overflow{Owner: "o", Count: 1, Length: maxInline}
	if err := leavesRoom(&nothing, r, nil, nil); err != nil {
		t.Errorf("a body in other items: %v", err)
	}
}
