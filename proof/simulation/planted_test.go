package simulation

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// altered is a DynamoDB to which other expressions come than the engine has made.
type altered struct {
	dynamo.API
	cond   func(string) string
	beside func(string) string // the condition on a key's other record
	update func(*dynamodb.UpdateItemInput)
	held   func(fakedynamo.Item) fakedynamo.Item // of the item that refuses a claim
}

func rewritten(expr *string, by func(string) string) *string {
	if expr == nil || by == nil {
		return expr
	}
	return aws.String(by(*expr))
}

func (a *altered) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	next := *in
	next.ConditionExpression = rewritten(in.ConditionExpression, a.cond)
	out, err := a.API.PutItem(ctx, &next)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok && a.held != nil {
		failed.Item = a.held(failed.Item)
	}
	return out, err
}

func (a *altered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	next := *in
	next.ConditionExpression = rewritten(in.ConditionExpression, a.cond)
	if a.update != nil {
		a.update(&next)
	}
	return a.API.UpdateItem(ctx, &next)
}

func (a *altered) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	next := *in
	next.TransactItems = append([]types.TransactWriteItem(nil), in.TransactItems...)
	switch first := &next.TransactItems[0]; {
	case first.Update != nil:
		u := *first.Update
		u.ConditionExpression = rewritten(u.ConditionExpression, a.cond)
		if a.update != nil {
			one := dynamodb.UpdateItemInput{UpdateExpression: u.UpdateExpression, ExpressionAttributeValues: u.ExpressionAttributeValues}
			a.update(&one)
			u.UpdateExpression, u.ExpressionAttributeValues = one.UpdateExpression, one.ExpressionAttributeValues
		}
		first.Update = &u
	case first.Put != nil:
		p := *first.Put
		p.ConditionExpression = rewritten(p.ConditionExpression, a.cond)
		first.Put = &p
	}
	if check := next.TransactItems[len(next.TransactItems)-1].ConditionCheck; check != nil {
		c := *check
		c.ConditionExpression = rewritten(c.ConditionExpression, a.beside)
		next.TransactItems[len(next.TransactItems)-1].ConditionCheck = &c
	}
	out, err := a.API.TransactWriteItems(ctx, &next)
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && a.held != nil {
		for i, reason := range cancelled.CancellationReasons {
			cancelled.CancellationReasons[i].Item = a.held(reason.Item)
		}
	}
	return out, err
}

// without replaces a part of every condition by one that is always true.
func without(part, placeholder string) func(*episode) {
	re := regexp.MustCompile(`(^|[ (])` + part + `($|[ )])`)
	return expressions(func(a *altered) {
		a.cond = func(c string) string {
			return re.ReplaceAllString(c, "$1("+placeholder+" = "+placeholder+" OR "+strings.ReplaceAll(part, `\b`, "")+")$2")
		}
	})
}

func expressions(change func(*altered)) func(*episode) {
	return func(e *episode) {
		e.flaw = func(db *fakedynamo.DB) dynamo.API {
			a := &altered{API: db}
			change(a)
			return a
		}
	}
}

// forgetful loses one of ten jobs without an error.
type forgetful struct {
	jobs.Sink
	n *atomic.Int64 // of all episodes
}

