package semantics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"
)

// scripted answers calls without a database: it is in a bubble of synctest.
func scripted(answer func(in any) any) Place {
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("scripted", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
			switch in := in.Parameters.(type) {
			case *dynamodb.TransactWriteItemsInput:
				if out.Result = (&dynamodb.TransactWriteItemsOutput{}); in.TransactItems[1].Put.ConditionExpression != nil {
					err = &types.TransactionCanceledException{}
				}
			case *dynamodb.PutItemInput:
				out.Result = &dynamodb.PutItemOutput{}
			case *dynamodb.UpdateItemInput:
				out.Result = &dynamodb.UpdateItemOutput{}
			case *dynamodb.DescribeTableInput:
				out.Result = &dynamodb.DescribeTableOutput{Table: &types.TableDescription{LatestStreamArn: aws.String("arn")}}
			default:
				out.Result = answer(in)
			}
			return out, meta, err
		}), middleware.After)
	}}}
	return Place{DB: dynamodb.NewFromConfig(cfg), Streams: dynamodbstreams.NewFromConfig(cfg), Table: "t"}
}

func assumption(t *testing.T, name string) Assumption {
	t.Helper()
	all := All()
	i := slices.IndexFunc(all, func(a Assumption) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// An index may be late, and fails its assumption if it stays behind.
func TestIndex(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for want, since := range map[string][2]time.Duration{ // has it, and has it no more, after
		"there after 0 ms":                                 {0, 0},
		"there after 400 ms":                               {300 * time.Millisecond, 20 * time.Second},
		"differs: the index hasn't the item within 20s":    {20*time.Second + 1, never},
		"differs: the index still has the item within 20s": {0, 20*time.Second + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			had := false
			began := time.Now()
			p := scripted(func(in any) any {
				out := &dynamodb.QueryOutput{}
				switch late := time.Since(began); {
				case *in.(*dynamodb.QueryInput).IndexName != "waiting":
				case !had && late >= since[0]:
					had, began = true, time.Now()
					fallthrough
				case had && late < since[1]:
					out.Items = make([]item, 1)
				}
				return out
			})
			if got := said(assumption(t, "sparse-index").Examine(t.Context(), p)); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		})
	}
}

// Who ends a wait is told why.
func TestUntilEnded(t *testing.T) {
	t.Parallel()
	why := errors.New("the run reached its limit")
	ctx, end := context.WithCancelCause(t.Context())
	end(why)
	p := &probe{Place: Place{Settles: time.Hour}}
	if err := p.until(ctx, "", func() (bool, error) { return false, nil }); !errors.Is(err, why) {
		t.Error(err)
	}
}

// A stream whose shards come late and end has all changes of an item. Each that is missing, another, or there twice
// fails the assumption.
func TestStream(t *testing.T) {
	t.Parallel()
	of := func(kind, name, before, after string) streamtypes.Record {
		image := func(ver string) map[string]streamtypes.AttributeValue {
			if ver == "" {
				return nil
			}
			return map[string]streamtypes.AttributeValue{"ver": &streamtypes.AttributeValueMemberN{Value: ver}}
		}
		return streamtypes.Record{EventName: streamtypes.OperationType(kind), Dynamodb: &streamtypes.StreamRecord{
			Keys: map[string]streamtypes.AttributeValue{"pk": &streamtypes.AttributeValueMemberS{Value: "run#" + name}}, OldImage: image(before), NewImage: image(after),
		}}
	}
	ordered := []streamtypes.Record{of("INSERT", "a", "", "0")}
	for i := 1; i < updates; i++ {
		ordered = append(ordered, of("MODIFY", "a", fmt.Sprint(i-1), fmt.Sprint(i)))
	}
	both := []streamtypes.Record{of("INSERT", "a", "", "1"), of("INSERT", "b", "", "1"), of("MODIFY", "a", "1", "2"), of("MODIFY", "b", "1", "2")}
	with := func(all []streamtypes.Record, i int, r ...streamtypes.Record) []streamtypes.Record {
		return slices.Replace(slices.Clone(all), i, i+1, r...)
	}
	for _, test := range []struct {
		name    string
		records []streamtypes.Record
		want    string
	}{
		{"stream-order", ordered, "40 changes"},
		{"stream-order", with(ordered, 3), "differs: 39 changes, not 40"},
		{"stream-order", with(ordered, 3, ordered[3], ordered[3]), "differs: 41 changes, not 40"},
		{"stream-order", with(ordered, 0, of("MODIFY", "a", "", "0")), "differs: change 0 is {MODIFY  0}, not {INSERT  0}"},
		{"stream-order", with(with(ordered, 3, ordered[4]), 4, ordered[3]), "differs: change 3 is {MODIFY 3 4}, not {MODIFY 2 3}"},
		{"stream-order", with(ordered, 3, of("MODIFY", "a", "", "3")), "differs: change 3 is {MODIFY  3}, not {MODIFY 2 3}"},
		{"stream-order", ordered[:39], "differs: the stream hasn't the last write within 20s"},
		{"stream-of-changes-only", both, ""},
		{"stream-of-changes-only", with(both, 0, both[0], both[0]), "differs: a has the changes [{INSERT  1} {INSERT  1} {MODIFY 1 2}], not [{INSERT  1} {MODIFY 1 2}]"},
		{"stream-of-changes-only", with(both, 1), "differs: b has the changes [{MODIFY 1 2}], not [{INSERT  1} {MODIFY 1 2}]"},
		{"stream-of-changes-only", both[:3], "differs: the stream hasn't the last write within 20s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			p := scripted(func(in any) any {
				switch in := in.(type) {
				case *dynamodbstreams.DescribeStreamInput:
					looks++
					shards := []streamtypes.Shard{{ShardId: aws.String("first")}, {ShardId: aws.String("second")}}
					return &dynamodbstreams.DescribeStreamOutput{StreamDescription: &streamtypes.StreamDescription{Shards: shards[:min(looks, 2)]}}
				case *dynamodbstreams.GetShardIteratorInput:
					if in.ShardIteratorType != streamtypes.ShardIteratorTypeTrimHorizon || *in.StreamArn != "arn" {
						t.Errorf("%+v", in)
					}
					return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: in.ShardId}
				case *dynamodbstreams.GetRecordsInput:
					if at := *in.ShardIterator; at == "first" {
						return &dynamodbstreams.GetRecordsOutput{Records: test.records[:2], NextShardIterator: aws.String("rest")}
					} else if at == "second" {
						return &dynamodbstreams.GetRecordsOutput{Records: test.records[2:]}
					}
					return &dynamodbstreams.GetRecordsOutput{Records: []streamtypes.Record{of("INSERT", "another", "", "1"), {Dynamodb: &streamtypes.StreamRecord{}}}}
				}
				return nil
			})
			p.Settles = settles
			if got := said(assumption(t, test.name).examine(t.Context(), &probe{Place: p, run: "run"})); got != test.want {
				t.Errorf("%s: %s, not %s", test.name, got, test.want)
			}
		})
	}
}
