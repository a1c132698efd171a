package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// cloud is an account in memory: the part of AWS that deploys and removes. Clients of the
// SDK reach it by a middleware.
type cloud struct {
	mu      sync.Mutex
	stacks  map[string]*formed // by id
	buckets map[string]*bucket
	calls   []string
	inputs  []any                            // of these calls
	outputs []cfntypes.Output                // of its stacks
	events  map[string][]cfntypes.StackEvent // of stacks, by name
	// before is called with each operation, and may fail it.
	before func(n int, op string) error
	// fails is why a stack's creation fails; "" if it doesn't.
	fails string
	// givenUp are how many batches are given up into a stack's bucket while the stack is deleted.
	givenUp int
	// kept are keys that can't be deleted, and deaf a stand-in that knows no prefixes.
	kept map[string]bool
	deaf bool
	// early are the stacks that were deleted while they were made.
	early []string
	seq   int
}

// errTorn ends the reading of an object that is named torn.
var errTorn = errors.New("connection reset by peer")

type formed struct {
	cfntypes.Stack
	looks int // until it is created or deleted
}

type bucket struct {
	tags map[string]string // nil: none
	keys map[string]bool
}

func newCloud() *cloud { return &cloud{stacks: map[string]*formed{}, buckets: map[string]*bucket{}} }

func (c *cloud) config() aws.Config {
	return aws.Config{
		Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1,
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("cloud", func(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				out, err := c.answer(ctx, awsmiddleware.GetOperationName(ctx), in.Parameters)
				return middleware.InitializeOutput{Result: out}, middleware.Metadata{}, err
			}), middleware.After)
		}},
	}
}

func (c *cloud) account(t *testing.T) *Account {
	t.Helper()
	a, err := OpenAccount(t.Context(), c.config())
	if err != nil {
		t.Fatal(err)
	}
	a.pause = time.Microsecond
	return a
}

func refusal(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message}
}

func (c *cloud) answer(ctx context.Context, op string, in any) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.calls, c.inputs = append(c.calls, op), append(c.inputs, in)
	if c.before != nil {
		if err := c.before(len(c.calls), op); err != nil {
			return nil, err
		}
	}
	switch in := in.(type) {
	case *sts.GetCallerIdentityInput:
		return &sts.GetCallerIdentityOutput{Account: aws.String("123456789012")}, nil
	case *cloudformation.CreateStackInput:
		if c.find(*in.StackName) != nil {
			return nil, refusal("AlreadyExistsException", "Stack ["+*in.StackName+"] already exists")
		}
		return &cloudformation.CreateStackOutput{StackId: c.form(*in.StackName, in.Tags).StackId}, nil
	case *cloudformation.DescribeStacksInput:
		return c.describe(in)
	case *cloudformation.DescribeStackEventsInput:
		if c.events != nil {
			return &cloudformation.DescribeStackEventsOutput{StackEvents: c.events[*in.StackName]}, nil
		}
		id := aws.String("none")
		return &cloudformation.DescribeStackEventsOutput{StackEvents: []cfntypes.StackEvent{
			{StackId: id, LogicalResourceId: aws.String("Rides"), ResourceType: aws.String("AWS::Lambda::Function"), ResourceStatus: cfntypes.ResourceStatusCreateFailed, ResourceStatusReason: aws.String("Resource creation cancelled")},
			{StackId: id, LogicalResourceId: aws.String("Provider"), ResourceType: aws.String("AWS::Lambda::Function"), ResourceStatus: cfntypes.ResourceStatusCreateFailed, ResourceStatusReason: &c.fails},
		}}, nil
	case *cloudformation.ListStackResourcesInput:
		bucket, nested := aws.String("AWS::S3::Bucket"), aws.String("AWS::CloudFormation::Stack")
		if name, is := strings.CutPrefix(*in.StackName, "nested-"); is {
			return &cloudformation.ListStackResourcesOutput{StackResourceSummaries: []cfntypes.StackResourceSummary{
				{ResourceType: bucket, PhysicalResourceId: aws.String("failed-" + name)}, {ResourceType: bucket, PhysicalResourceId: aws.String("never-made")},
			}}, nil
		}
		return &cloudformation.ListStackResourcesOutput{StackResourceSummaries: []cfntypes.StackResourceSummary{
			{ResourceType: bucket},
			{ResourceType: nested},
			{ResourceType: bucket, PhysicalResourceId: aws.String("anothers"), ResourceStatus: cfntypes.ResourceStatusDeleteComplete},
			{ResourceType: aws.String("AWS::Lambda::Function"), PhysicalResourceId: aws.String("anothers")},
			{ResourceType: nested, PhysicalResourceId: aws.String("nested-" + c.find(*in.StackName).name())},
		}}, nil
	case *sqs.GetQueueAttributesInput:
		return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{string(in.AttributeNames[0]): strconv.Itoa(len(*in.QueueUrl))}}, nil
	case *cloudformation.DeleteStackInput:
		s := c.find(*in.StackName)
		if s.StackStatus == cfntypes.StackStatusCreateInProgress {
			c.early = append(c.early, s.name())
		}
		s.StackStatus, s.looks = cfntypes.StackStatusDeleteInProgress, 2
		if b := c.buckets["failed-"+s.name()]; b != nil && c.givenUp > 0 {
			c.givenUp--
			b.keys["late"] = true
		}
		return &cloudformation.DeleteStackOutput{}, nil
	}
	return c.store(in)
}

