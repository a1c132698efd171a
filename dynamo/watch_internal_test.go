package dynamo

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
)

// priced answers calls with their units, where they are asked for, or with an error.
type priced struct{ err error }

func one(asks types.ReturnConsumedCapacity, units float64) *types.ConsumedCapacity {
	if asks != types.ReturnConsumedCapacityTotal {
		return nil
	}
	return &types.ConsumedCapacity{CapacityUnits: aws.Float64(units)}
}

func two(asks types.ReturnConsumedCapacity, first, second float64) []types.ConsumedCapacity {
	if asks != types.ReturnConsumedCapacityTotal {
		return nil
	}
	return []types.ConsumedCapacity{*one(asks, first), *one(asks, second)}
}

func (p priced) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{ConsumedCapacity: one(in.ReturnConsumedCapacity, 1)}, p.err
}

func (p priced) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if p.err != nil {
		return nil, p.err
	}
	return &dynamodb.PutItemOutput{ConsumedCapacity: one(in.ReturnConsumedCapacity, 2)}, nil
}

func (p priced) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{ConsumedCapacity: one(in.ReturnConsumedCapacity, 3)}, p.err
}

func (p priced) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: two(in.ReturnConsumedCapacity, 4, 0.5)}, p.err
}

func (p priced) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if p.err != nil {
		return nil, p.err
	}
	return &dynamodb.BatchGetItemOutput{ConsumedCapacity: two(in.ReturnConsumedCapacity, 5, 0.5)}, nil
}

func (p priced) BatchWriteItem(_ context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return &dynamodb.BatchWriteItemOutput{ConsumedCapacity: two(in.ReturnConsumedCapacity, 6, 0.5)}, p.err
}

// Each call tells its units, as reads or as writes. Without Units nobody asks for them.
func TestUnitsOfEachCall(t *testing.T) {
	t.Parallel()
	for op, tt := range map[string]struct {
		send          func(context.Context, API) error
		reads, writes float64
	}{
		"GetItem": {func(ctx context.Context, a API) error { _, err := a.GetItem(ctx, &dynamodb.GetItemInput{}); return err }, 1, 0},
		"PutItem": {func(ctx context.Context, a API) error { _, err := a.PutItem(ctx, &dynamodb.PutItemInput{}); return err }, 0, 2},
		"UpdateItem": {func(ctx context.Context, a API) error {
			_, err := a.UpdateItem(ctx, &dynamodb.UpdateItemInput{})
			return err
		}, 0, 3},
		"TransactWriteItems": {func(ctx context.Context, a API) error {
			_, err := a.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{})
			return err
		}, 0, 4.5},
		"BatchGetItem": {func(ctx context.Context, a API) error {
			_, err := a.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{})
			return err
		}, 5.5, 0},
		"BatchWriteItem": {func(ctx context.Context, a API) error {
			_, err := a.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{})
			return err
		}, 0, 6.5},
	} {
		for _, units := range []bool{true, false} {
			var told []store.Call
			w := &watched{API: priced{}, units: units, hooks: Hooks{Called: func(_ context.Context, c store.Call) { told = append(told, c) }}}
			if err := tt.send(t.Context(), w); err != nil || len(told) != 1 {
				t.Fatalf("%s: %v, told %+v", op, err, told)
			}
			want := [2]float64{}
			if units {
				want = [2]float64{tt.reads, tt.writes}
			}
			if got := [2]float64{told[0].ReadUnits, told[0].WriteUnits}; told[0].Op != op || got != want {
				t.Errorf("%s, units asked for: %t: told %+v, want %v units", op, units, told[0], want)
			}
		}
	}
}

// A refused write costs the units of the item that has refused it, one at least, though
// its error doesn't tell them.
func TestUnitsOfARefusedWrite(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]float64{0: 1, 1024: 1, 1025: 2, 2048: 2} {
		refused := &types.ConditionalCheckFailedException{}
		if size > 0 {
			refused.Item = item.Map{"pk": str(strings.Repeat("x", size-2))}
		}
		for units, want := range map[bool]float64{true: want, false: 0} {
			var meter store.Meter
			w := &watched{API: priced{err: refused}, units: units}
			_, _ = w.PutItem(store.WithMeter(t.Context(), &meter), &dynamodb.PutItemInput{})
			if diff := cmp.Diff(store.Cost{Calls: 1, WriteUnits: want}, meter.Cost()); diff != "" {
				t.Errorf("an item of %d bytes, units %t (-want +got):\n%s", size, units, diff)
			}
		}
	}
}

// Roles lack the right to batches on purpose. The lack of any other right is a fault.
func TestDeniedBatchIsNoFault(t *testing.T) {
	t.Parallel()
	denied := &deniedError{}
	var meter store.Meter
	ctx := store.WithMeter(t.Context(), &meter)
	w := &watched{API: priced{err: denied}}
	_, _ = w.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{})
	if got := meter.Cost(); len(got.Faults) != 0 {
		t.Errorf("a batch: %+v", got)
	}
	w.API = priced{err: &types.ThrottlingException{}}
	if _, _ = w.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{}); meter.Cost().Faults[store.Throttled] != 1 {
		t.Errorf("a throttled batch: %+v", meter.Cost())
	}
	w.API = priced{err: denied}
	_, _ = w.PutItem(ctx, &dynamodb.PutItemInput{})
	if got := meter.Cost(); got.Faults[store.Denied] != 1 {
		t.Errorf("a put: %+v", got)
	}
}
