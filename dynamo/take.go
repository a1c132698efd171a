package dynamo

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

var _ store.Taker = (*Store)(nil)

// Take implements [store.Taker] by one conditional UpdateItem. DynamoDB's answer
// contains the record and its stored request. Take refuses five cases that one
// expression can't handle:
//   - the holder vanished, and may have begun a call;
//   - t.Released is wrong: it is true although the holder vanished, or false although
//     the holder released the record;
//   - the body of the stored request is in companions;
//   - the program encrypts, and the stored request isn't encrypted;
//   - the program has more handlers than an expression can name.
func (s *Store) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	var v item.Values
	args := item.Map{
		":owner": v.Str(t.Owner), ":ver": v.Num(t.Ver), ":v": v.Digits(item.Layout), ":open": v.Str(string(store.Open)), ":zero": v.Num(0),
		":owner1": v.Str(t.NewOwner), ":ver1": v.Num(t.Ver + 1), ":lease": v.Millis(t.Lease), ":now": v.Millis(t.Now), ":one": v.Num(1),
		":none": &types.AttributeValueMemberL{}, ":hand": v.Hands([]store.Handover{{At: t.Now, Kind: state.HandoverCompleter}}),
	}
	condition, set := takeCondition+takeReleased, takeSet
	if !t.Released {
		condition = takeCondition + takeAbandoned
	}
	set += takeHands + lasts(&v, t, args)
	if s.sealer != nil {
		condition += takeSealed
	}
	condition += handlers(&v, t.Handlers, args) + " AND " + equals(&v, item.AttrTenant, ":tn", t.Tenant, args)
	if len(condition) > maxExpression {
		held, err := s.Load(ctx, t.PK)
		if held == nil {
			held = &store.Record{}
		}
		return held, false, err
	}
	out, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 item.Key(t.PK),
		ConditionExpression:                 &condition,
		UpdateExpression:                    &set,
		ExpressionAttributeNames:            ownerName,
		ExpressionAttributeValues:           args,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		held, err := item.WriteError("take", err)
		held, err = s.unsealed(ctx, held, err)
		return held, false, err
	}
	if len(out.Attributes) == 0 {
		return nil, false, errors.Join(store.ErrUnknown, errors.New("dynamo: take: the answer has no item"))
	}
	rec, err := item.Decode(out.Attributes)
	if err != nil {
		return nil, false, err
	}
	if err = item.Unseal(ctx, s.sealer, rec); err != nil {
		s.untake(ctx, rec, err)
		return nil, false, err
	}
	return rec, true, nil
}

// Store.untake releases a record whose data key the taker can't open. untake doesn't
// count the try, because otherwise the tries would run out while the data key is
// unavailable. If this write fails, the record waits until the lease is over.
func (s *Store) untake(ctx context.Context, rec *store.Record, why error) {
	if !errors.Is(why, store.ErrSealed) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), untakeTime)
	defer cancel()
	var v item.Values
	_, _ = s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &s.table,
		Key:                      item.Key(rec.PK),
		ConditionExpression:      aws.String(holderCondition),
		UpdateExpression:         aws.String(untakeSet),
		ExpressionAttributeNames: ownerName,
		ExpressionAttributeValues: item.Map{
			":owner": v.Str(rec.Owner), ":ver": v.Num(rec.Ver), ":ver1": v.Num(rec.Ver + 1), ":zero": v.Num(0), ":one": v.Num(1),
		},
	})
}

const untakeTime = 2 * time.Second

// lasts returns the part of a take-over's update expression that sets the record's
// retention to t.Retention.
func lasts(v *item.Values, t store.Take, args item.Map) string {
	value := item.Retained(v, &store.Record{Retention: t.Retention})
	if value == nil {
		return " REMOVE " + item.AttrRetain
	}
	arg := v.Placeholder(item.AttrRetain)
	args[arg] = value
	return ", " + item.AttrRetain + " = " + arg
}

// handlers returns a condition that is true only for records of the given handlers. To keep the
// condition short, handlers names each function once, with all its handlers' names. If there are no
// handlers, the condition is always false.
func handlers(v *item.Values, all []store.HandlerID, args item.Map) string {
	functions := make(map[string][]string)
	var order []string
	for _, h := range all {
		if _, known := functions[h.Function]; !known {
			order = append(order, h.Function)
		}
		functions[h.Function] = append(functions[h.Function], h.Name)
	}
	or := make([]string, 0, len(order))
	for i, function := range order {
		n := strconv.Itoa(i)
		or = append(or, equals(v, item.AttrFn, ":fn"+n, function, args)+" AND ("+handlerNames(v, n, functions[function], args)+")")
	}
	if len(or) == 0 {
		return " AND attribute_not_exists(pk)"
	}
	return " AND (" + strings.Join(or, " OR ") + ")"
}

// maxExpression is how long an expression may be, in bytes.
const maxExpression = 4 << 10

// maxOperands is how many values DynamoDB accepts in an IN.
const maxOperands = 100

func handlerNames(v *item.Values, n string, names []string, args item.Map) string {
	var or, in []string
	for i, name := range names {
		placeholder := ":hn" + n + "_" + strconv.Itoa(i)
		if name == "" {
			or = append(or, equals(v, item.AttrHandler, placeholder, name, args))
			continue
		}
		args[placeholder] = v.Str(name)
		in = append(in, placeholder)
	}
	for chunk := range slices.Chunk(in, maxOperands) {
		or = append(or, item.AttrHandler+" IN ("+strings.Join(chunk, ", ")+")")
	}
	return strings.Join(or, " OR ")
}

// equals returns the condition that an attribute has the value s. If s is empty, the
// condition is that the item lacks the attribute.
func equals(v *item.Values, name, placeholder, s string, args item.Map) string {
	if s == "" {
		return "attribute_not_exists(" + name + ")"
	}
	args[placeholder] = v.Str(s)
	return name + " = " + placeholder
}