func (f forgetful) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	var kept []jobs.Delivery
	for _, d := range batch {
		if f.n.Add(1)%10 != 0 {
			kept = append(kept, d)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if errs := f.Sink.Deliver(ctx, kept); len(kept) == len(batch) {
		return errs
	}
	return nil
}

// planted are faults of the engine, as an onlooker would see them between it and the
// database.
var planted = map[string]func(*episode){
	"no check of the owner":           without("#owner = :owner", ":owner"),
	"no check of the version":         without("ver = :ver", ":ver"),
	"a claim over a live record":      without("exp_s < :now", ":now"),
	"a late claim revives its record": without("NOT keep = :freed", ":freed"),
	"a mismatch is ignored": func(e *episode) {
		e.alter = func(o *idem.Options) {
			o.Fingerprint = idem.Fingerprint{FuncName: "same", Func: func(*idem.Request) ([]byte, error) { return []byte("same"), nil }}
		}
	},
	"one scope for all tenants": func(e *episode) {
		e.alter = func(o *idem.Options) {
			o.Scope, o.CallerFromOp = func(context.Context, *idem.Request) (string, error) { return "all", nil }, true
		}
	},
	"a record may expire that has to be kept": expressions(func(a *altered) {
		a.update = func(in *dynamodb.UpdateItemInput) {
			if in.ExpressionAttributeValues[":keep"] != nil {
				in.UpdateExpression = aws.String(strings.Replace(*in.UpdateExpression, "keep = :keep", "keep = if_not_exists(kept, :keep), exp_s = :ver1", 1))
			}
		}
	}),
	"a job is acknowledged and not sent": func(e *episode) {
		lost := new(atomic.Int64)
		e.sinkFlaw = func(s jobs.Sink) jobs.Sink { return forgetful{s, lost} }
	},
	"another operation's answer is replayed": expressionsOf(func() func(*altered) {
		var mu sync.Mutex // episodes share it
		var other fakedynamo.Item
		return func(a *altered) {
			a.held = func(it fakedynamo.Item) fakedynamo.Item {
				mu.Lock()
				defer mu.Unlock()
				if resp, ok := it["resp"].(*types.AttributeValueMemberM); !ok || resp.Value["b"] == nil {
					return it // it isn't finished, or has no body
				}
				mine := it
				if other != nil && text(other, "pk") != text(mine, "pk") {
					it = maps.Clone(it)
					it["resp"] = other["resp"]
				}
				other = mine
				return it
			}
		}
	}),
	"a scope changes without its first release":  rollsOut(before, claimsNew, after),
	"a scope changes without its second release": rollsOut(before, claimsFormer, after),
	"a scope changes in one release":             rollsOut(before, after),
	"a scope changes in two releases at once": func(e *episode) {
		e.releases, e.hasty = inOrder, true
	},
	"a claim doesn't check the key's other record": func(e *episode) {
		expressions(func(a *altered) {
			a.beside = func(c string) string { return "(" + c + ") OR attribute_exists(pk)" }
		})(e)
		e.releases = inOrder
	},
	"a record doesn't name its scheme": func(e *episode) {
		expressions(func(a *altered) {
			a.held = func(it fakedynamo.Item) fakedynamo.Item {
				it = maps.Clone(it)
				delete(it, "fps")
				return it
			}
		})(e)
		e.releases = inOrder
	},
	"the key for the provider changes":   func(e *episode) { e.deriveFlaw = true },
	"an answer is told that is not kept": func(e *episode) { e.tellFlaw = true },
	"tries are not counted": expressions(func(a *altered) {
		a.update = func(in *dynamodb.UpdateItemInput) {
			in.UpdateExpression = aws.String(strings.Replace(*in.UpdateExpression, "tries = if_not_exists(tries, :zero) + :one", "tries = if_not_exists(tries, :zero) + :zero + :one - :one", 1))
		}
	}),
	"a release frees the key after a call": expressions(func(a *altered) {
		a.update = func(in *dynamodb.UpdateItemInput) {
			if n, ok := in.ExpressionAttributeValues[":lease_ms"].(*types.AttributeValueMemberN); ok && n.Value == "0" && in.ExpressionAttributeValues[":st"] == nil {
				in.UpdateExpression = aws.String(strings.Replace(*in.UpdateExpression, "SET ", "SET exp_s = :ver1, ", 1))
			}
		}
	}),
}

// rollsOut has every episode change the scope of keys in these releases.
func rollsOut(order ...release) func(*episode) {
	return func(e *episode) { e.releases = order }
}

func expressionsOf(make func() func(*altered)) func(*episode) {
	return func(e *episode) { expressions(make())(e) }
}

// rare are those that take many requests, or hours of virtual time: make prove has them found.
var rare = []string{"no check of the owner", "tries are not counted", "a late claim revives its record", "a scope changes in two releases at once"}

// TestPlantedFaultsAreFound plants faults, one after the other: the simulation finds
// each, and none without one.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for name, plant := range planted {
		if os.Getenv(envRequests) == "" && slices.Contains(rare, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e episode
			plant(&e)
			sum := simulate(t, 1, environment(t, envRequests, 500), e)
			if sum.failed == nil {
				t.Fatalf("not found in %d requests", sum.requests)
			}
			r := play(t, *sum.failed, false)
			t.Logf("found after %d requests: %s", sum.requests, strings.Join(r.wrong, "; "))
		})
	}
}
