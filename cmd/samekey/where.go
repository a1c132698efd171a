package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// operator.tell prints which table, Region and account a command uses. A command calls it
// first, so that a person notices if one of them is wrong.
func (op *operator) tell(ctx context.Context) error {
	out, err := op.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &op.table})
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	_, answered := errors.AsType[smithy.APIError](err)
	if err != nil && !answered {
		return err
	}
	account := "account unknown"
	if err == nil && out.Table != nil {
		op.about = out.Table
		if name, perr := arn.Parse(aws.ToString(out.Table.TableArn)); perr == nil {
			account = "account " + name.AccountID
		}
	}
	op.place = fmt.Sprintf("table %s, Region %s, %s", op.table, op.sdk.Region, account)
	if at := aws.ToString(op.client.Options().BaseEndpoint); at != "" {
		op.place = fmt.Sprintf("table %s at %s", op.table, at)
	}
	op.env.note("%s", op.place)
	if missing {
		op.unfit = "there is no " + op.place
	}
	if op.about != nil && len(op.about.KeySchema) > 0 {
		if k := op.about.KeySchema; len(k) > 1 || aws.ToString(k[0].AttributeName) != "pk" {
			op.unfit = "the table's partition key is not pk, so the table has no Samekey records: is this the right table? " + op.place
		}
	}
	return nil
}

// sampled is the number of items in which operator.ours looks for a Samekey record.
const sampled = 1000

// operator.ours returns an error if the table has items, but no Samekey record among the
// first ones. Commands call ours before they report that they found nothing. ours ignores
// items such as a sweep's notes ("samekey#…"), because a sweep, too, may have run on the
// wrong table.
func (op *operator) ours(ctx context.Context) error {
	out, err := op.client.Scan(ctx, &dynamodb.ScanInput{TableName: &op.table, Limit: aws.Int32(sampled), ProjectionExpression: aws.String("pk, v")})
	if err != nil {
		op.env.note("can't tell whether the table has Samekey records: %s", cmp.Or(reason(err), "no answer"))
		return nil
	}
	others := int(out.ScannedCount)
	for _, it := range out.Items {
		pk, _ := it["pk"].(*types.AttributeValueMemberS)
		switch {
		case pk != nil && strings.HasPrefix(pk.Value, "samekey#"):
			others--
		case pk != nil && it["v"] != nil:
			return nil
		}
	}
	if others > 0 {
		return fmt.Errorf("none of the first %d items is a Samekey record: is this the right table? %s", out.ScannedCount, op.place)
	}
	return nil
}

// reason returns the code of an AWS error; "" for other errors.
func reason(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}
