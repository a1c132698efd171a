package dynamo_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// A redrive adds its decision without raising ver: a decision that was made from the
// record as it was before must not remove it, however many the record has.
func TestDecisionsOfTwoOperatorsStay(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]int{"the first": 0, "of few": 3, "the oldest give way": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			r := tab.held(t)
			now := time.Now().Truncate(time.Millisecond)
			decided := func(r *store.Record, by string) *store.Record {
				next, err := state.Settled(r, state.Settlement{By: by}, now)
				if err != nil {
					t.Fatal(err)
				}
				next.Settled[len(next.Settled)-1].ID = by
				return next
			}
			write := func(r *store.Record) {
				var v item.Values
				if _, err := tab.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String(tab.Name), Key: item.Key(r.PK), UpdateExpression: aws.String("SET settled = :d"),
					ExpressionAttributeValues: item.Map{":d": v.Settled(r.Settled)},
				}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range earlier {
				r.Settled = decided(r, "earlier "+strconv.Itoa(i)).Settled
			}
			if earlier > 0 {
				write(r)
			}
			write(decided(r, "omar")) // as a redrive
			next := decided(r, "jane")
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
			if n := len(by); n != min(earlier+2, 10) || !slices.Equal(by[n-2:], []string{"omar", "jane"}) {
				t.Errorf("decisions by %q", by)
			}
		})
	}
}
