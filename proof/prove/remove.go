package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// Remove implements [Site]. It goes on while AWS can't be reached, until ctx ends.
func (a *Account) Remove(ctx context.Context) error {
	if a.run == "" {
		return nil // nothing was made
	}
	for {
		stack, bucket := a.removeStack(ctx), a.removeBucket(ctx, a.run)
		err := errors.Join(stack, bucket)
		if (stack == nil || final(stack)) && (bucket == nil || final(bucket)) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(a.pause):
		}
	}
}

// Clean removes what a run has left.
func (a *Account) Clean(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	b := *a
	b.run = run
	b.use(&meter{most: setup})
	return b.Remove(ctx)
}

// final reports whether an error is AWS's answer, which another try would get again.
func final(err error) bool {
	api, answered := errors.AsType[smithy.APIError](err)
	if answered {
		_, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
		answered = !throttled && api.ErrorFault() != smithy.FaultServer && api.ErrorCode() != "OperationAborted"
	}
	_, stopped := errors.AsType[stackFailed](err)
	return answered || stopped || errors.Is(err, errNotDeleted) || errors.Is(err, errOverPlan)
}

var errNotDeleted = errors.New("not deleted")

func (a *Account) removeStack(ctx context.Context) error {
	s, err := a.describe(ctx, a.run)
	switch {
	case err != nil:
		return err
	case s.StackStatus == cfntypes.StackStatusDeleteComplete:
		return nil
	case tagOf(s, tagRun) != a.run:
		return nil // another's stack of that name
	}
	id := aws.ToString(s.StackId)
	if a.StandIn() != "" && s.StackStatus == cfntypes.StackStatusCreateInProgress {
		// CloudFormation stops what it makes. MiniStack goes on, beside the removal.
		if _, err := a.await(ctx, id, cfntypes.StackStatusCreateComplete); err != nil && !final(err) {
			return err
		}
	}
	for range deletions {
		if err = a.emptyBuckets(ctx, id); err != nil {
			return err
		}
		if _, err = a.formation().DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &id}); err != nil {
			return err
		}
		_, err = a.await(ctx, id, cfntypes.StackStatusDeleteComplete)
		if _, failed := errors.AsType[stackFailed](err); !failed {
			return err
		}
	}
	return err
}

// deletions are how often a stack is deleted whose deletion fails: a batch of the stream that is given up meanwhile
// fills a bucket again.
const deletions = 3

func tagOf(s cfntypes.Stack, key string) string {
	for _, t := range s.Tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

// emptyBuckets empties the buckets of a stack and of those it nests: CloudFormation deletes
// empty ones only.
func (a *Account) emptyBuckets(ctx context.Context, stack string) error {
	pages := cloudformation.NewListStackResourcesPaginator(a.formation(), &cloudformation.ListStackResourcesInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, r := range page.StackResourceSummaries {
			id := aws.ToString(r.PhysicalResourceId)
			switch {
			case id == "" || r.ResourceStatus == cfntypes.ResourceStatusDeleteComplete:
			case aws.ToString(r.ResourceType) == "AWS::S3::Bucket":
				err = a.empty(ctx, id)
			case aws.ToString(r.ResourceType) == "AWS::CloudFormation::Stack":
				err = a.emptyBuckets(ctx, id)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// empty deletes all objects of a bucket. A bucket that isn't there is empty.
func (a *Account) empty(ctx context.Context, bucket string) error {
	for {
		out, err := a.bucket().ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
		if noBucket(err) {
			return nil
		}
		if err != nil || len(out.Contents) == 0 {
			return err
		}
		all := make([]s3types.ObjectIdentifier, 0, len(out.Contents))
		for _, o := range out.Contents {
			all = append(all, s3types.ObjectIdentifier{Key: o.Key})
		}
		gone, err := a.bucket().DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &s3types.Delete{Objects: all}})
		if err != nil {
			return err
		}
		if len(gone.Errors) > 0 {
			return fmt.Errorf("%w: %s in %s: %s", errNotDeleted, aws.ToString(gone.Errors[0].Key), bucket, aws.ToString(gone.Errors[0].Message))
		}
	}
}

// removeBucket removes the run's bucket. One without tags, which a run left that was killed
// at once, is removed if it is empty.
func (a *Account) removeBucket(ctx context.Context, bucket string) error {
	run, tagged, err := a.bucketTag(ctx, bucket, tagRun)
	switch {
	case noBucket(err):
		return nil
	case err != nil:
		return err
	case tagged && run != bucket:
		return nil // another's
	case tagged || a.made:
		if err := a.empty(ctx, bucket); err != nil {
			return err
		}
	}
	_, err = a.bucket().DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	if noBucket(err) {
		return nil
	}
	return err
}

// bucketTag returns a tag of a bucket, and whether it has tags at all.
func (a *Account) bucketTag(ctx context.Context, bucket, key string) (value string, tagged bool, err error) {
	out, err := a.bucket().GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket})
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "NoSuchTagSet" {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	for _, t := range out.TagSet {
		if aws.ToString(t.Key) == key {
			value = aws.ToString(t.Value)
		}
	}
	return value, true, nil
}

func noBucket(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "NoSuchBucket" || api.ErrorCode() == "NotFound")
}

// Leftover is a run whose stack or bucket is there.
type Leftover struct {
	Run     string
	Expires time.Time // zero: not known
}

// Leftovers are the runs of which something is there, by name.
func (a *Account) Leftovers(ctx context.Context) (all []Leftover, err error) {
	a.use(&meter{most: setup})
	add := func(run, expires string) {
		if run == "" {
			return
		}
		at, _ := time.Parse(time.RFC3339, expires) // of a tag that somebody changed nothing is known
		for _, l := range all {
			if l.Run == run {
				return
			}
		}
		all = append(all, Leftover{run, at})
	}
	stacks := cloudformation.NewDescribeStacksPaginator(a.formation(), &cloudformation.DescribeStacksInput{})
	for stacks.HasMorePages() {
		page, err := stacks.NextPage(ctx)
		if err != nil {
			return nil, plainError(err)
		}
		for _, s := range page.Stacks {
			if run := tagOf(s, tagRun); run == aws.ToString(s.StackName) && s.StackStatus != cfntypes.StackStatusDeleteComplete { // nested ones have other names
				add(run, tagOf(s, tagExpires))
			}
		}
	}
	buckets := s3.NewListBucketsPaginator(a.bucket(), &s3.ListBucketsInput{Prefix: aws.String(Prefix), BucketRegion: &a.cfg.Region})
	for buckets.HasMorePages() {
		page, err := buckets.NextPage(ctx)
		if err != nil {
			return nil, plainError(err)
		}
		for _, b := range page.Buckets {
			name := aws.ToString(b.Name)
			if !strings.HasPrefix(name, Prefix) { // a stand-in may not know prefixes
				continue
			}
			run, tagged, err := a.bucketTag(ctx, name, tagRun)
			if noBucket(err) || tagged && run != name {
				continue
			}
			expires, _, err2 := a.bucketTag(ctx, name, tagExpires)
			if err := errors.Join(err, err2); err != nil {
				return nil, plainError(err)
			}
			add(name, expires)
		}
	}
	return all, nil
}
