package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// in is the nth input of a type, of those that the account has got.
func in[T any](c *cloud) (all []T) {
	for _, x := range c.inputs {
		if x, is := x.(T); is {
			all = append(all, x)
		}
	}
	return all
}

func outputs(texts map[string]string) (all []cfntypes.Output) {
	for key, value := range texts {
		all = append(all, cfntypes.Output{OutputKey: &key, OutputValue: &value})
	}
	return all
}

// A deployment makes a bucket with program and templates, and a stack of them, in each partition's way, and knows where all
// of it is.
func TestDeploy(t *testing.T) {
	t.Parallel()
	const run = Prefix + "a"
	for _, site := range []struct {
		region, base, where, location, files, arch string
	}{
		{"eu-west-1", "", "account 123456789012, Region eu-west-1", "eu-west-1", "https://samekey-prove-a.s3.eu-west-1.amazonaws.com/", "arm64"},
		{"us-east-1", "", "account 123456789012, Region us-east-1", "", "https://samekey-prove-a.s3.us-east-1.amazonaws.com/", "arm64"},
		{"cn-north-1", "", "account 123456789012, Region cn-north-1", "cn-north-1", "https://samekey-prove-a.s3.cn-north-1.amazonaws.com.cn/", "arm64"},
		{"eu-west-1", "http://127.0.0.1:1", "the service at http://127.0.0.1:1", "eu-west-1", "http://127.0.0.1:1/samekey-prove-a/", runtime.GOARCH},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.outputs = outputs(map[string]string{
				"ApiUrl": "https://api/", "RestUrl": "https://rest/prod/", "FunctionUrl": "https://url/", "Records": "records", "Worker": "worker", "Tickets": "https://sqs/tickets", "GivenUp": "failed-" + run, "More": "",
			})
			cfg := c.config()
			if cfg.Region = site.region; site.base != "" {
				cfg.BaseEndpoint = &site.base
			}
			a, err := OpenAccount(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			a.skew = time.Second
			if system, arch, packaged := a.Program(); a.Where() != site.where || a.Region() != site.region || system != "linux" || arch != site.arch || !packaged || a.bucket().Options().UsePathStyle != (site.base != "") {
				t.Error(a.Where(), a.Region(), system, arch, packaged)
			}
			app, err := unbuiltApp(t)(t.Context(), Options{}, a)
			if err != nil {
				t.Fatal(err)
			}
			began, expires, m := time.Now(), time.Date(2026, 11, 27, 23, 30, 0, 0, time.FixedZone("", 3600)), &meter{most: setup}
			p, err := a.Deploy(t.Context(), run, expires, app, m)
			if err != nil || time.Since(began) != 3*time.Second || m.total() == (Cost{}) {
				t.Fatal(time.Since(began), m.total(), err)
			}
			want := &Place{
				StandIn: a.StandIn(), API: "https://api", REST: "https://rest/prod", URL: "https://url", Plain: run + "-plain", Booker: run + "-rides", Worker: "worker", Swept: 100_000,
				Rides: run + "-rides", Audit: run + "-audit", Provider: run + "-provider", Semantics: run + "-semantics", Records: "records", Timeout: 5 * time.Second, Stack: run, Rings: 12 * time.Minute, skew: time.Second,
			}
			if site.base != "" {
				want.API, want.REST, want.URL = "", "", ""
			}
			if diff := cmp.Diff(want, p, cmp.AllowUnexported(Place{}), cmpopts.IgnoreFields(Place{}, "HTTP", "DB", "Streams", "Lambda", "Alarms", "GivenUp", "Hidden")); diff != "" {
				t.Error(diff)
			}
			a.deployed(t, c, p, site.location, site.files, map[string]string{"arm64": "arm64", "amd64": "x86_64"}[site.arch])
			c.buckets[run].tags = nil // as S3 may answer for a while
			if err := a.Remove(t.Context()); err != nil || c.left() != nil {
				t.Error(err, c.left())
			}
		})
	}
}

