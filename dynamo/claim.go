package dynamo

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// Claim implements [store.Store] by one conditional PutItem, or by one TransactWriteItems if the
// key has another place. If a stored request is over the inline limit, Claim writes the request to
// companions after the claim is won, so that a refused claim doesn't pay for them.
func (s *Store) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	v := new(claim)
	var err error
	if v.Box, err = s.newBox(ctx, c.Next); err != nil {
		return nil, err // nothing is claimed
	}
	c.Next.Region = cmp.Or(c.Next.Region, s.region)
	var body item.Value
	if c.Next.Response != nil {
		if body, err = s.encodeBody(ctx, &v.Values, c.Next); err != nil {
			return nil, err
		}
	}
	if err := leavesRoom(&nothing, c.Next, v.Box, body); err != nil {
		return nil, err
	}
	it := v.Encode(c.Next, body)
	var large []byte
	if c.Next.Input != nil {
		if n := len(c.Next.Input.Body); n > item.MaxStored {
			return nil, tooLarge("request", n)
		}
		it[item.AttrRequest], large = s.encodeInput(&v.Values, c.Next)
	}
	v.in = dynamodb.PutItemInput{
		TableName:                           &s.table,
		Item:                                it,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if c.Seen == nil {
		v.in.ConditionExpression, v.in.ExpressionAttributeValues = &claimIf, item.Map{":now": v.Secs(c.Now), ":freed": freed}
	} else {
		v.in.ConditionExpression, v.in.ExpressionAttributeNames, v.in.ExpressionAttributeValues = &seenIf, ownerName, seen(&v.Values, c.Seen)
	}
	held, err := s.sendPut(ctx, &v.in, s.besides(&v.Values, c))
	held, err = s.unsealed(ctx, held, err, c.Next)
	if large != nil {
		held, err = s.keepInput(ctx, c.Next, held, err, large)
	}
	return held, err
}

// claim holds a claim's PutItem and the values in it, in one allocation.
type claim struct {
	item.Values
	in dynamodb.PutItemInput
}

// seen returns the values of the placeholders in [seenCondition].
func seen(v *item.Values, r *store.Record) item.Map {
	return item.Map{":owner": v.Str(r.Owner), ":ver": v.Num(r.Ver)}
}

// Store.besides returns the condition check on the key's other place, or nil if the key has
// only one place.
func (s *Store) besides(v *item.Values, c store.Claim) *types.ConditionCheck {
	if c.Beside == "" {
		return nil
	}
	check := &types.ConditionCheck{
		TableName: &s.table, Key: item.Key(c.Beside), ConditionExpression: &absentIf,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if c.Fenced != nil {
		check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues = &seenIf, ownerName, seen(v, c.Fenced)
	}
	return check
}

// sendPut sends a claim, alone or in one transaction that also checks the key's other place.
func (s *Store) sendPut(ctx context.Context, put *dynamodb.PutItemInput, beside *types.ConditionCheck) (*store.Record, error) {
	if beside != nil {
		record := []types.TransactWriteItem{{Put: &types.Put{
			TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
			ExpressionAttributeNames:            put.ExpressionAttributeNames,
			ExpressionAttributeValues:           put.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
		}}, {ConditionCheck: beside}}
		return s.transact(ctx, record, put.Item, nil)
	}
	if _, err := s.api.PutItem(ctx, put); err != nil {
		return item.WriteError("claim", err)
	}
	return nil, nil
}
