package semantics

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/middleware"
)

// planted is a database with a fault: in what it is asked for, or in what it answers.
type planted struct {
	ask    func(in any)
	answer func(in, out any)
	breaks []string // the assumptions
}

func (f planted) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fault", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if f.ask != nil {
			f.ask(in.Parameters)
		}
		out, meta, err := next.HandleInitialize(ctx, in)
		if f.answer != nil && err == nil {
			f.answer(in.Parameters, out.Result)
		}
		return out, meta, err
	}), middleware.Before)
}

// rewrite changes the expression of an update.
func rewrite(old, replacement string) func(any) {
	return func(in any) {
		if u, ok := in.(*dynamodb.UpdateItemInput); ok {
			u.UpdateExpression = aws.String(strings.ReplaceAll(*u.UpdateExpression, old, replacement))
		}
	}
}

func faults() map[string]planted {
	var mu sync.Mutex
	read := map[string]item{}
	return map[string]planted{
		"refusals without items": {
			breaks: []string{"refused-put-has-item", "refused-update-has-item", "cancelled-has-items"},
			ask: func(in any) {
				switch in := in.(type) {
				case *dynamodb.PutItemInput:
					in.ReturnValuesOnConditionCheckFailure = ""
				case *dynamodb.UpdateItemInput:
					in.ReturnValuesOnConditionCheckFailure = ""
				case *dynamodb.TransactWriteItemsInput:
					for _, t := range in.TransactItems {
						if t.Put != nil {
							t.Put.ReturnValuesOnConditionCheckFailure = ""
						}
					}
				}
			},
		},
		"conditions that hold": {
			breaks: []string{"one-winner", "absent-compares-false", "paths-of-maps", "transaction-all-or-none"},
			ask: func(in any) {
				switch in := in.(type) {
				case *dynamodb.PutItemInput:
					in.ConditionExpression = nil
				case *dynamodb.UpdateItemInput:
					in.ConditionExpression = nil
					for name := range in.ExpressionAttributeValues {
						if !strings.Contains(*in.UpdateExpression, name) {
							delete(in.ExpressionAttributeValues, name)
						}
					}
				case *dynamodb.TransactWriteItemsInput:
					for _, t := range in.TransactItems {
						if t.Put != nil {
							t.Put.ConditionExpression = nil
						}
					}
				}
			},
		},
		"size of another map": {breaks: []string{"size-counts-entries"}, ask: func(in any) {
			if p, ok := in.(*dynamodb.PutItemInput); ok {
				if jobs, ok := p.Item["jobs"].(*types.AttributeValueMemberM); ok {
					delete(jobs.Value, "0")
				}
			}
		}},
		"an update that reads what it writes": {breaks: []string{"update-reads-before-it-writes"}, ask: rewrite("if_not_exists(run_ms, created_ms)", ":now")},
		"a removal that takes a neighbour":    {breaks: []string{"entries-apart"}, ask: rewrite("jobs.nothing", "jobs.z")},
		"stale reads": {breaks: []string{"consistent-reads"}, answer: func(in, out any) {
			mu.Lock()
			defer mu.Unlock()
			if get, ok := in.(*dynamodb.GetItemInput); ok {
				pk, got := textOf(get.Key["pk"]), out.(*dynamodb.GetItemOutput)
				if old, ok := read[pk]; ok {
					got.Item = old
				}
				read[pk] = got.Item
			}
		}},
		"no tokens": {breaks: []string{"token-repeats", "token-of-another"}, ask: func(in any) {
			if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
				t.ClientRequestToken = nil
			}
		}},
		"other limits": {breaks: []string{"hundred-items", "item-size", "transaction-size"}, ask: func(in any) {
			shrink := func(it item) {
				if s := textOf(it["body"]); len(s) > 300<<10 {
					it["body"] = str(s[:100])
				}
			}
			switch in := in.(type) {
			case *dynamodb.PutItemInput:
				shrink(in.Item)
			case *dynamodb.TransactWriteItemsInput:
				in.TransactItems = in.TransactItems[:min(100, len(in.TransactItems))]
				for _, t := range in.TransactItems {
					if t.Put != nil {
						shrink(t.Put.Item)
					}
				}
			}
		}},
		"units of another price": {breaks: []string{"units-of-writes"}, answer: func(_, out any) {
			if p, ok := out.(*dynamodb.PutItemOutput); ok {
				p.ConsumedCapacity.CapacityUnits = aws.Float64(2 * *p.ConsumedCapacity.CapacityUnits)
			}
		}},
		"an index that forgets nothing": {breaks: []string{"sparse-index"}, ask: rewrite("REMOVE waits, wait_ms", "REMOVE nothing")},
		"a stream out of order": {breaks: []string{"stream-order"}, answer: func(_, out any) {
			if r, ok := out.(*dynamodbstreams.GetRecordsOutput); ok {
				rand.Shuffle(len(r.Records), func(i, j int) { r.Records[i], r.Records[j] = r.Records[j], r.Records[i] })
			}
		}},
		"a stream that repeats": {breaks: []string{"stream-order", "stream-of-changes-only"}, answer: func(_, out any) {
			if r, ok := out.(*dynamodbstreams.GetRecordsOutput); ok {
				r.Records = append(slices.Clone(r.Records), r.Records...)
			}
		}},
	}
}

// Each fault is found by the assumptions that it breaks, and each assumption that DynamoDB Local
// keeps is broken once.
func TestPlanted(t *testing.T) {
	t.Parallel()
	p := local(t)
	broken := map[string]bool{}
	for name, f := range faults() {
		for _, a := range All() {
			if !slices.Contains(f.breaks, a.Name) {
				continue
			}
			broken[a.Name] = true
			t.Run(name+"/"+a.Name, func(t *testing.T) {
				t.Parallel()
				q := p
				q.Settles = time.Second
				o, s := p.DB.Options(), p.Streams.Options()
				o.APIOptions, s.APIOptions = append(slices.Clone(o.APIOptions), f.middleware), append(slices.Clone(s.APIOptions), f.middleware)
				q.DB, q.Streams = dynamodb.New(o), dynamodbstreams.New(s)
				if figure, err := a.Examine(t.Context(), q); !IsDifference(err) {
					t.Errorf("not found: %s, %v", figure, err)
				}
			})
		}
	}
	for _, a := range All() {
		if a.Local == "" && !broken[a.Name] {
			t.Errorf("no fault breaks %s", a.Name)
		}
	}
}
