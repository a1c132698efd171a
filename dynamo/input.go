package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
)

// inputOutlives is for how long a large stored request is kept beside its
// record: longer than anybody should take to settle a stuck one.
const inputOutlives = 30 * 24 * time.Hour

// encodeInput makes the req attribute. A body over the inline limit is returned
// as large, to be written once the claim is won.
func (s *Store) encodeInput(v *values, r *idem.Record) (req value, large []byte) {
	in := r.Input
	m := item{reqMethod: v.str(in.Method), reqPath: v.str(in.Path)}
	if in.Query != "" {
		m[reqQuery] = v.str(in.Query)
	}
	if len(in.Header) > 0 {
		m[reqHeader] = v.header(in.Header)
	}
	if in.Identity != (idem.Identity{}) {
		m[reqIdentity] = &types.AttributeValueMemberL{Value: []value{v.str(in.Identity.Kind), v.str(in.Identity.Subject)}}
	}
	if len(in.Snapshot) > 0 {
		m[reqSnapshot] = &types.AttributeValueMemberB{Value: in.Snapshot}
	}
	body, zipped := compress(in.Body)
	switch {
	case len(body) > s.inline:
		in.Overflow = s.overflow(r.Owner, in.Body, body, zipped)
		m[respOverflow] = v.overflow(in.Overflow)
		large = body
	case len(body) > 0:
		m[respBody] = &types.AttributeValueMemberB{Value: body}
		if zipped {
			m[respGzip] = &types.AttributeValueMemberBOOL{Value: true}
		}
	}
	return &types.AttributeValueMemberM{Value: m}, large
}

// putInput writes the body of a stored request beside its record. If that
// fails, the claim stands: this attempt has its request, and a completer that
// misses it says so.
func (s *Store) putInput(ctx context.Context, r *idem.Record, large []byte) error {
	if err := s.putChunks(ctx, r.PK, r.Input.Overflow, large, time.Now().Add(inputOutlives)); err != nil {
		return fmt.Errorf("dynamo: write request: %w: %w", idem.ErrUnknown, err)
	}
	return nil
}

// dropInput empties the companions of a stored request that is no longer
// needed. A failure leaves them to TTL.
func (s *Store) dropInput(ctx context.Context, r *idem.Record) {
	if r.Input == nil || r.Input.Overflow == nil {
		return
	}
	for i := range r.Input.Overflow.Count {
		var v values
		_, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: key(companionKey(r.PK, r.Input.Overflow, i)),
			UpdateExpression:          aws.String("SET exp_s = :now REMOVE b"),
			ConditionExpression:       aws.String("attribute_exists(pk)"), // one that TTL has deleted must not come back
			ExpressionAttributeValues: item{":now": v.secs(time.Now().Add(-time.Minute))},
		})
		if err != nil {
			return
		}
	}
}

func (d *decoder) input(r *idem.Record) {
	m := as[*types.AttributeValueMemberM](d, d.it, attrRequest, false)
	if m == nil {
		return
	}
	req := decoder{it: m.Value}
	in := &idem.Input{
		Method: req.text(reqMethod, true), Path: req.text(reqPath, true), Query: req.text(reqQuery, false),
		Route: r.Route, Header: req.header(m.Value), Body: req.body("b", m.Value), Overflow: req.overflow("o", m.Value),
	}
	if d := as[*types.AttributeValueMemberB](&req, m.Value, reqSnapshot, false); d != nil {
		in.Snapshot = d.Value
	}
	if l := as[*types.AttributeValueMemberL](&req, m.Value, reqIdentity, false); l != nil {
		in.Identity = req.identity(l.Value)
	}
	if req.err != nil {
		d.fail("req: %w", req.err)
		return
	}
	r.Input = in
}

func (d *decoder) identity(pair []value) (id idem.Identity) {
	if len(pair) == 2 {
		kind, ok1 := pair[0].(*types.AttributeValueMemberS)
		subject, ok2 := pair[1].(*types.AttributeValueMemberS)
		if ok1 && ok2 {
			return idem.Identity{Kind: kind.Value, Subject: subject.Value}
		}
	}
	d.fail("i is not [kind, subject]")
	return id
}
