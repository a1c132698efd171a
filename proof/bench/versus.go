package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

// Versus compares a request with its floors, taken in turns, request by request.
type Versus struct {
	Does    string `json:"does"` // new, replay
	Samples int    `json:"samples"`
	Library Spread `json:"library_ns"`
	// Same are the same calls, sent by the SDK without the library.
	Same Spread `json:"same_calls_ns"`
	// Smallest are as many calls with the smallest possible items.
	Smallest Spread `json:"smallest_items_ns"`
	// OverSame and OverSmallest are the ratios of the medians.
	OverSame     float64 `json:"over_same_calls"`
	OverSmallest float64 `json:"over_smallest_items"`
	// Objects are the allocations of the three, where they are countable.
	Objects [3]int `json:"allocations,omitzero"`
}

// trio is a request and its floors.
type trio struct{ library, same, smallest op }

func (v *Versus) measure(n int, t trio) error {
	if _, err := interleaved(min(n, 50), 1, nil, t.library, t.same, t.smallest); err != nil { // connections, the JIT compiler
		return err
	}
	skip := func(do op) op { return func(i int) error { return do(i + warm) } }
	all, err := interleaved(n, 1, nil, skip(t.library), skip(t.same), skip(t.smallest))
	if err != nil {
		return err
	}
	v.Samples, v.Library, v.Same, v.Smallest = n, all[0], all[1], all[2]
	ratio := func(floor Spread) float64 { return math.Round(100*all[0].P50/floor.P50) / 100 }
	v.OverSame, v.OverSmallest = ratio(all[1]), ratio(all[2])
	return nil
}

// warm is how many keys the runs before the measured ones may use.
const warm = 1_000_000

// measureLatency is against DynamoDB Local, on a table without a stream.
func measureLatency(ctx context.Context, db *dynamotest.DB, n int) ([]Versus, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	b, err := newBed(ctx, db)
	if err != nil {
		return nil, err
	}
	fresh, again, err := localTrios(ctx, b, db.Client(dynamo.Tune), n)
	if err != nil {
		return nil, err
	}
	all := []Versus{{Does: "new"}, {Does: "replay"}}
	return all, errors.Join(all[0].measure(n, fresh), all[1].measure(n, again))
}

// localTrios are a new request and its replay on the table of b. The replays are of the n new requests from warm on.
func localTrios(ctx context.Context, b *bed, client *dynamodb.Client, n int) (fresh, again trio, _ error) {
	rec := &recorder{API: client}
	recorded, err := dynamo.New(rec, b.table)
	if err != nil {
		return fresh, again, err
	}
	named := func(o *idem.Options) { o.Function = "rides" }
	answer := creates(order(answerSize))
	req := func(i int) idem.Request { return post(fmt.Sprintf("key-%032d", i), `{"amount":2000}`) }
	if _, err := idem.New(recorded, named).Do(ctx, req(-1), answer); err != nil {
		return fresh, again, err
	}
	put, update := rec.put, rec.updates[0]
	s, err := dynamo.New(client, b.table)
	if err != nil {
		return fresh, again, err
	}
	engine := idem.New(s, named)
	fresh = trio{
		library: func(i int) error {
			_, err := engine.Do(ctx, req(i), answer)
			return err
		},
		same: func(i int) error {
			pk := samePK(i)
			if _, err := client.PutItem(ctx, putAs(put, pk)); err != nil {
				return err
			}
			_, err := client.UpdateItem(ctx, updateAs(update, pk))
			return err
		},
		smallest: func(i int) error { return smallestNew(ctx, client, b.table, i) },
	}
	again = trio{
		library: func(i int) error {
			res, err := engine.Do(ctx, req(i%warm%n+warm), nil)
			if err == nil && !res.Replayed {
				err = errors.New("no replay")
			}
			return err
		},
		same: func(i int) error {
			_, err := client.PutItem(ctx, putAs(put, samePK(i%warm%n+warm)))
			return mustRefuse(err)
		},
		smallest: func(i int) error {
			_, err := client.PutItem(ctx, smallestPut(b.table, i%warm%n+warm))
			return mustRefuse(err)
		},
	}
	return fresh, again, nil
}

