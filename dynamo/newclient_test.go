package dynamo_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
)

// A client is made of the variables that Lambda sets, and of an endpoint for tests.
//
//nolint:paralleltest // it sets the environment
func TestNewClientReadsTheEnvironment(t *testing.T) {
	all := map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
		"AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL": "", "AWS_USE_FIPS_ENDPOINT": "", "AWS_USE_DUALSTACK_ENDPOINT": "",
	}
	for name, tt := range map[string]struct {
		set              map[string]string
		region, endpoint string
		err              string
	}{
		"all":                  {region: "eu-central-1"},
		"the default region":   {set: map[string]string{"AWS_REGION": ""}, region: "us-east-1"},
		"neither true nor no":  {set: map[string]string{"AWS_USE_FIPS_ENDPOINT": "1"}, err: "AWS_USE_FIPS_ENDPOINT is \"1\": write true or false"},
		"no region":            {set: map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": ""}, err: "AWS_REGION"},
		"no key":               {set: map[string]string{"AWS_ACCESS_KEY_ID": ""}, err: "AWS_ACCESS_KEY_ID"},
		"no secret":            {set: map[string]string{"AWS_SECRET_ACCESS_KEY": ""}, err: "AWS_SECRET_ACCESS_KEY"},
		"an endpoint":          {set: map[string]string{"AWS_ENDPOINT_URL": "http://one"}, region: "eu-central-1", endpoint: "http://one"},
		"one for the database": {set: map[string]string{"AWS_ENDPOINT_URL": "http://one", "AWS_ENDPOINT_URL_DYNAMODB": "http://two"}, region: "eu-central-1", endpoint: "http://two"},
	} {
		t.Run(name, func(t *testing.T) {
			for n, v := range all {
				t.Setenv(n, v)
			}
			for n, v := range tt.set {
				t.Setenv(n, v)
			}
			client, err := dynamo.NewClient(func(o *dynamodb.Options) { o.AppID = "mine" })
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := client.Options()
			creds, err := o.Credentials.Retrieve(t.Context())
			if err != nil || creds.AccessKeyID != "AKID" || creds.SecretAccessKey != "secret" || creds.SessionToken != "token" {
				t.Errorf("credentials %+v, %v", creds, err)
			}
			if o.Region != tt.region || aws.ToString(o.BaseEndpoint) != tt.endpoint || o.BaseEndpoint != nil && tt.endpoint == "" || o.AppID != "mine" {
				t.Errorf("region %s, endpoint %s, app %s", o.Region, aws.ToString(o.BaseEndpoint), o.AppID)
			}
			if o.Retryer.MaxAttempts() != 6 {
				t.Errorf("%d attempts", o.Retryer.MaxAttempts())
			}
		})
	}
}

// The SDK's variables for kinds of endpoints, which organisations set for all their
// functions, hold for clients made without the SDK's config package.
//
//nolint:paralleltest // it sets the environment
func TestClientsUseTheEndpointsOfTheEnvironment(t *testing.T) {
	for name, tt := range map[string]struct{ fips, dualStack, want string }{
		"none":       {"", "", "dynamodb.us-east-1.amazonaws.com"},
		"off":        {"false", "False", "dynamodb.us-east-1.amazonaws.com"},
		"FIPS":       {"true", "", "dynamodb-fips.us-east-1.amazonaws.com"},
		"dual stack": {"", "TRUE", "dynamodb.us-east-1.api.aws"},
		"both":       {"true", "true", "dynamodb-fips.us-east-1.api.aws"},
	} {
		t.Run(name, func(t *testing.T) {
			for n, v := range map[string]string{
				"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
				"AWS_USE_FIPS_ENDPOINT": tt.fips, "AWS_USE_DUALSTACK_ENDPOINT": tt.dualStack,
			} {
				t.Setenv(n, v)
			}
			got := ""
			client, err := dynamo.NewClient(func(o *dynamodb.Options) {
				o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) { got = r.URL.Host; return nil, http.ErrServerClosed })
				o.Retryer = aws.NopRetryer{}
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.ListTables(t.Context(), nil); err == nil || got != tt.want {
				t.Errorf("calls go to %s, want %s (%v)", got, tt.want, err)
			}
		})
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// Tune limits the time of the SDK's own client, and leaves another one as it is.
func TestTuneLimitsTheTime(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]dynamodb.HTTPClient{"none": nil, "the SDK's own": awshttp.NewBuildableClient()} {
		o := dynamodb.Options{HTTPClient: given}
		dynamo.Tune(&o)
		c, ok := o.HTTPClient.(*awshttp.BuildableClient)
		if !ok || c.GetTimeout() != 2*time.Second || c.GetDialer().Timeout != time.Second || c.GetTransport().MaxIdleConnsPerHost != c.GetTransport().MaxIdleConns {
			t.Errorf("%s: %+v", name, o.HTTPClient)
		}
	}
	mine := &http.Client{Timeout: time.Hour}
	o := dynamodb.Options{HTTPClient: mine}
	if dynamo.Tune(&o); o.HTTPClient != mine || mine.Timeout != time.Hour {
		t.Errorf("mine became %+v", o.HTTPClient)
	}
}
