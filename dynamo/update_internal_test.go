package dynamo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Every attribute an expression names without a placeholder must not be one of
// DynamoDB's reserved words; the service would refuse it only when it is used.
func TestReservedWordsHavePlaceholders(t *testing.T) {
	t.Parallel()
	prev := &store.Record{Owner: "a", Ver: 1, Expires: time.Unix(1, 0)}
	next := &store.Record{
		Owner: "b", Ver: 2, State: store.Done, Keep: store.KeepJobs, LastErr: "e", Until: time.Unix(2, 0), Tombstone: time.Minute, Lease: time.UnixMilli(3),
		Run: time.UnixMilli(4), Tries: 1, Phases: []store.Phase{{Name: "p"}}, Jobs: map[string]idem.Job{"0.0": {Kind: "k"}},
		Response: &idem.Response{Status: 200},
	}
	u, err := (&Store{inline: defaultInline}).update(t.Context(), store.Commit{Prev: prev, Next: next})
	if err != nil {
		t.Fatal(err)
	}
	expression := *u.expression()
	for _, word := range []string{" owner ", " region ", " scope ", ",owner", "(owner"} {
		if strings.Contains(" "+expression+" "+holderCondition+" "+claimCondition+" ", word) {
			t.Errorf("reserved word %q in %s", word, expression)
		}
	}
	want := "SET ver = :ver1, #owner = :owner1, st = :st, keep = :keep, last_err = :last_err, until_s = :until_s, tomb_s = :tomb_s, " +
		"lease_ms = :lease, run_ms = :run, tries = :tries, phases = :phases, jobs.#j0 = :j0, resp = :resp REMOVE exp_s, req"
	if diff := cmp.Diff(want, expression); diff != "" {
		t.Errorf("expression (-want +got):\n%s", diff)
	}
}
