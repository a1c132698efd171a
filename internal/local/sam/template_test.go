package sam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/internal/local/sam"
)

const lambdaARN = "arn:aws:lambda:us-east-1:123456789012:function:"

func full(t *testing.T) *sam.Template {
	t.Helper()
	tpl, err := sam.Load("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tpl.Set("Table", "StreamArn", "arn:stream")
	tpl.Set("Work", "", "http://work")
	return tpl
}

func TestTables(t *testing.T) {
	t.Parallel()
	got, err := full(t).Tables()
	if err != nil {
		t.Fatal(err)
	}
	want := []sam.Table{
		{
			ID: "Table", Name: "local-Table", StreamView: "NEW_AND_OLD_IMAGES", TTL: "exp_s",
			Attributes: []sam.Attribute{{Name: "pk", Type: "S"}, {Name: "n", Type: "N"}},
			Key:        []sam.Key{{Attribute: "pk", Role: "HASH"}, {Attribute: "n", Role: "RANGE"}},
			Global: []sam.Index{{
				Name: "byN", Key: []sam.Key{{Attribute: "n", Role: "HASH"}}, Projection: "INCLUDE", NonKey: []string{"a", "b"},
			}},
		},
		{ID: "Users", Name: "local-Users", Attributes: []sam.Attribute{{Name: "email", Type: "S"}}, Key: []sam.Key{{Attribute: "email", Role: "HASH"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	got, err := full(t).Queues()
	if err != nil {
		t.Fatal(err)
	}
	want := []sam.Queue{
		{
			ID: "Work", Name: "local-Work", Attributes: map[string]string{"VisibilityTimeout": "30", "DelaySeconds": "2"},
			Redrive: &sam.Redrive{Queue: "Dead", MaxReceiveCount: 5},
		},
		{ID: "Dead", Name: "local-Dead", Attributes: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	got, err := full(t).Functions()
	if err != nil {
		t.Fatal(err)
	}
	none := 0
	want := []sam.Function{
		{
			ID: "Rides", Name: "local-Rides", ARN: lambdaARN + "local-Rides", Bootstrap: "testdata/dist/rides/bootstrap",
			Environment: map[string]string{"TABLE": "local-Table", "GRACE": "1m", "QUEUE": "http://work"},
			Timeout:     28 * time.Second, MemoryMB: 256, Concurrency: 7, PerProcess: 5,
			Async: sam.Async{Retries: 1, MaxAge: time.Minute, OnFailure: "arn:aws:s3:::local-failures"},
			Events: []sam.Event{
				{Name: "Create", Route: &sam.RouteEvent{API: "ServerlessHttpApi", Key: "POST /rides", Timeout: 5 * time.Second}},
				{Name: "Get", Route: &sam.RouteEvent{API: "ServerlessHttpApi", Key: "GET /rides/{id}"}},
				{Name: "Admin", Route: &sam.RouteEvent{API: "ServerlessHttpApi", Key: "ANY /admin"}},
				{Name: "Old", Route: &sam.RouteEvent{API: "Rest", REST: true, Key: "GET /old"}},
			},
			Notes: []string{"event Image of type S3 has no effect: samekey local doesn't send it", "Layers has no effect here"},
		},
		{
			ID: "Authorizer", Name: "local-Authorizer", ARN: lambdaARN + "local-Authorizer",
			Bootstrap:   "testdata/.aws-sam/build/Authorizer/bootstrap",
			Environment: map[string]string{"TABLE": "local-Table", "GRACE": "5m"},
			Timeout:     10 * time.Second, MemoryMB: 256, Async: sam.Async{Retries: 2, MaxAge: 6 * time.Hour},
		},
		{
			ID: "Drain", Name: "local-Drain", ARN: lambdaARN + "local-Drain", Bootstrap: "testdata/dist/drain/bootstrap",
			Environment: map[string]string{"TABLE": "local-Table", "GRACE": "5m"},
			Timeout:     10 * time.Second, MemoryMB: 256, Async: sam.Async{Retries: 2, MaxAge: 6 * time.Hour},
			Events: []sam.Event{
				{Name: "Stream", Stream: &sam.StreamEvent{
					ARN: "arn:stream", StartingPosition: "TRIM_HORIZON", Bisect: true, Retries: &none, MaxAge: -time.Second,
					ParallelizationFactor: 2, OnFailure: "arn:aws:s3:::local-failures",
					Batching: sam.Batching{BatchSize: 50, Window: time.Second, Filters: []string{`{"a":["b"]}`, `{}`}, ReportItemFailures: true},
				}},
				{Name: "Queue", Queue: &sam.QueueEvent{Queue: "Work", MaxConcurrency: 2, Batching: sam.Batching{BatchSize: 5, Disabled: true}}},
				{Name: "Sweep", Schedule: &sam.ScheduleEvent{Name: "DrainSweep", Expression: "rate(5 minutes)", Input: `{"sweep":true}`}},
				{Name: "Nightly", Schedule: &sam.ScheduleEvent{Rule: true, Name: "nightly", Expression: "cron(0 3 * * ? *)", Disabled: true}},
			},
		},
	}
	byText := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sam.RouteEvent{}), byText); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPIs(t *testing.T) {
	t.Parallel()
	tpl := full(t)
	functions, err := tpl.Functions()
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.APIs(functions)
	if err != nil {
		t.Fatal(err)
	}
	tokens := &sam.Authorizer{Name: "Tokens", Function: "Authorizer", Simple: true, Sources: []string{"header.Authorization", "querystring.user"}}
	issued := &sam.Authorizer{Name: "Issued", JWT: &sam.JWT{
		Issuer: "https://issuer.example", Audience: []string{"rides"}, Scopes: []string{"admin"}, HeaderKey: "X-Token",
	}}
	want := []sam.API{
		{
			ID: "Rest", REST: true, Stage: "v1", StageVariables: map[string]string{"colour": "blue"}, BinaryMediaTypes: []string{"image/png"},
			Notes: []string{"Cors has no effect here"},
			Routes: []sam.Route{{Key: "GET /old", Function: "Rides", Authorizer: &sam.Authorizer{
				Name: "Keys", Function: "Authorizer", Token: true, Sources: []string{"header.X-Key"},
			}}},
		},
		{
			ID: "ServerlessHttpApi", Stage: "$default",
			Routes: []sam.Route{
				{Key: "POST /rides", Function: "Rides", Timeout: 5 * time.Second, Authorizer: tokens},
				{Key: "GET /rides/{id}", Function: "Rides"},
				{Key: "ANY /admin", Function: "Rides", Authorizer: issued},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sam.Authorizer{}, "Validation")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	valid := got[0].Routes[0].Authorizer.Validation
	if !valid.MatchString("abc") || valid.MatchString("abc1") {
		t.Errorf("validation is %v", valid)
	}
}

func TestIgnoredResourcesAreNamed(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]sam.Resource{{ID: "Cluster", Type: "AWS::RDS::DBCluster", Line: 60}}, full(t).Ignored()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBootstrapOfSAMBuildIsUsedOnceItIsThere(t *testing.T) {
	t.Parallel()
	path := write(t, "Resources:\n  Fn:\n    Type: AWS::Serverless::Function\n    Properties: {CodeUri: src, Runtime: provided.al2023}\n")
	own := filepath.Join(filepath.Dir(path), "src", "bootstrap")
	built := filepath.Join(filepath.Dir(path), ".aws-sam", "build", "Fn", "bootstrap")
	for _, tt := range []struct{ create, want string }{{"", built}, {own, own}, {built, built}} {
		if tt.create != "" {
			if err := os.MkdirAll(filepath.Dir(tt.create), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(tt.create, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tpl, err := sam.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		functions, err := tpl.Functions()
		if err != nil || functions[0].Bootstrap != tt.want {
			t.Errorf("bootstrap is %s, %v; want %s", functions[0].Bootstrap, err, tt.want)
		}
	}
}

// Files that lie in CodeUri are deployed with it, unless sam build makes the folder anew.
func TestFilesOfCodeUriStayBesideABuiltProgram(t *testing.T) {
	t.Parallel()
	for metadata, deployed := range map[string]bool{
		"{SkipBuild: true, GoPackage: ./cmd/fn}": true, "{GoPackage: ./cmd/fn}": false, "{BuildMethod: go1.x}": false,
	} {
		path := write(t, "Resources:\n  Fn:\n    Type: AWS::Serverless::Function\n    Metadata: "+metadata+"\n    Properties: {CodeUri: dist, Runtime: provided.al2023}\n")
		for _, there := range []bool{false, true} {
			want, dist := "", filepath.Join(filepath.Dir(path), "dist")
			if there {
				if err := os.Mkdir(dist, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if deployed && there {
				want = dist
			}
			tpl, err := sam.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if functions, err := tpl.Functions(); err != nil || functions[0].Root != want {
				t.Errorf("%s, dist there: %t: files in %q, %v; want %q", metadata, there, functions[0].Root, err, want)
			}
		}
	}
}

func TestWhatIsNotRunHereIsRefused(t *testing.T) {
	t.Parallel()
	const function = "Resources:\n  Fn:\n    Type: AWS::Serverless::Function\n    Properties:\n      CodeUri: dist\n      Runtime: provided.al2023\n"
	event := func(s string) string { return function + "      Events: {E: " + s + "}\n" }
	environment := func(s string) string { return function + "      Environment: {Variables: {" + s + "}}\n" }
	scaled := func(n string) string {
		return "{Type: SQS, Properties: {Queue: !GetAtt Q.Arn, ScalingConfig: {MaximumConcurrency: " + n + "}}}}\n  Q: {Type: AWS::SQS::Queue"
	}
	authorizer := func(s string) string {
		return event("{Type: HttpApi, Properties: {Path: /, Method: GET}}") +
			"Globals: {HttpApi: {Auth: {DefaultAuthorizer: A, Authorizers: {A: " + s + "}}}}\n"
	}
	tests := map[string]struct{ template, want string }{
		"another runtime":     {strings.Replace(function, "provided.al2023", "python3.13", 1), `Fn.Runtime (line 6): "python3.13"`},
		"an image":            {function + "      PackageType: Image\n", "no images"},
		"timeout of letters":  {function + "      Timeout: soon\n", `Fn.Timeout (line 7): "soon" is not a whole number`},
		"a reserved variable": {environment("AWS_REGION: eu-west-1"), "Fn.Environment.Variables.AWS_REGION (line 7): refused by Lambda: the name is reserved"},
		"a variable's letter": {environment("A: b"), "refused by Lambda: a name has two or more letters, digits and underscores, and begins with a letter"},
		"5 KB of variables":   {environment("LONG: " + strings.Repeat("x", 4087)), "Fn.Environment.Variables (line 7): refused by Lambda: 4098 bytes as JSON, at most 4096"},
		"no concurrency":      {function + "      ReservedConcurrentExecutions: 0\n", "could never run"},
		"format 1.0":          {event(`{Type: HttpApi, Properties: {Path: /, Method: GET, PayloadFormatVersion: "1.0"}}`), "only format 2.0"},
		"an API that isn't":   {event("{Type: HttpApi, Properties: {ApiId: elsewhere}}"), `"elsewhere" is no AWS::Serverless::HttpApi`},
		"a queue elsewhere":   {event("{Type: SQS, Properties: {Queue: arn:aws:sqs:us-east-1:1:q}}"), "arn:aws:sqs:us-east-1:1:q is no queue of this template"},
		"one at a time":       {event(scaled("1")), "Fn.Events.E.Properties.ScalingConfig.MaximumConcurrency (line 7): 1 is not within 2 and 1000"},
		"no stream":           {event("{Type: DynamoDB, Properties: {StartingPosition: LATEST}}"), "Stream is missing"},
		"tumbling windows":    {event("{Type: DynamoDB, Properties: {Stream: s, StartingPosition: LATEST, TumblingWindowInSeconds: 5}}"), "tumbling windows"},
		"IAM":                 {event("{Type: HttpApi, Properties: {Path: /, Method: GET, Auth: {Authorizer: AWS_IAM}}}"), "Fn.Events.E.Properties needs authorizer AWS_IAM"},
		"Cognito":             {authorizer("{UserPoolArn: x}"), "only Lambda and JWT authorizers"},
		"a token in a query":  {authorizer("{JwtConfiguration: {issuer: i}, IdentitySource: $request.querystring.t}"), "only a header"},
		"queue of a bad name": {"Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties: {QueueName: q, FifoQueue: true}\n", "ends in .fifo"},
		"table without a key": {"Resources:\n  T: {Type: AWS::DynamoDB::Table}\n", "T: KeySchema is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tpl := load(t, tt.template)
			functions, err := tpl.Functions()
			if err == nil {
				_, err = tpl.APIs(functions)
			}
			if err == nil {
				_, err = tpl.Tables()
			}
			if err == nil {
				_, err = tpl.Queues()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTenancy(t *testing.T) {
	t.Parallel()
	const function = "Resources:\n  Fn:\n    Type: AWS::Serverless::Function\n    Properties:\n      CodeUri: dist\n      Runtime: provided.al2023\n"
	const config = "      TenancyConfig: {TenantIsolationMode: PER_TENANT}\n"
	for name, tt := range map[string]struct {
		template  string
		perTenant bool
		notes     int
	}{
		"without":     {function, false, 0},
		"with":        {function + config, true, 0},
		"with events": {function + config + "      Events: {E: {Type: Schedule, Properties: {Schedule: rate(1 minute)}}}\n", true, 1},
	} {
		path := filepath.Join(t.TempDir(), "template.yaml")
		if err := os.WriteFile(path, []byte(tt.template), 0o600); err != nil {
			t.Fatal(err)
		}
		parsed, err := sam.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsed.Functions()
		if err != nil || len(got) != 1 || got[0].PerTenant != tt.perTenant || len(got[0].Notes) != tt.notes {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}