func (f *formed) name() string { return aws.ToString(f.StackName) }

func (c *cloud) find(stack string) *formed {
	for id, s := range c.stacks {
		if id == stack || s.name() == stack && s.StackStatus != cfntypes.StackStatusDeleteComplete {
			return s
		}
	}
	return nil
}

// form makes a stack, and its bucket with an object.
func (c *cloud) form(name string, tags []cfntypes.Tag) *formed {
	c.seq++
	s := &formed{cfntypes.Stack{StackName: &name, StackId: aws.String(fmt.Sprint("arn:", name, c.seq)), StackStatus: cfntypes.StackStatusCreateInProgress, Tags: tags, Outputs: c.outputs}, 2}
	c.stacks[*s.StackId] = s
	c.buckets["failed-"+name] = &bucket{keys: map[string]bool{"a": true}}
	return s
}

func (c *cloud) describe(in *cloudformation.DescribeStacksInput) (any, error) {
	out := &cloudformation.DescribeStacksOutput{}
	if in.StackName == nil {
		for _, s := range c.stacks {
			out.Stacks = append(out.Stacks, s.Stack)
		}
		return out, nil
	}
	s := c.find(*in.StackName)
	if s == nil {
		return nil, refusal("ValidationError", "Stack with id "+*in.StackName+" does not exist")
	}
	if s.looks--; s.looks <= 0 {
		switch {
		case s.StackStatus == cfntypes.StackStatusCreateInProgress && c.fails != "":
			s.StackStatus = cfntypes.StackStatusCreateFailed
		case s.StackStatus == cfntypes.StackStatusCreateInProgress:
			s.StackStatus = cfntypes.StackStatusCreateComplete
		case s.StackStatus == cfntypes.StackStatusDeleteInProgress:
			s.StackStatus = cfntypes.StackStatusDeleteComplete
			if b := c.buckets["failed-"+s.name()]; b != nil && len(b.keys) > 0 {
				s.StackStatus = cfntypes.StackStatusDeleteFailed
			} else {
				delete(c.buckets, "failed-"+s.name())
			}
		}
	}
	if s.StackName != nil {
		out.Stacks = []cfntypes.Stack{s.Stack}
	}
	return out, nil
}

