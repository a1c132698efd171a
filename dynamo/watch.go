package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/hook"
	"github.com/samekey/samekey/internal/base/itemsize"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/meter"
)

// Hooks are called by a [Store] as it works. A nil hook is skipped and costs nothing. Calls may
// be concurrent; hooks must neither block nor panic.
type Hooks struct {
	// Called is called after each call to DynamoDB that serves a request, and after each call that
	// drain or sweep makes for a single record. A sweep's scan isn't reported, because it uses
	// another client. For the total of a request's calls see [idem.Summary].Cost.
	Called func(context.Context, store.Call)
}

// Join returns Hooks that call all of the given hooks, in order.
func Join(all ...Hooks) Hooks {
	var joined Hooks
	for _, h := range all {
		joined.Called = hook.Both(joined.Called, h.Called)
	}
	return joined
}

// watched is an API that reports its calls to the hooks and to the context's Meter.
type watched struct {
	API
	hooks Hooks
	units bool
}

type call struct {
	store.Call
	meter *meter.Meter
}

// watch makes a call, and reports the call if there are hooks or a Meter. asks points to the field
// of the input that requests the capacity units. The function cost reads the units from the output.
func watch[O any](
	ctx context.Context, w *watched, op string, asks *types.ReturnConsumedCapacity, send func() (*O, error), cost func(*call, *O),
) (*O, error) {
	meter := meter.Of(ctx)
	if meter == nil && w.hooks.Called == nil {
		return send()
	}
	if w.units {
		*asks = types.ReturnConsumedCapacityTotal
	}
	c := call{store.Call{Op: op, Begun: time.Now()}, meter}
	out, err := send()
	c.Duration = time.Since(c.Begun)
	if out != nil {
		cost(&c, out)
	}
	w.failed(&c, err)
	meter.Add(c.Call)
	if w.hooks.Called != nil {
		w.hooks.Called(ctx, c.Call)
	}
	return out, err
}

func (w *watched) failed(c *call, err error) {
	c.Err, c.Fault = err, item.FaultOf(err)
	if strings.HasPrefix(c.Op, "Batch") && item.AccessDenied(err) {
		c.Fault = "" // no fault: some roles lack the right to batches on purpose, and the store then sends single items
	}
	if last, ok := errors.AsType[*retry.MaxAttemptsError](err); ok {
		c.Retries = last.Attempt - 1
	}
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok && w.units {
		// A refused write costs the units of the whole item, but the error doesn't
		// contain them.
		c.WriteUnits = float64(max((itemsize.Of(refused.Item)+1023)/1024, 1))
	}
}

// call.sent notes how often the SDK repeated the call, and returns the call's units.
func (c *call) sent(meta middleware.Metadata, used ...types.ConsumedCapacity) (units float64) {
	if attempts, ok := retry.GetAttemptResults(meta); ok {
		c.Retries = max(len(attempts.Results)-1, 0)
	}
	for i := range used {
		units += aws.ToFloat64(used[i].CapacityUnits)
	}
	return units
}

func (c *call) sentOne(meta middleware.Metadata, used *types.ConsumedCapacity) (units float64) {
	if used == nil {
		used = &types.ConsumedCapacity{}
	}
	return c.sent(meta, *used)
}

// GetItem implements [API].
func (w *watched) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return watch(ctx, w, "GetItem", &in.ReturnConsumedCapacity,
		func() (*dynamodb.GetItemOutput, error) { return w.API.GetItem(ctx, in, optFns...) },
		func(c *call, out *dynamodb.GetItemOutput) {
			c.ReadUnits = c.sentOne(out.ResultMetadata, out.ConsumedCapacity)
		})
}

// PutItem implements [API].
func (w *watched) PutItem(ctx context.Context, in *dynamodb.PutItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return watch(ctx, w, "PutItem", &in.ReturnConsumedCapacity,
		func() (*dynamodb.PutItemOutput, error) { return w.API.PutItem(ctx, in, optFns...) },
		func(c *call, out *dynamodb.PutItemOutput) {
			c.WriteUnits = c.sentOne(out.ResultMetadata, out.ConsumedCapacity)
		})
}

// UpdateItem implements [API].
func (w *watched) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return watch(ctx, w, "UpdateItem", &in.ReturnConsumedCapacity,
		func() (*dynamodb.UpdateItemOutput, error) { return w.API.UpdateItem(ctx, in, optFns...) },
		func(c *call, out *dynamodb.UpdateItemOutput) {
			c.WriteUnits = c.sentOne(out.ResultMetadata, out.ConsumedCapacity)
		})
}

// TransactWriteItems implements [API].
func (w *watched) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return watch(ctx, w, "TransactWriteItems", &in.ReturnConsumedCapacity,
		func() (*dynamodb.TransactWriteItemsOutput, error) {
			return w.API.TransactWriteItems(ctx, in, optFns...)
		},
		func(c *call, out *dynamodb.TransactWriteItemsOutput) {
			c.WriteUnits = c.sent(out.ResultMetadata, out.ConsumedCapacity...)
		})
}

// BatchGetItem implements [API].
func (w *watched) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return watch(ctx, w, "BatchGetItem", &in.ReturnConsumedCapacity,
		func() (*dynamodb.BatchGetItemOutput, error) { return w.API.BatchGetItem(ctx, in, optFns...) },
		func(c *call, out *dynamodb.BatchGetItemOutput) {
			c.ReadUnits = c.sent(out.ResultMetadata, out.ConsumedCapacity...)
		})
}

// BatchWriteItem implements [API].
func (w *watched) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return watch(ctx, w, "BatchWriteItem", &in.ReturnConsumedCapacity,
		func() (*dynamodb.BatchWriteItemOutput, error) { return w.API.BatchWriteItem(ctx, in, optFns...) },
		func(c *call, out *dynamodb.BatchWriteItemOutput) {
			c.WriteUnits = c.sent(out.ResultMetadata, out.ConsumedCapacity...)
		})
}
