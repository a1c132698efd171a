package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/internal/base/itemsize"
)

// call is an operation of AWS that the program itself calls.
type call struct {
	service, operation string
	actions            []string // that allow it
}

// calls are all of them. The program can make no other: see metered. TestPolicy holds the
// policy to them.
func calls() []call {
	var all []call
	for _, s := range []struct{ service, prefix, operations string }{
		{"STS", "sts", "GetCallerIdentity"},
		{"CloudFormation", "cloudformation", "CreateStack DeleteStack DescribeStackEvents DescribeStacks ListStackResources"},
		{"CloudWatch", "cloudwatch", "DescribeAlarmHistory DescribeAlarms"},
		{"S3", "s3", "CreateBucket DeleteBucket GetObject PutBucketTagging PutObject"},
		{"DynamoDB", "dynamodb", "BatchWriteItem DeleteItem DescribeTable GetItem PutItem Query Scan UpdateItem"},
		{"Lambda", "lambda", "GetFunctionConcurrency PutFunctionConcurrency"},
		{"SQS", "sqs", "GetQueueAttributes"},
		{"DynamoDB Streams", "dynamodb", "DescribeStream GetRecords GetShardIterator"},
	} {
		for op := range strings.FieldsSeq(s.operations) {
			all = append(all, call{s.service, op, []string{s.prefix + ":" + op}})
		}
	}
	return append(
		all,
		call{"Lambda", "Invoke", []string{"lambda:InvokeFunction"}},
		call{"S3", "DeleteObjects", []string{"s3:DeleteObject"}},
		call{"S3", "ListObjectsV2", []string{"s3:ListBucket"}},
		call{"S3", "ListBuckets", []string{"s3:ListAllMyBuckets"}},
		call{"S3", "GetBucketTagging", []string{"s3:GetBucketTagging"}},
		call{"DynamoDB", "TransactWriteItems", []string{"dynamodb:PutItem", "dynamodb:UpdateItem"}},
	)
}

// metered has every call of a configuration pass by the table of calls and the meter.
func metered(cfg aws.Config, m *meter) aws.Config {
	cfg = cfg.Copy()
	known := calls()
	cfg.APIOptions = append([]func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("prove", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
			service, op := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
			if !slices.ContainsFunc(known, func(c call) bool { return c.service == service && c.operation == op }) {
				return out, meta, fmt.Errorf("%s of %s is not among the calls that the policy is for", op, service)
			}
			if err := m.add(costOf(service, in.Parameters)); err != nil {
				return out, meta, err
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
	}}, cfg.APIOptions...)
	return cfg
}

// costOf is what a call costs by its input. An update is counted as if its item had 1 KB more than the
// input.
func costOf(service string, in any) Cost {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		return Cost{Writes: units(itemsize.Of(in.Item)) + 1} // and one of the index
	case *dynamodb.UpdateItemInput:
		return Cost{Writes: units(itemsize.Of(in.ExpressionAttributeValues)) + 1}
	case *dynamodb.DeleteItemInput:
		return Cost{Writes: 2}
	case *dynamodb.TransactWriteItemsInput:
		n := 0
		for _, t := range in.TransactItems {
			if n += 4; t.Put != nil {
				n += 2 * units(itemsize.Of(t.Put.Item))
			}
		}
		return Cost{Writes: n}
	case *dynamodb.BatchWriteItemInput:
		n := 0
		for _, all := range in.RequestItems {
			for _, w := range all {
				n += units(itemsize.Of(w.PutRequest.Item))
			}
		}
		return Cost{Writes: n}
	case *dynamodb.GetItemInput:
		return Cost{Reads: 1}
	case *dynamodb.QueryInput:
		return Cost{Reads: 1}
	case *dynamodb.ScanInput:
		return Cost{Reads: 128} // a page of 1 MB
	}
	switch service {
	case "Lambda":
		return Cost{Calls: invocation20}
	case "DynamoDB Streams": // a request is cheaper than a read unit
		return Cost{Reads: 1}
	}
	if service == "CloudFormation" || service == "STS" || service == "DynamoDB" {
		return Cost{}
	}
	return Cost{Calls: 1}
}

// invocation20 are the calls for whose price a function with 256 MB is invoked, and runs for 20 seconds.
const invocation20 = 18

func units(size int) int { return max(1, (size+1023)/1024) }