// deployed looks at what was made, and asks the place what it knows.
func (a *Account) deployed(t *testing.T, c *cloud, p *Place, location, files, architecture string) {
	t.Helper()
	tags := map[string]string{tagRun: a.run, tagExpires: "2026-11-27T22:30:00Z"}
	stack := in[*cloudformation.CreateStackInput](c)[0]
	var got []string
	for _, x := range stack.Parameters {
		got = append(got, *x.ParameterKey+"="+*x.ParameterValue)
	}
	for _, x := range stack.Tags {
		got = append(got, *x.Key+"="+*x.Value)
	}
	want := []string{
		"Nested=" + files + nestedFile, "CodeBucket=" + a.run, "Architecture=" + architecture, tagRun + "=" + a.run, tagExpires + "=" + tags[tagExpires],
		a.run, files + templateFile, a.run, "[CAPABILITY_IAM CAPABILITY_AUTO_EXPAND]", "DO_NOTHING", location,
	}
	made := ""
	if x := in[*s3.CreateBucketInput](c)[0].CreateBucketConfiguration; x != nil {
		made = string(x.LocationConstraint)
	}
	got = append(got, *stack.StackName, *stack.TemplateURL, *stack.ClientRequestToken, fmt.Sprint(stack.Capabilities), string(stack.OnFailure), made)
	sizes := map[string]bool{}
	for _, x := range in[*s3.PutObjectInput](c) {
		raw, _ := io.ReadAll(x.Body)
		sizes[*x.Key] = len(raw) > 0
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(tags, c.buckets[a.run].tags) + cmp.Diff(map[string]bool{codeKey: true, templateFile: true, nestedFile: true}, sizes); diff != "" {
		t.Error(diff)
	}
	if n, err := p.Hidden(t.Context()); n != len("https://sqs/tickets") || err != nil {
		t.Error(n, err)
	}
	for key, fails := range map[string]string{"": "", "ListObjectsV2": "AccessDenied: no", "GetObject": "AccessDenied: no", "torn": errTorn.Error()} {
		b := &bucket{keys: map[string]bool{"a": true}}
		if key == "torn" {
			b.keys = map[string]bool{"torn": true}
		}
		c.buckets["failed-"+a.run] = b
		c.before = func(_ int, op string) error {
			if op == key {
				return refusal("AccessDenied", "no")
			}
			return nil
		}
		all, err := p.GivenUp(t.Context())
		if said := fmt.Sprintf("%s %v", all, err); fails == "" && said != "[a in failed-"+a.run+"] <nil>" || fails != "" && said != "[] "+fails {
			t.Errorf("%q: %s", key, said)
		}
	}
	c.before = nil
}

// A deployment that fails says at what, and one that the run ends says why.
func TestNotDeployed(t *testing.T) {
	t.Parallel()
	const run = Prefix + "a"
	for without, want := range map[string]string{
		bootstrap: "the bucket " + run + ": open ", nestedFile: "the bucket " + run + ": open ", "": "the stack " + run + ": it was told to",
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			a := c.account(t)
			a.pause = time.Minute
			app, err := unbuiltApp(t)(t.Context(), Options{}, a)
			ctx, end := context.WithCancelCause(t.Context())
			if time.AfterFunc(time.Second, func() { end(errors.New("it was told to")) }); without != "" {
				err = errors.Join(err, os.Remove(filepath.Join(app.Dir, without)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Deploy(ctx, run, time.Now(), app, &meter{most: setup}); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("without %q: %v", without, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		ctx, cancel := surely(ended)
		defer cancel()
		if at, _ := ctx.Deadline(); ctx.Err() != nil || time.Until(at) != time.Minute {
			t.Errorf("a call that makes something ends after %s: %v", time.Until(at), ctx.Err())
		}
	})
}

// Only the SDK's own client waits longer.
func TestPatience(t *testing.T) {
	t.Parallel()
	for _, client := range []aws.HTTPClient{awshttp.NewBuildableClient().WithTimeout(time.Second), http.DefaultClient} {
		o := dynamodb.Options{HTTPClient: client}
		patient(&o)
		if own, is := o.HTTPClient.(*awshttp.BuildableClient); is && own.GetTimeout() != time.Minute || !is && o.HTTPClient != client {
			t.Errorf("%+v", o.HTTPClient)
		}
	}
}

// The reason of a failed stack is its oldest failure, also in a nested stack, but neither those that it caused nor the
// stack's own.
func TestReason(t *testing.T) {
	t.Parallel()
	event := func(kind, id, physical string, status cfntypes.ResourceStatus, why string) cfntypes.StackEvent {
		return cfntypes.StackEvent{ResourceType: &kind, LogicalResourceId: &id, PhysicalResourceId: &physical, StackId: aws.String("s"), ResourceStatus: status, ResourceStatusReason: &why}
	}
	const failed, made, nested, role = cfntypes.ResourceStatusCreateFailed, cfntypes.ResourceStatusCreateComplete, "AWS::CloudFormation::Stack", "AWS::IAM::Role"
	own := event(nested, "s", "s", failed, "its own")
	for want, events := range map[string]map[string][]cfntypes.StackEvent{
		"AWS::IAM::Role Role: first": {"s": {
			own, event(role, "Other", "o", failed, "later"), event(role, "Role", "r", failed, "first"), event(role, "Third", "t", failed, "Resource creation cancelled"), event(role, "Made", "m", made, "fine"), own,
		}},
		"AWS::IAM::Role Worker: deep":                     {"s": {event(nested, "N", "n", failed, "in n")}, "n": {event(nested, "M", "m", failed, "in m")}, "m": {event(role, "Worker", "w", failed, "deep")}},
		"CREATE_FAILED: deeper":                           {"s": {event(nested, "N", "n", failed, "in n")}, "n": {event(nested, "N", "n", failed, "deeper")}},
		"CREATE_FAILED: in n":                             {"s": {event(nested, "N", "n", failed, "in n")}},
		"AWS::CloudFormation::Stack N: it was never made": {"s": {event(nested, "N", "", failed, "it was never made")}},
		"CREATE_FAILED: rollback":                         {},
	} {
		c := newCloud()
		c.events = events
		a := c.account(t)
		status := cfntypes.Stack{StackStatus: cfntypes.StackStatusCreateFailed, StackStatusReason: aws.String("rollback")}
		if got := a.reason(t.Context(), "s", status); got.Error() != want {
			t.Errorf("%v, not %s", got, want)
		}
		if n := len(in[*cloudformation.DescribeStackEventsInput](c)); n > 3 || n < 3 && strings.Contains(want, "deep") {
			t.Errorf("%s: %d looks", want, n)
		}
		c.before = func(int, string) error { return refusal("AccessDenied", "no") }
		if got := a.reason(t.Context(), "s", status); got.Error() != "CREATE_FAILED: rollback" || !slices.Contains(c.calls, "DescribeStackEvents") {
			t.Errorf("events that nobody may see: %v", got)
		}
	}
}
