package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/proof/prove/fault"
)

// recorder notes the calls of a request with their units, and makes them again. It asks for the units, of which
// a refused call's error has none.
type recorder struct {
	client *dynamodb.Client

	mu      sync.Mutex
	on      bool
	inputs  []any
	figures fault.Figures
}

func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.inputs, r.figures = true, nil, fault.Figures{}
}

func (r *recorder) end() fault.Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.figures
}

// record is an option of a client whose calls are recorded.
func (r *recorder) record(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("prove", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			in.Parameters = asking(in.Parameters)
			out, meta, err := next.HandleInitialize(ctx, in)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.on {
				r.inputs = append(r.inputs, in.Parameters)
				r.figures.Calls = append(r.figures.Calls, awsmiddleware.GetOperationName(ctx))
				r.figures.Refused += refusedCall(err)
				r.count(out.Result)
			}
			return out, meta, err
		}), middleware.After)
	})
}

func refusedCall(err error) int {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return 1
	}
	return 0
}

// asking is a copy of a call's input that asks for its units. What it isn't made for stays as it is, and can't be
// made again.
func asking(in any) any {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		in = new(*in)
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		return in
	case *dynamodb.UpdateItemInput:
		in = new(*in)
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		return in
	case *dynamodb.TransactWriteItemsInput:
		in = new(*in)
		in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		return in
	}
	return in
}

// count adds the units of an answer: of the table of records, or of the request's own.
func (r *recorder) count(out any) {
	var all []types.ConsumedCapacity
	switch out := out.(type) {
	case *dynamodb.PutItemOutput:
		if out != nil && out.ConsumedCapacity != nil {
			all = append(all, *out.ConsumedCapacity)
		}
	case *dynamodb.UpdateItemOutput:
		if out != nil && out.ConsumedCapacity != nil {
			all = append(all, *out.ConsumedCapacity)
		}
	case *dynamodb.TransactWriteItemsOutput:
		if out != nil {
			all = out.ConsumedCapacity
		}
	}
	for _, c := range all {
		switch {
		case c.CapacityUnits == nil || c.TableName == nil:
		case *c.TableName == os.Getenv("PROVE_TABLE"):
			r.figures.Own += *c.CapacityUnits
		default: // DynamoDB may name it by its ARN
			r.figures.Units += *c.CapacityUnits
		}
	}
}

// again makes the calls of the last request once more, as the SDK makes them: for another record of the same
// size, but of a request whose first call was refused, which is refused again.
func (r *recorder) again(ctx context.Context) (took time.Duration, _ error) {
	var rename func(map[string]types.AttributeValue) map[string]types.AttributeValue
	if r.figures.Refused == 0 {
		rename = renamed(rand.Text()[:12])
	} else {
		rename = func(m map[string]types.AttributeValue) map[string]types.AttributeValue { return m }
	}
	for _, in := range r.inputs {
		var call func() error
		switch in := in.(type) {
		case *dynamodb.PutItemInput:
			in.Item = rename(in.Item)
			call = func() error { _, err := r.client.PutItem(ctx, in); return err }
		case *dynamodb.UpdateItemInput:
			in.Key = rename(in.Key)
			call = func() error { _, err := r.client.UpdateItem(ctx, in); return err }
		case *dynamodb.TransactWriteItemsInput:
			in.ClientRequestToken, in.TransactItems = nil, renamedAll(in.TransactItems, rename)
			call = func() error { _, err := r.client.TransactWriteItems(ctx, in); return err }
		default:
			return 0, fmt.Errorf("%T can't be made again", in)
		}
		began := time.Now()
		err := call()
		took += time.Since(began)
		if err != nil && refusedCall(err) != r.figures.Refused {
			return 0, err
		}
	}
	return took, nil
}

// renamed gives a record another name of the same length.
func renamed(end string) func(map[string]types.AttributeValue) map[string]types.AttributeValue {
	return func(m map[string]types.AttributeValue) map[string]types.AttributeValue {
		pk, ok := m["pk"].(*types.AttributeValueMemberS)
		if !ok || len(pk.Value) < len(end) {
			return m
		}
		m = maps.Clone(m)
		m["pk"] = &types.AttributeValueMemberS{Value: pk.Value[:len(pk.Value)-len(end)] + end}
		return m
	}
}

func renamedAll(items []types.TransactWriteItem, rename func(map[string]types.AttributeValue) map[string]types.AttributeValue) []types.TransactWriteItem {
	all := make([]types.TransactWriteItem, 0, len(items))
	for _, t := range items {
		if t.Put != nil {
			t.Put = new(*t.Put)
			t.Put.Item = rename(t.Put.Item)
		}
		if t.Update != nil {
			t.Update = new(*t.Update)
			t.Update.Key = rename(t.Update.Key)
		}
		all = append(all, t)
	}
	return all
}
