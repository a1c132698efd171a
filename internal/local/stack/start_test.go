package stack

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestStartRefusesBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "template.yaml")
	const head = "Resources:\n  Fn:\n    Type: AWS::Serverless::Function\n    Metadata: {SkipBuild: true}\n    Properties:\n      Runtime: provided.al2023\n"
	const queue = head + "      CodeUri: dist\n      Timeout: 31\n      Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}\n  Q:\n    Type: AWS::SQS::Queue\n"
	for name, tt := range map[string]struct {
		template string
		opts     Options
		want     string
	}{
		"a short visibility":  {template: queue, want: "event E of function Fn: the visibility timeout of queue Q, 30s, is below the function's timeout, 31s"},
		"no binary":           {template: head + "      CodeUri: dist\n", want: "make build"},
		"no function":         {template: "Resources: {T: {Type: \"AWS::SNS::Topic\"}}", want: "the template has no function"},
		"a bad template":      {template: head + "      CodeUri: dist\n      Timeout: x\n", want: `Fn.Timeout (line 8): "x" is not a whole number`},
		"an unknown -env URL": {template: head, opts: Options{Processes: []Process{{Name: "p"}}}, want: "process p has no command"},
	} {
		if err := os.WriteFile(path, []byte(tt.template), 0o600); err != nil {
			t.Fatal(err)
		}
		tt.opts.Template, tt.opts.Logs = path, io.Discard
		_, err := Start(t.Context(), tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestPortThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	world := Process{Name: "world", Command: []string{worldProgram}, URL: fmt.Sprintf("http://127.0.0.1:%d", port)}
	for _, tt := range []struct {
		opts        Options
		names, flag string
	}{
		{Options{APIPort: port}, fmt.Sprintf("port %d", port), "--api-port"},
		{Options{ControlPort: port}, fmt.Sprintf("port %d", port), "--control-port"},
		{Options{Processes: []Process{world}}, "process world: listen", "--process-url"}, // or it would be taken for the world
	} {
		tt.opts.Template, tt.opts.Logs = filepath.Join(stackDir, "template.yaml"), io.Discard
		_, err := Start(t.Context(), tt.opts)
		remedy := "(choose another by " + tt.flag + ", or 0 for any free port)"
		if err == nil || !strings.Contains(err.Error(), tt.names) || !strings.HasSuffix(err.Error(), remedy) {
			t.Errorf("error %v, want %q and %q", err, tt.names, remedy)
		}
	}
}

func TestTableOfAnotherShapeIsRefused(t *testing.T) {
	db := dynamotest.Start(t)
	t.Setenv(envDynamoDB, db.Endpoint)
	_, err := db.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: new("other-Table"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: new("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: new("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(t.TempDir(), "template.yaml")
	text := `
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
  Fn:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties: {Runtime: provided.al2023, CodeUri: ` + filepath.Join(stackDir, "dist") + `}
`
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Template: template, StackName: "other", Logs: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "choose another --stack-name") {
		t.Fatalf("error %v", err)
	}
	// The same table twice is one table.
	for range 2 {
		stack, err := Start(t.Context(), Options{Template: template, StackName: "same", Logs: io.Discard, TTL: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := stack.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
