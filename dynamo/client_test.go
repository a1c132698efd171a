package dynamo_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/testkit/tabletest"
)

// A client is made of the variables that Lambda sets, and of an endpoint for tests.
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

// A large request doesn't break its connection where the answer comes before net/http has
// seen the end of the request's body, as on a busy machine.
func TestAnswerBeforeTheBodysEnd(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	answered, written := make(chan struct{}), make(chan error, 1)
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &slowConn{Conn: conn, until: answered}, err
	}}
	defer base.CloseIdleConnections()
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &srv.URL, Credentials: aws.AnonymousCredentials{},
		HTTPClient: &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			if err == nil {
				resp.Body = &lateBody{ReadCloser: resp.Body, first: sync.OnceFunc(func() {
					close(answered) // the SDK has closed the request's body
					if err := <-written; err != nil {
						t.Errorf("the request was not written: %v", err)
					}
				})}
			}
			return resp, err
		})},
	}, dynamo.Tune, dynamo.Tune)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) { written <- info.Err }})
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("table"), Item: map[string]types.AttributeValue{
		"pk": tabletest.Str(strings.Repeat("x", 10<<10)),
	}})
	if err != nil {
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// lateBody is a body that calls first before it is read.
type lateBody struct {
	io.ReadCloser
	first func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	b.first()
	return b.ReadCloser.Read(p)
}

// slowConn is a connection whose last writes return late.
type slowConn struct {
	net.Conn
	sent  int
	until <-chan struct{}
}

func (c *slowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.sent += n; c.sent > 10<<10 { // the body is complete
		<-c.until
	}
	return n, err
}

// A table is made, waited for, and told which items expire. One that exists stays as it is.
func TestCreateTable(t *testing.T) {
	t.Parallel()
	made := []string{"CreateTable", "DescribeTable", "DescribeTable", "UpdateTimeToLive"}
	for name, tt := range map[string]struct {
		errors map[string]string
		states []string
		calls  []string
		err    string
	}{
		"new":             {states: []string{"CREATING", "ACTIVE"}, calls: made},
		"there already":   {errors: map[string]string{"CreateTable": "ResourceInUseException"}, calls: made[:1]},
		"denied":          {errors: map[string]string{"CreateTable": "AccessDeniedException"}, calls: made[:1], err: "create table t: "},
		"can't be seen":   {errors: map[string]string{"DescribeTable": "AccessDeniedException"}, calls: made[:2], err: "create table t: "},
		"without its TTL": {states: []string{"CREATING", "ACTIVE"}, errors: map[string]string{"UpdateTimeToLive": "AccessDeniedException"}, calls: made, err: "TTL of t: "},
		"never there":     {states: []string{"CREATING"}, calls: made[:3], err: "create table t: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &tables{errors: tt.errors, states: tt.states}
			client := dynamodb.New(stubOf(s).Options())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if name == "never there" {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			err := dynamo.CreateTable(ctx, client, "t")
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			calls := s.calls
			if name == "never there" {
				calls = slices.Compact(calls)
				tt.calls = slices.Compact(slices.Clone(tt.calls))
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// tables answers the calls that make a table: with an error's type, or with a status of the
// table.
type tables struct {
	calls  []string
	errors map[string]string // by operation
	states []string          // of the table, one for each look at it; the last one stays
}

func (s *tables) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.calls = append(s.calls, op)
	body, status := "{}", http.StatusOK
	switch kind := s.errors[op]; {
	case kind != "":
		body, status = `{"__type":"com.amazonaws.dynamodb.v20120810#`+kind+`","message":"injected"}`, http.StatusBadRequest
	case op == "DescribeTable":
		body = `{"Table":{"TableStatus":"` + s.states[0] + `"}}`
		s.states = s.states[min(1, len(s.states)-1):]
	}
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// The table is defined twice, for tests and for an account: they must agree.
func TestTemplateDefinesTheSameTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../deploy/samekey.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type attribute struct{ AttributeName, AttributeType, KeyType string }
	type index struct {
		IndexName  string
		KeySchema  []attribute
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
	type definition struct {
		AttributeDefinitions    []attribute
		KeySchema               []attribute
		BillingMode             string
		GlobalSecondaryIndexes  []index
		TimeToLiveSpecification struct {
			AttributeName string
			Enabled       bool
		}
		StreamSpecification struct{ StreamViewType string }
	}
	var template struct {
		Resources struct {
			Table struct {
				Type       string
				Properties struct {
					definition
					PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
					SSESpecification                 struct{ SSEEnabled bool }
				}
			}
		}
	}
	var loose any // JSON matches field names without tags
	if err := yaml.Unmarshal(raw, &loose); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(loose); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &template); err != nil {
		t.Fatal(err)
	}
	if got := template.Resources.Table.Type; got != "AWS::DynamoDB::Table" {
		t.Fatalf("Resources.Table has type %q", got)
	}
	props := template.Resources.Table.Properties
	if !props.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled || !props.SSESpecification.SSEEnabled {
		t.Error("the template's table has no point-in-time recovery or no encryption")
	}

	in, ttl := dynamo.CreateTableInput("x"), dynamo.TimeToLive("x")
	if !aws.ToBool(in.StreamSpecification.StreamEnabled) {
		t.Error("the table has no stream")
	}
	var want definition
	for _, of := range []any{in, ttl} { // whose fields have the template's names
		raw, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, props.definition); diff != "" {
		t.Errorf("samekey.yaml differs from CreateTableInput (-code +template):\n%s", diff)
	}
}

func stubOf(transport dynamodb.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient, o.DisableValidateResponseChecksum = transport, true
	})
}
