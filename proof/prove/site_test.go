package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

// A stack on this machine knows its parts, and ends. This one has a table, and a function that nobody calls.
func TestDeployedHere(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamotest.Start(t).Endpoint)
	s, m := &Machine{Logs: t.Output()}, &meter{most: Cost{Reads: 1 << 20}}
	if _, _, packaged := s.Program(); packaged || s.Remove(t.Context()) != nil {
		t.Error("nothing was deployed, and from no bucket")
	}
	if _, err := s.Deploy(t.Context(), "machine", time.Time{}, App{Dir: t.TempDir()}, m); err == nil || !strings.Contains(err.Error(), templateFile) {
		t.Errorf("without a template: %v", err)
	}
	app := App{Dir: files(t, map[string]string{templateFile: "Resources:\n  Records:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      TableName: machine-records\n      BillingMode: PAY_PER_REQUEST\n" +
		"      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]\n      KeySchema: [{AttributeName: pk, KeyType: HASH}]\n" +
		"  Plain:\n    Type: AWS::Serverless::Function\n    Properties: {CodeUri: dist/program/, Handler: bootstrap, Runtime: provided.al2023}\n"})}
	self, err := os.Executable()
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(app.Dir, "dist/program"), 0o700), os.Symlink(self, filepath.Join(app.Dir, bootstrap)))
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Deploy(t.Context(), "machine", time.Time{}, app, m)
	if err != nil {
		t.Fatal(err)
	}
	want := &Place{
		StandIn: s.StandIn(), Local: true, Timeout: 2 * time.Second, Rides: "machine-rides", Audit: "machine-audit", Provider: "machine-provider", Semantics: "machine-semantics", Stack: "machine", Records: "machine-records",
		Plain: "machine-plain", Worker: "Samekey.Worker", Swept: 1000,
	}
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(Place{}), cmpopts.IgnoreFields(Place{}, "API", "HTTP", "DB", "Streams", "Lambda", "GivenUp", "Hidden")); diff != "" {
		t.Error(diff)
	}
	ready := s.running.Ready()
	streams, own := p.Streams.Options().HTTPClient.(*http.Client)
	if !own || fmt.Sprintf("%T", streams.Transport) != "mendstream.transport" || p.API != ready.API || aws.ToString(p.Lambda.Options().BaseEndpoint) != ready.Lambda {
		t.Errorf("%+v, %+v", p.Streams.Options(), p.Lambda.Options())
	}
	if _, err := p.listed(t.Context()); err == nil || m.total().Reads == 0 {
		t.Errorf("a table without an index is listed, or nobody counts it: %v", err)
	}
	if all, err := p.GivenUp(t.Context()); all != nil || err != nil {
		t.Error(all, err)
	}
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := p.GivenUp(t.Context()); err == nil {
		t.Error("the control server is there still")
	}
}

// What was given up is asked of the control server, and the tickets of the queue that isn't that of dead letters.
func TestPartsOfTheMachine(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`[{"record":{"a":1}},{"record":{"b":2}}]`: `[{"a":1} {"b":2}] <nil>`, `[]`: "[] <nil>", `{`: "[] unexpected EOF",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/failed" {
				_, _ = io.WriteString(w, answer)
			}
		}))
		all, err := givenUp(t.Context(), srv.URL)
		if got := fmt.Sprintf("%s %v", all, err); got != want {
			t.Errorf("%s: %s", answer, got)
		}
		srv.Close()
		if _, err := givenUp(t.Context(), srv.URL); err == nil {
			t.Error("nobody answered")
		}
	}
	if _, err := givenUp(t.Context(), ":"); err == nil {
		t.Error("there is no such address")
	}
	for urls, want := range map[string]string{
		"q/Tickets": "1 <nil>",
		"q/Receipts q/TicketsDeadLetters q/Tickets q/": "1 <nil>",
		"q/TicketsDeadLetters q/Receipts":              "0 no queue of [q/TicketsDeadLetters q/Receipts] is that of tickets",
		"denied":                                       "0 AccessDenied: no",
	} {
		client := sqs.New(sqs.Options{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("queues", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
				switch in := in.Parameters.(type) {
				case *sqs.ListQueuesInput:
					if out.Result = (&sqs.ListQueuesOutput{QueueUrls: strings.Fields(urls)}); urls == "denied" {
						err = refusal("AccessDenied", "no")
					}
				case *sqs.GetQueueAttributesInput:
					n := "2"
					if *in.QueueUrl == "q/Tickets" {
						n = "1"
					}
					out.Result = &sqs.GetQueueAttributesOutput{Attributes: map[string]string{string(in.AttributeNames[0]): n}}
				}
				return out, meta, err
			}), middleware.After)
		}}})
		n, err := tickets(t.Context(), client)
		if got := fmt.Sprint(n, " ", err); got != want {
			t.Errorf("%s: %s", urls, got)
		}
	}
}

// A client of the API uses no connection again, and leaves that of others as it is.
func TestClient(t *testing.T) {
	t.Parallel()
	own, is := client().Transport.(*http.Transport)
	if others := http.DefaultTransport.(*http.Transport); !is || own == others || !own.DisableKeepAlives || others.DisableKeepAlives {
		t.Errorf("%+v", own)
	}
}