func (c *cloud) store(in any) (any, error) {
	there := func(name *string) (*bucket, error) {
		if b := c.buckets[*name]; b != nil {
			return b, nil
		}
		if *name == "" {
			return nil, refusal("InvalidBucketName", "none")
		}
		return nil, refusal("NoSuchBucket", "The specified bucket does not exist")
	}
	switch in := in.(type) {
	case *s3.CreateBucketInput:
		if c.buckets[*in.Bucket] != nil {
			return nil, refusal("BucketAlreadyOwnedByYou", "yours")
		}
		c.buckets[*in.Bucket] = &bucket{keys: map[string]bool{}}
		return &s3.CreateBucketOutput{}, nil
	case *s3.PutBucketTaggingInput:
		b, err := there(in.Bucket)
		if err == nil {
			b.tags = map[string]string{}
			for _, t := range in.Tagging.TagSet {
				b.tags[*t.Key] = *t.Value
			}
		}
		return &s3.PutBucketTaggingOutput{}, err
	case *s3.GetBucketTaggingInput:
		b, err := there(in.Bucket)
		if err == nil && b.tags == nil {
			err = refusal("NoSuchTagSet", "none")
		}
		if err != nil {
			return nil, err
		}
		out := &s3.GetBucketTaggingOutput{}
		for k, v := range b.tags {
			out.TagSet = append(out.TagSet, s3types.Tag{Key: &k, Value: &v})
		}
		return out, nil
	case *s3.PutObjectInput:
		b, err := there(in.Bucket)
		if err == nil {
			b.keys[*in.Key] = true
		}
		return &s3.PutObjectOutput{}, err
	case *s3.GetObjectInput:
		if *in.Key == "torn" {
			return &s3.GetObjectOutput{Body: io.NopCloser(iotest.ErrReader(errTorn))}, nil
		}
		return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(*in.Key + " in " + *in.Bucket))}, nil
	case *s3.ListObjectsV2Input:
		b, err := there(in.Bucket)
		out := &s3.ListObjectsV2Output{}
		if err == nil {
			for k := range b.keys {
				if len(out.Contents) == 2 { // a page
					break
				}
				out.Contents = append(out.Contents, s3types.Object{Key: &k})
			}
		}
		return out, err
	case *s3.DeleteObjectsInput:
		b, err := there(in.Bucket)
		if err == nil {
			for _, o := range in.Delete.Objects {
				if c.kept[*o.Key] {
					return &s3.DeleteObjectsOutput{Errors: []s3types.Error{{Key: o.Key, Message: aws.String("it is locked")}}}, nil
				}
				delete(b.keys, *o.Key)
			}
		}
		return &s3.DeleteObjectsOutput{}, err
	case *s3.DeleteBucketInput:
		b, err := there(in.Bucket)
		if err == nil && len(b.keys) > 0 {
			err = refusal("BucketNotEmpty", "not empty")
		}
		if err == nil {
			delete(c.buckets, *in.Bucket)
		}
		return &s3.DeleteBucketOutput{}, err
	case *s3.ListBucketsInput:
		out := &s3.ListBucketsOutput{}
		for _, name := range slices.Sorted(maps.Keys(c.buckets)) { // as S3 does
			if c.deaf || strings.HasPrefix(name, aws.ToString(in.Prefix)) {
				out.Buckets = append(out.Buckets, s3types.Bucket{Name: &name})
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("the account in memory doesn't know %T", in)
}

// left are the stacks and buckets that are there.
func (c *cloud) left() (all []string) {
	for _, s := range c.stacks {
		if s.StackStatus != cfntypes.StackStatusDeleteComplete {
			all = append(all, "stack "+s.name())
		}
	}
	for name := range c.buckets {
		all = append(all, "bucket "+name)
	}
	slices.Sort(all)
	return all
}

// unbuiltApp stands in for go build.
func unbuiltApp(t *testing.T) func(context.Context, Options, Site) (App, error) {
	t.Helper()
	return func(context.Context, Options, Site) (App, error) {
		dir := t.TempDir()
		err := os.MkdirAll(filepath.Dir(filepath.Join(dir, bootstrap)), 0o700)
		for name, text := range map[string]string{bootstrap: "program", templateFile: Template(true), nestedFile: Nested(true)} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return App{Dir: dir, Versions: map[string]string{"samekey": "v1"}}, err
	}
}
