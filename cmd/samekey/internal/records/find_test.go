package records

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/hostiletest"
)

// found compares the record with the name that was asked for, since
// another operation may have taken the key.
func TestFoundIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s, err := dynamo.New(&fakedynamo.Server{}, "records")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	rec := hostiletest.Records("rides", now)["held"].Clone()
	rec.ID, rec.Calls = strings.Repeat("A", 26), map[string]int{"bank#": 1}
	if held, err := s.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil || held != nil {
		t.Fatalf("claim: %v, %v", held, err)
	}
	f := &Finder{Store: s}
	for ref, is := range map[string]bool{
		rec.ID: true, rec.ID + ".0.0": true, redact.Record(rec.PK): true, state.DerivedKey(rec.ID, "bank#1"): true,
		strings.Repeat("B", 26): false, strings.Repeat("B", 26) + ".0.0": false, "abcdefgh": false, state.DerivedKey("B", "bank#1"): false,
	} {
		got, err := f.found(t.Context(), rec.PK, ref)
		_, other := errors.AsType[NotFound](err)
		if (got != nil) != is || other == is {
			t.Errorf("%s: got %v, %v; want it found: %t", ref, got, err, is)
		}
	}
	if got, err := f.found(t.Context(), "v1#rides#gone", rec.ID); got != nil || err == nil || err.Error() != "the record was deleted after the search found it" {
		t.Errorf("a record that has gone: got %v, %v", got, err)
	}
}