// measureSDK is over a stub transport: the processor's time of library and SDK.
func measureSDK(ctx context.Context, db *dynamotest.DB, n int) ([]Versus, error) {
	done, err := finished(ctx, db, answerSize)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	fresh, again, err := stubTrios(ctx, done)
	if err != nil {
		return nil, err
	}
	all := []Versus{{Does: "new"}, {Does: "replay"}}
	for i, t := range []trio{fresh, again} {
		if err := all[i].measure(n, t); err != nil {
			return nil, err
		}
		for k, do := range []op{t.library, t.same, t.smallest} {
			if all[i].Objects[k], _, err = allocated(min(n, 100), do); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// stubTrios are a new request and its replay over a stub transport; done is the record that is replayed.
func stubTrios(ctx context.Context, done item) (fresh, again trio, _ error) {
	refused, err := refusal(done)
	if err != nil {
		return fresh, again, err
	}
	small, err := refusal(smallestItem(smallestPK(0), order(answerSize)))
	if err != nil {
		return fresh, again, err
	}
	taken, refuses, refusesSmall := stubClient(200, "{}"), stubClient(400, refused), stubClient(400, small)
	rec := &recorder{API: taken}
	once, err := doOn(ctx, rec, answerSize, false, plain)
	if err == nil {
		err = once(0)
	}
	if err != nil {
		return fresh, again, err
	}
	put, update := rec.put, rec.updates[0]
	fresh = trio{
		same: func(int) error {
			if _, err := taken.PutItem(ctx, put); err != nil {
				return err
			}
			_, err := taken.UpdateItem(ctx, update)
			return err
		},
		smallest: func(i int) error { return smallestNew(ctx, taken, "bench", i) },
	}
	again = trio{
		same: func(int) error {
			_, err := refuses.PutItem(ctx, put)
			return mustRefuse(err)
		},
		smallest: func(i int) error {
			_, err := refusesSmall.PutItem(ctx, smallestPut("bench", i))
			return mustRefuse(err)
		},
	}
	if fresh.library, err = doOn(ctx, stubClient(200, "{}", dynamo.Tune), answerSize, false, plain); err == nil {
		again.library, err = doOn(ctx, stubClient(400, refused, dynamo.Tune), answerSize, true, plain)
	}
	return fresh, again, err
}

func mustRefuse(err error) error {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return nil
	}
	return fmt.Errorf("a write that must be refused: %w", err)
}

func pkOf(it item) string {
	v, _ := it["pk"].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// putAs and updateAs are recorded calls under another key.
func putAs(in *dynamodb.PutItemInput, pk string) *dynamodb.PutItemInput {
	other := *in
	other.Item = maps.Clone(in.Item)
	other.Item["pk"] = str(pk)
	return &other
}

func updateAs(in *dynamodb.UpdateItemInput, pk string) *dynamodb.UpdateItemInput {
	other := *in
	other.Key = item{"pk": str(pk)}
	return &other
}

// samePK is as long as the library's keys.
func samePK(i int) string { return fmt.Sprintf("v1##%043d", i) }

func smallestPK(i int) string { return fmt.Sprintf("v1#%043d", i) }

// smallestItem is the smallest item that could replay an answer; with an empty body, the
// one that only holds the key until the handler has its answer.
func smallestItem(pk, body string) item {
	if body == "" {
		return item{"pk": str(pk), "s": str("h"), "l": num(1893456000000)}
	}
	return item{"pk": str(pk), "s": str("d"), "b": &types.AttributeValueMemberB{Value: []byte(body)}}
}

func smallestPut(table string, i int) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &table, Item: smallestItem(smallestPK(i), ""), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// smallestNew holds a key and stores an answer, without scope, fingerprint, owner or version.
func smallestNew(ctx context.Context, client *dynamodb.Client, table string, i int) error {
	if _, err := client.PutItem(ctx, smallestPut(table, i)); err != nil {
		return err
	}
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table, Key: item{"pk": str(smallestPK(i))},
		ConditionExpression: aws.String("s = :h"), UpdateExpression: aws.String("SET s = :d, b = :b REMOVE l"),
		ExpressionAttributeValues: item{":h": str("h"), ":d": str("d"), ":b": &types.AttributeValueMemberB{Value: smallBody}},
	})
	return err
}

var smallBody = []byte(order(answerSize))
