package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
)

// Account is an AWS account, a [Site].
type Account struct {
	cfg     aws.Config // with a meter
	bare    aws.Config
	run     string
	expires time.Time
	id      string
	pause   time.Duration // between two looks at a stack
	meter   *meter
	made    bool // the bucket is this run's
	skew    time.Duration
}

// The tags of all that a run makes.
const (
	tagRun     = "samekey-prove"
	tagExpires = "samekey-prove-expires"
)

// maxSkew is how wrong this machine's clock may be: expiries are written by it.
const maxSkew = 5 * time.Minute

// OpenAccount asks which account the credentials are of. It makes nothing.
func OpenAccount(ctx context.Context, cfg aws.Config) (*Account, error) {
	a := &Account{bare: cfg, pause: 3 * time.Second}
	a.use(&meter{most: setup})
	out, err := sts.NewFromConfig(a.cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, fmt.Errorf("AWS in Region %s doesn't say whose the credentials are: %w", cfg.Region, plainError(err))
	}
	a.id = aws.ToString(out.Account)
	if at, _ := awsmiddleware.GetServerTime(out.ResultMetadata); !at.IsZero() {
		if a.skew = time.Until(at); a.skew.Abs() > maxSkew {
			return nil, fmt.Errorf("this machine's clock is wrong by %s: set it first, since what is left behind is known by its time", a.skew.Abs().Round(time.Minute))
		}
	}
	return a, nil
}

// Where implements [Site].
func (a *Account) Where() string {
	if a.StandIn() != "" {
		return a.StandIn()
	}
	return fmt.Sprintf("account %s, Region %s", a.id, a.cfg.Region)
}

// Region implements [Site].
func (a *Account) Region() string { return a.cfg.Region }

// StandIn implements [Site].
func (a *Account) StandIn() string {
	if url := aws.ToString(a.cfg.BaseEndpoint); url != "" {
		return "the service at " + url
	}
	return ""
}

// Program implements [Site]. A stand-in runs functions on its own processor.
func (a *Account) Program() (system, arch string, packaged bool) {
	if a.StandIn() != "" {
		return "linux", runtime.GOARCH, true
	}
	return "linux", "arm64", true
}

func (a *Account) formation() *cloudformation.Client { return cloudformation.NewFromConfig(a.cfg) }

func (a *Account) bucket() *s3.Client {
	return s3.NewFromConfig(a.cfg, func(o *s3.Options) { o.UsePathStyle = a.StandIn() != "" })
}

// Deploy implements [Site].
func (a *Account) Deploy(ctx context.Context, run string, expires time.Time, app App, m *meter) (*Place, error) {
	a.use(m)
	a.run, a.expires = run, expires
	if err := a.upload(ctx, app); err != nil {
		return nil, fmt.Errorf("the bucket %s: %w", a.run, plainError(err))
	}
	if err := a.create(ctx); err != nil {
		return nil, fmt.Errorf("the stack %s: %w", a.run, plainError(err))
	}
	stack, err := a.await(ctx, a.run, cfntypes.StackStatusCreateComplete)
	if err != nil {
		return nil, fmt.Errorf("the stack %s: %w", a.run, plainError(err))
	}
	p := &Place{
		StandIn: a.StandIn(), HTTP: client(), Timeout: 5 * time.Second, Alarms: cloudwatch.NewFromConfig(a.cfg), Stack: a.run, Rings: rings, skew: a.skew,
		DB: dynamodb.NewFromConfig(a.cfg, dynamo.Tune, patient), Streams: dynamodbstreams.NewFromConfig(a.cfg), Lambda: lambda.NewFromConfig(a.cfg),
		Booker: a.run + "-rides", Swept: 100_000,
		Rides: a.run + "-rides", Audit: a.run + "-audit", Provider: a.run + "-provider", Semantics: a.run + "-semantics",
	}
	for _, o := range stack.Outputs {
		switch value := aws.ToString(o.OutputValue); aws.ToString(o.OutputKey) {
		case "ApiUrl", "RestUrl", "FunctionUrl": // the URL is one of AWS, and no stand-in's
			if p.StandIn == "" {
				*map[string]*string{"ApiUrl": &p.API, "RestUrl": &p.REST, "FunctionUrl": &p.URL}[*o.OutputKey] = strings.TrimSuffix(value, "/")
			}
		case "Records":
			p.Records = value
		case "Worker":
			p.Worker = value
		case "Tickets":
			p.Hidden = func(ctx context.Context) (int, error) { return hidden(ctx, sqs.NewFromConfig(a.cfg), value) }
		case "GivenUp":
			p.GivenUp = func(ctx context.Context) ([][]byte, error) { return a.objects(ctx, value) }
		}
	}
	return p, nil
}

