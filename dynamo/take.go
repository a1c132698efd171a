package dynamo

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
)

var _ store.Taker = (*Store)(nil)

// Take implements [store.Taker] by one conditional UpdateItem, whose answer is the
// record with its stored request. What it can't say in one expression it leaves
// alone: a record with doubts whose holder never came back, and a ticket that is
// wrong about whether it did.
func (s *Store) Take(ctx context.Context, t store.Take) (*store.Record, bool, error) {
	var v values
	args := item{
		":owner": v.str(t.Owner), ":ver": v.num(t.Ver), ":v": v.digits(layoutVersion), ":open": v.str(string(store.Open)), ":zero": v.num(0),
		":owner1": v.str(t.NewOwner), ":ver1": v.num(t.Ver + 1), ":lease": v.millis(t.Lease), ":now": v.millis(t.Now), ":one": v.num(1),
	}
	condition, set := takeCondition+takeReleased, takeSet
	if !t.Released {
		condition, set = takeCondition+takeAbandoned, takeSet+takeDoubts
		args[":doubts"] = v.list([]string{store.AnyCall})
	}
	condition += v.handlers(t.Handlers, args) + " AND " + v.equals(attrTenant, ":tn", t.Tenant, args)
	out, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 key(t.PK),
		ConditionExpression:                 &condition,
		UpdateExpression:                    &set,
		ExpressionAttributeNames:            ownerName,
		ExpressionAttributeValues:           args,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		held, err := writeError("take", err)
		return held, false, err
	}
	if len(out.Attributes) == 0 {
		return nil, false, errors.Join(store.ErrUnknown, errors.New("dynamo: take: the answer has no item"))
	}
	rec, err := decode(out.Attributes)
	return rec, err == nil, err
}

// handlers is a condition that is true of the records of these handlers, by
// function, since there are more names than functions. No handlers, no record.
func (v *values) handlers(all []store.HandlerID, args item) string {
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
		or = append(or, v.equals(attrFn, ":fn"+n, function, args)+" AND ("+v.names(n, functions[function], args)+")")
	}
	if len(or) == 0 {
		return " AND attribute_not_exists(pk)"
	}
	return " AND (" + strings.Join(or, " OR ") + ")"
}

// maxOperands is how many values DynamoDB takes in one IN.
const maxOperands = 100

func (v *values) names(n string, names []string, args item) string {
	var or, in []string
	for i, name := range names {
		placeholder := ":hn" + n + "_" + strconv.Itoa(i)
		if name == "" {
			or = append(or, v.equals(attrHandler, placeholder, name, args))
			continue
		}
		args[placeholder] = v.str(name)
		in = append(in, placeholder)
	}
	for chunk := range slices.Chunk(in, maxOperands) {
		or = append(or, attrHandler+" IN ("+strings.Join(chunk, ", ")+")")
	}
	return strings.Join(or, " OR ")
}

// equals is a condition on an attribute that is left out where it is empty.
func (v *values) equals(name, placeholder, s string, args item) string {
	if s == "" {
		return "attribute_not_exists(" + name + ")"
	}
	args[placeholder] = v.str(s)
	return name + " = " + placeholder
}
