package sam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/sam"
)

// outer nests inner and hands it the URL of a queue, which is known late.
const outer = `
Resources:
  Inner:
    Type: AWS::Serverless::Application
    Properties:
      Location: parts/inner.yaml
      Parameters:
        Sink: !Sub receipt=${Receipts}
        Functions: [!GetAtt Api.Arn, b]
  Receipts: {Type: AWS::SQS::Queue}
  Remote:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: "https://example.com/t.yaml"}
  Api:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties:
      FunctionName: !Sub ${AWS::StackName}-api
      CodeUri: dist/api
      Runtime: provided.al2023
      Environment: {Variables: {TABLE: !GetAtt Inner.Outputs.Table}}
`

// inner is plain CloudFormation.
const inner = `
Parameters:
  Sink: {Type: String, Default: ""}
  Functions: {Type: CommaDelimitedList, Default: ""}
  Size: {Type: Number, Default: 7}
Conditions:
  HasSink: !Not [!Equals [!Ref Sink, ""]]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: pk, KeyType: HASH}], StreamSpecification: {StreamViewType: NEW_IMAGE}}
  Tickets:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}}
  Dead: {Type: AWS::SQS::Queue, Condition: HasSink}
  Worker:
    Type: AWS::Lambda::Function
    Metadata: {SkipBuild: true}
    Properties:
      Code: dist/worker
      Runtime: provided.al2023
      TracingConfig: {Mode: Active}
      Environment: {Variables: {SINK: !Ref Sink, FUNCTIONS: !Join [",", !Ref Functions], SIZE: !Ref Size, TICKETS: !Ref Tickets}}
  FromStream:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {FunctionName: !Ref Worker, EventSourceArn: !GetAtt Table.StreamArn, StartingPosition: TRIM_HORIZON, BatchSize: 5, Enabled: false}
  FromQueue:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {FunctionName: !GetAtt Worker.Arn, EventSourceArn: !GetAtt Tickets.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}
  FromElsewhere:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {FunctionName: !Ref Worker, EventSourceArn: "arn:aws:kinesis:us-east-1:1:stream/s"}
  Hourly:
    Type: AWS::Scheduler::Schedule
    Properties: {ScheduleExpression: rate(1 hour), Target: {Arn: !GetAtt Worker.Arn, Input: '{"a":1}'}}
  Elsewhere:
    Type: AWS::Scheduler::Schedule
    Properties: {ScheduleExpression: rate(1 hour), Target: {Arn: "arn:aws:states:us-east-1:1:stateMachine:m"}}
  Invokes:
    Type: AWS::Lambda::EventInvokeConfig
    Properties: {FunctionName: !Ref Worker, MaximumRetryAttempts: 0}
Outputs:
  Table: {Value: !Ref Table}
`

// nest writes both templates and returns the path of the outer one.
func nest(t *testing.T, outer, inner string) string {
	t.Helper()
	path := write(t, outer)
	parts := filepath.Join(filepath.Dir(path), "parts")
	if err := os.Mkdir(parts, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parts, "inner.yaml"), []byte(inner), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNestedTemplateIsRead(t *testing.T) {
	t.Parallel()
	path := nest(t, outer, inner)
	tpl, err := sam.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	tpl.Set("Receipts", "", "http://receipts")
	tpl.Set("Inner.Tickets", "", "http://tickets")
	tpl.Set("Inner.Table", "StreamArn", "the:stream")
	functions, err := tpl.Functions()
	if err != nil {
		t.Fatal(err)
	}
	worker := sam.Function{
		ID: "Inner.Worker", Name: "local-Inner-Worker", ARN: "arn:aws:lambda:us-east-1:123456789012:function:local-Inner-Worker",
		Bootstrap: filepath.Join(filepath.Dir(path), "parts", "dist", "worker", "bootstrap"), Timeout: 3 * time.Second, MemoryMB: 128,
		Environment: map[string]string{
			"SINK": "receipt=http://receipts", "SIZE": "7", "TICKETS": "http://tickets",
			"FUNCTIONS": "arn:aws:lambda:us-east-1:123456789012:function:local-api,b",
		},
		Async: sam.Async{Retries: 0, MaxAge: 6 * time.Hour},
		Events: []sam.Event{
			{Name: "FromStream", Stream: &sam.StreamEvent{
				ARN: "the:stream", StartingPosition: "TRIM_HORIZON", Batching: sam.Batching{BatchSize: 5, Disabled: true},
			}},
			{Name: "FromQueue", Queue: &sam.QueueEvent{Queue: "Inner.Tickets", Batching: sam.Batching{ReportItemFailures: true}}},
			{Name: "Hourly", Schedule: &sam.ScheduleEvent{Name: "Hourly", Expression: "rate(1 hour)", Input: `{"a":1}`}},
		},
		Notes: []string{"event source FromElsewhere has no effect: samekey local doesn't send arn:aws:kinesis:us-east-1:1:stream/s"},
	}
	if len(functions) != 2 || functions[0].Environment["TABLE"] != "local-Inner-Table" {
		t.Fatalf("functions are %+v", functions)
	}
	if diff := cmp.Diff(worker, functions[1]); diff != "" {
		t.Errorf("the worker (-want +got):\n%s", diff)
	}
	queues, err := tpl.Queues()
	if err != nil || len(queues) != 3 || queues[1].ID != "Inner.Tickets" || queues[1].Redrive.Queue != "Inner.Dead" {
		t.Errorf("queues are %+v, %v", queues, err)
	}
	tables, err := tpl.Tables()
	if err != nil || len(tables) != 1 || tables[0].ID != "Inner.Table" {
		t.Errorf("tables are %+v, %v", tables, err)
	}
	ignored := []sam.Resource{{ID: "Remote", Type: "AWS::CloudFormation::Stack", Line: 11}, {ID: "Inner.Elsewhere", Type: "AWS::Scheduler::Schedule", Line: 36}}
	if diff := cmp.Diff(ignored, tpl.Ignored()); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

func TestNestedTemplateThatCantBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ outer, inner, want string }{
		"no such parameter": {strings.Replace(outer, "Sink:", "Sinks:", 1), inner, "inner.yaml: there is no parameter Sinks, which Inner sets"},
		"no file":           {strings.Replace(outer, "parts/inner.yaml", "parts/none.yaml", 1), inner, "none.yaml: no such file"},
		"itself":            {strings.Replace(outer, "parts/inner.yaml", "template.yaml", 1), inner, "nested too deeply"},
		"mapping of nobody": {outer, strings.Replace(inner, "FunctionName: !Ref Worker, EventSourceArn", "FunctionName: nobody, EventSourceArn", 1), "FromStream.FunctionName (line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := tt.outer
			if name == "itself" {
				outer = strings.NewReplacer("        Sink: !Sub receipt=${Receipts}\n", "", "        Functions: [!GetAtt Api.Arn, b]\n", "", "      Parameters:\n", "").Replace(outer)
			}
			tpl, err := sam.Load(nest(t, outer, tt.inner))
			if err == nil {
				tpl.Set("Receipts", "", "http://receipts")
				tpl.Set("Inner.Tickets", "", "http://tickets")
				tpl.Set("Inner.Table", "StreamArn", "the:stream")
				_, err = tpl.Functions()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