// patient waits longer for an answer than a function does: 4 MB go by slow lines.
func patient(o *dynamodb.Options) {
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		o.HTTPClient = client.WithTimeout(time.Minute)
	}
}

// objects are those of a bucket.
func (a *Account) objects(ctx context.Context, bucket string) (all [][]byte, _ error) {
	list, err := a.bucket().ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		return nil, plainError(err)
	}
	for _, o := range list.Contents {
		out, err := a.bucket().GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		if err != nil {
			return nil, plainError(err)
		}
		raw, err := io.ReadAll(out.Body)
		_ = out.Body.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// use has all later calls counted by m.
func (a *Account) use(m *meter) {
	a.cfg, a.meter = metered(a.bare, m), m
}

// surely is for a call that makes something: it has an answer also if the run is ended
// meanwhile, so that the removal knows.
func surely(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
}

// upload makes the bucket with program and templates.
func (a *Account) upload(ctx context.Context, app App) error {
	code, err := app.zipped()
	if err != nil {
		return err
	}
	in := &s3.CreateBucketInput{Bucket: &a.run}
	if a.cfg.Region != "us-east-1" {
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(a.cfg.Region)}
	}
	bucket := a.bucket()
	if _, err := bucket.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &a.run}); !noBucket(err) {
		return errors.Join(errors.New("one of that name is there, or nobody knows"), err)
	}
	making, cancel := surely(ctx)
	defer cancel()
	if _, err := bucket.CreateBucket(making, in); err != nil {
		return err
	}
	a.made = true
	if _, err := bucket.PutBucketTagging(making, &s3.PutBucketTaggingInput{Bucket: &a.run, Tagging: &s3types.Tagging{TagSet: []s3types.Tag{
		{Key: aws.String(tagRun), Value: &a.run}, {Key: aws.String(tagExpires), Value: aws.String(a.expiry())},
	}}}); err != nil {
		return err
	}
	files := map[string][]byte{codeKey: code}
	for _, name := range []string{templateFile, nestedFile} {
		if files[name], err = os.ReadFile(filepath.Join(app.Dir, name)); err != nil {
			return err
		}
	}
	for name, content := range files {
		if _, err := bucket.PutObject(ctx, &s3.PutObjectInput{Bucket: &a.run, Key: &name, Body: bytes.NewReader(content)}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Account) expiry() string { return a.expires.UTC().Format(time.RFC3339) }

// url is where CloudFormation finds a file of the bucket.
func (a *Account) url(name string) string {
	if base := aws.ToString(a.cfg.BaseEndpoint); base != "" {
		return base + "/" + a.run + "/" + name
	}
	suffix := "amazonaws.com"
	if strings.HasPrefix(a.cfg.Region, "cn-") {
		suffix += ".cn"
	}
	return "https://" + a.run + ".s3." + a.cfg.Region + "." + suffix + "/" + name
}

func (a *Account) create(ctx context.Context) error {
	making, cancel := surely(ctx)
	defer cancel()
	architecture := map[string]string{"amd64": "x86_64", "arm64": "arm64"}
	_, arch, _ := a.Program()
	_, err := a.formation().CreateStack(making, &cloudformation.CreateStackInput{
		StackName: &a.run, TemplateURL: aws.String(a.url(templateFile)), ClientRequestToken: &a.run,
		Capabilities: []cfntypes.Capability{cfntypes.CapabilityCapabilityIam, cfntypes.CapabilityCapabilityAutoExpand},
		OnFailure:    cfntypes.OnFailureDoNothing, // the run removes it, after it has read why
		Parameters: []cfntypes.Parameter{
			{ParameterKey: aws.String("Nested"), ParameterValue: aws.String(a.url(nestedFile))},
			{ParameterKey: aws.String("CodeBucket"), ParameterValue: &a.run},
			{ParameterKey: aws.String("Architecture"), ParameterValue: aws.String(architecture[arch])},
		},
		Tags: []cfntypes.Tag{{Key: aws.String(tagRun), Value: &a.run}, {Key: aws.String(tagExpires), Value: aws.String(a.expiry())}},
	})
	return err
}

// await looks at a stack until its creation or deletion is over. A stack that is gone has
// the status DELETE_COMPLETE.
func (a *Account) await(ctx context.Context, stack string, wanted cfntypes.StackStatus) (cfntypes.Stack, error) {
	for {
		s, err := a.describe(ctx, stack)
		switch {
		case err != nil:
			return s, err
		case s.StackStatus == wanted:
			return s, nil
		case !strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS"):
			return s, stackFailed{a.reason(ctx, stack, s)}
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-time.After(a.pause):
		}
	}
}

// stackFailed is the end of a stack's creation or deletion that failed.
type stackFailed struct{ error }

// describe returns a stack. One that isn't there is deleted.
func (a *Account) describe(ctx context.Context, stack string) (cfntypes.Stack, error) {
	out, err := a.formation().DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if code, ok := errors.AsType[smithy.APIError](err); ok && code.ErrorCode() == "ValidationError" && strings.Contains(code.ErrorMessage(), "does not exist") {
		return cfntypes.Stack{StackStatus: cfntypes.StackStatusDeleteComplete}, nil
	}
	if err != nil {
		return cfntypes.Stack{}, err
	}
	if len(out.Stacks) != 1 {
		return cfntypes.Stack{}, fmt.Errorf("CloudFormation knows %d stacks of that name", len(out.Stacks))
	}
	return out.Stacks[0], nil
}

// reason finds the first resource that failed, also in a nested stack.
func (a *Account) reason(ctx context.Context, stack string, s cfntypes.Stack) error {
	for range 3 {
		out, err := a.formation().DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &stack})
		if err != nil {
			break
		}
		var failed *cfntypes.StackEvent
		for _, e := range out.StackEvents { // the last one is the oldest
			if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") && !strings.Contains(aws.ToString(e.ResourceStatusReason), "cancelled") &&
				aws.ToString(e.PhysicalResourceId) != aws.ToString(e.StackId) {
				failed = &e
			}
		}
		if failed == nil {
			break
		}
		if aws.ToString(failed.ResourceType) == "AWS::CloudFormation::Stack" && aws.ToString(failed.PhysicalResourceId) != "" {
			stack = aws.ToString(failed.PhysicalResourceId)
			s.StackStatusReason = failed.ResourceStatusReason
			continue
		}
		return fmt.Errorf("%s %s: %s", aws.ToString(failed.ResourceType), aws.ToString(failed.LogicalResourceId), aws.ToString(failed.ResourceStatusReason))
	}
	return fmt.Errorf("%s: %s", s.StackStatus, aws.ToString(s.StackStatusReason))
}

// plainError is the service's own words, in one line.
func plainError(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Errorf("%s: %s", api.ErrorCode(), strings.Join(strings.Fields(api.ErrorMessage()), " "))
	}
	return err
}
