package mix

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// plants are planted faults, for the test of the checks.
type plants struct {
	flaw       func(*fakedynamo.DB) dynamo.API
	alter      func(*idem.Options)
	deriveFlaw bool // the key for the provider changes with each attempt
	steady     bool // no renewals: see TestRepeats
}

// altered is a DynamoDB to which other requests come than the store has made.
type altered struct {
	dynamo.API
	cond   func(string) string
	update func(*types.Update)
	parts  func([]types.TransactWriteItem) []types.TransactWriteItem
	read   func(fakedynamo.Item) fakedynamo.Item // of an item that is read, or refuses a claim
}

func (a *altered) rewritten(expr *string) *string {
	if expr == nil || a.cond == nil {
		return expr
	}
	return aws.String(a.cond(*expr))
}

func (a *altered) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := a.API.GetItem(ctx, in)
	if err == nil && a.read != nil && out.Item != nil {
		out.Item = a.read(out.Item)
	}
	return out, err
}

func (a *altered) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	next := *in
	next.ConditionExpression = a.rewritten(in.ConditionExpression)
	out, err := a.API.PutItem(ctx, &next)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok && a.read != nil && failed.Item != nil {
		failed.Item = a.read(failed.Item)
	}
	return out, err
}

func (a *altered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	next := *in
	next.ConditionExpression = a.rewritten(in.ConditionExpression)
	if a.update != nil {
		u := &types.Update{UpdateExpression: in.UpdateExpression, ExpressionAttributeValues: in.ExpressionAttributeValues}
		a.update(u)
		next.UpdateExpression, next.ExpressionAttributeValues = u.UpdateExpression, u.ExpressionAttributeValues
	}
	return a.API.UpdateItem(ctx, &next)
}

func (a *altered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	next := *in
	next.TransactItems = append([]types.TransactWriteItem(nil), in.TransactItems...)
	switch first := &next.TransactItems[0]; {
	case first.Update != nil:
		u := *first.Update
		u.ConditionExpression = a.rewritten(u.ConditionExpression)
		if a.update != nil {
			a.update(&u)
		}
		first.Update = &u
	case first.Put != nil:
		p := *first.Put
		p.ConditionExpression = a.rewritten(p.ConditionExpression)
		first.Put = &p
	}
	if a.parts != nil {
		next.TransactItems = a.parts(next.TransactItems)
	}
	return a.API.TransactWriteItems(ctx, &next)
}

func between(change func(*altered)) plants {
	return plants{flaw: func(db *fakedynamo.DB) dynamo.API {
		a := &altered{API: db}
		change(a)
		return a
	}}
}

// without replaces a part of every condition by one that is always true.
func without(part, placeholder string) plants {
	re := regexp.MustCompile(`(^|[ (])` + regexp.QuoteMeta(part) + `($|[ )])`)
	return between(func(a *altered) {
		a.cond = func(c string) string {
			return re.ReplaceAllString(c, "$1("+placeholder+" = "+placeholder+" OR "+part+")$2")
		}
	})
}

// updated replaces a text in updates that have a value.
func updated(value, old, by string) plants {
	return between(func(a *altered) {
		a.update = func(u *types.Update) {
			if u.ExpressionAttributeValues[value] != nil {
				u.UpdateExpression = aws.String(strings.Replace(*u.UpdateExpression, old, by, 1))
			}
		}
	})
}

// planted are faults as an onlooker would see them between the store and the database.
var planted = map[string]plants{
	"no check of the version":                 without("ver = :ver", ":ver"),
	"a claim over a live record":              without("exp_s < :now", ":now"),
	"a record may expire that has to be kept": updated(":keep", "keep = :keep", "exp_s = :ver1, keep = :keep"),
	"the key for the provider changes":        {deriveFlaw: true},
	"a mismatch is ignored": {alter: func(o *idem.Options) {
		o.Fingerprint = idem.Fingerprint{FuncName: "same", Func: func(*idem.Request) ([]byte, error) { return []byte("same"), nil }}
	}},
	"the second release forgets the former scope": {alter: func(o *idem.Options) {
		if o.Former != nil && !o.Former.Claims {
			o.Former = nil
		}
	}},
	"the user's writes are left out": between(func(a *altered) {
		a.parts = func(all []types.TransactWriteItem) []types.TransactWriteItem { return all[:1] }
	}),
	"the recovery point is left out": between(func(a *altered) {
		a.parts = func(all []types.TransactWriteItem) []types.TransactWriteItem { return all[1:] }
	}),
	"a replay has another status": between(func(a *altered) {
		a.read = func(it fakedynamo.Item) fakedynamo.Item {
			resp, ok := it["resp"].(*types.AttributeValueMemberM)
			if !ok || resp.Value["s"] == nil {
				return it
			}
			it, resp = maps.Clone(it), &types.AttributeValueMemberM{Value: maps.Clone(resp.Value)}
			resp.Value["s"] = &types.AttributeValueMemberN{Value: "299"}
			it["resp"] = resp
			return it
		}
	}),
	"phases are forgotten by who takes over": between(func(a *altered) {
		a.read = func(it fakedynamo.Item) fakedynamo.Item {
			if it["phases"] == nil || it["resp"] != nil {
				return it
			}
			it = maps.Clone(it)
			delete(it, "phases")
			return it
		}
	}),
	"a release frees the key whatever was done": between(func(a *altered) {
		a.update = func(u *types.Update) {
			n, ok := u.ExpressionAttributeValues[":lease_ms"].(*types.AttributeValueMemberN)
			if ok && n.Value == "0" && u.ExpressionAttributeValues[":st"] == nil && !strings.Contains(*u.UpdateExpression, "exp_s") {
				u.UpdateExpression = aws.String(strings.Replace(*u.UpdateExpression, "SET ", "SET exp_s = :ver1, ", 1))
			}
		}
	}),
}

// TestPlantedFaultIsFound plants faults, one after the other: for each there is a seed
// that fails with the fault, and not without it.
func TestPlantedFaultIsFound(t *testing.T) {
	t.Parallel()
	for name, plant := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			for n := range uint64(environment(t, envPlanted, 3000)) {
				with := play(t, &drawn{n: n + 1, plants: plant}, false)
				if len(with.wrong) == 0 {
					continue
				}
				if without := play(t, &drawn{n: n + 1}, false); len(without.wrong) > 0 {
					continue
				}
				t.Logf("found by seed %d, %s: %s", n+1, time.Since(begin).Round(time.Millisecond), strings.Join(with.wrong, "; "))
				return
			}
			t.Error("not found")
		})
	}
}
