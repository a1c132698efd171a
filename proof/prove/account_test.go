package main

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/google/go-cmp/cmp"
)

// A deployment makes a bucket with program and templates, and a stack of them, in each partition's way, tagged, and knows
// where all of it is.
func TestDeploy(t *testing.T) {
	t.Parallel()
	const run, out = Prefix + "a", "ApiUrl=https://api RestUrl=https://rest FunctionUrl=https://url Records=records Worker=worker"
	for _, site := range []struct{ region, base, where, files, place string }{
		{"eu-west-1", "", "account 123456789012, Region eu-west-1", "https://samekey-prove-a.s3.eu-west-1.amazonaws.com/", out},
		{"cn-north-1", "", "account 123456789012, Region cn-north-1", "https://samekey-prove-a.s3.cn-north-1.amazonaws.com.cn/", out},
		{
			"eu-west-1", "http://127.0.0.1:1", "the service at http://127.0.0.1:1", "http://127.0.0.1:1/samekey-prove-a/",
			"ApiUrl= RestUrl= FunctionUrl= Records=records Worker=worker", // the URLs are AWS's, and no stand-in's
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			for key, value := range map[string]string{"ApiUrl": "https://api/", "RestUrl": "https://rest/", "FunctionUrl": "https://url/", "Records": "records", "Worker": "worker", "GivenUp": "failed-" + run} {
				c.outputs = append(c.outputs, cfntypes.Output{OutputKey: &key, OutputValue: &value})
			}
			cfg := c.config()
			if cfg.Region = site.region; site.base != "" {
				cfg.BaseEndpoint = &site.base
			}
			a, err := OpenAccount(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			app, err := unbuiltApp(t)(t.Context(), Options{}, a)
			if err != nil {
				t.Fatal(err)
			}
			p, err := a.Deploy(t.Context(), run, time.Date(2026, 11, 27, 23, 30, 0, 0, time.FixedZone("", 3600)), app, &meter{most: setup})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("ApiUrl=%s RestUrl=%s FunctionUrl=%s Records=%s Worker=%s", p.API, p.REST, p.URL, p.Records, p.Worker)
			if a.Where() != site.where || got != site.place {
				t.Errorf("got %s: %s, want %s: %s", a.Where(), got, site.where, site.place)
			}
			architecture := "arm64"
			if site.base != "" && runtime.GOARCH == "amd64" {
				architecture = "x86_64"
			}
			tags := map[string]string{tagRun: run, tagExpires: "2026-11-27T22:30:00Z"}
			want := map[string]string{"template": site.files + templateFile, "Nested": site.files + nestedFile, "CodeBucket": run, "Architecture": architecture}
			made := map[string]string{}
			for _, in := range c.inputs {
				if in, is := in.(*cloudformation.CreateStackInput); is {
					made["template"] = *in.TemplateURL
					for _, x := range in.Parameters {
						made[*x.ParameterKey] = *x.ParameterValue
					}
					for _, x := range in.Tags {
						made[*x.Key] = *x.Value
					}
				}
			}
			if diff := cmp.Diff(tags, c.buckets[run].tags) + cmp.Diff(map[string]bool{codeKey: true, templateFile: true, nestedFile: true}, c.buckets[run].keys); diff != "" {
				t.Error(diff)
			}
			maps.Copy(want, tags)
			if diff := cmp.Diff(want, made); diff != "" {
				t.Error(diff)
			}
			if all, err := p.GivenUp(t.Context()); err != nil || fmt.Sprintf("%s", all) != "[a in failed-"+run+"]" {
				t.Errorf("given up: got %s, %v", all, err)
			}
			c.buckets[run].tags = nil // as S3 may answer for a while
			if err := a.Remove(t.Context()); err != nil || c.left() != nil {
				t.Errorf("left %v, %v", c.left(), err)
			}
		})
	}
}

// The reason of a failed stack is its oldest failure, also in a nested stack, but neither those that it caused nor the
// stack's own.
func TestReason(t *testing.T) {
	t.Parallel()
	event := func(kind, id, physical string, status cfntypes.ResourceStatus, why string) cfntypes.StackEvent {
		return cfntypes.StackEvent{ResourceType: &kind, LogicalResourceId: &id, PhysicalResourceId: &physical, StackId: aws.String("s"), ResourceStatus: status, ResourceStatusReason: &why}
	}
	const failed, nested, role = cfntypes.ResourceStatusCreateFailed, "AWS::CloudFormation::Stack", "AWS::IAM::Role"
	own := event(nested, "s", "s", failed, "its own")
	for want, events := range map[string]map[string][]cfntypes.StackEvent{
		"AWS::IAM::Role Role: first": {"s": {
			own, event(role, "Other", "o", failed, "later"), event(role, "Role", "r", failed, "first"), event(role, "Third", "t", failed, "Resource creation cancelled"), own,
		}},
		"AWS::IAM::Role Worker: deep": {"s": {event(nested, "N", "n", failed, "in n")}, "n": {event(role, "Worker", "w", failed, "deep")}},
		"CREATE_FAILED: rollback":     {},
	} {
		c := newCloud()
		c.events = events
		a := c.account(t)
		status := cfntypes.Stack{StackStatus: cfntypes.StackStatusCreateFailed, StackStatusReason: aws.String("rollback")}
		if got := a.reason(t.Context(), "s", status); got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
		c.before = func(int, string) error { return errors.New("no") }
		if got := a.reason(t.Context(), "s", status); got.Error() != "CREATE_FAILED: rollback" {
			t.Errorf("events that nobody may see: got %v", got)
		}
	}
}
