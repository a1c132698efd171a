package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// A redrive adds its decision without raising ver: a decision that was made from the
// record as it was before must not remove it.
func TestDecisionsOfTwoOperatorsStay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	r := tab.held(t)
	now := time.Now().Truncate(time.Millisecond)
	var v item.Values
	redrive := state.Settlement{By: "omar"}
	other, err := state.Settled(r, redrive, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(tab.Name), Key: item.Key(r.PK), UpdateExpression: aws.String("SET settled = :d"),
		ExpressionAttributeValues: item.Map{":d": v.Settled(other.Settled)},
	}); err != nil {
		t.Fatal(err)
	}
	next, err := state.Settled(r, state.Settlement{By: "jane"}, now)
	if err != nil {
		t.Fatal(err)
	}
	state.Stamp(next, r, "operator")
	if held, err := tab.Store.Commit(t.Context(), store.Commit{Prev: r, Next: next}); held != nil || err != nil {
		t.Fatal(held, err)
	}
	got, err := tab.Store.Load(t.Context(), r.PK)
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, d := range got.Settled {
		by = append(by, d.By)
	}
	if diff := cmp.Diff([]string{"omar", "jane"}, by); diff != "" {
		t.Errorf("decisions by (-want +got):\n%s", diff)
	}
}
