package sam_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/local/sam"
)

// write puts a template into a folder of its own.
func write(t *testing.T, template string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, template string, optFns ...func(*sam.Options)) *sam.Template {
	t.Helper()
	tpl, err := sam.Load(write(t, template), optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// base has something of everything to refer to. The tests add the value of the
// variable XX.
const base = `
Parameters:
  Stage: {Type: String, Default: dev, AllowedValues: [dev, prod]}
  Count: {Type: Number, Default: 3}
  Names: {Type: CommaDelimitedList, Default: "a, b,c"}
  Unset: {Type: String}
  Stored: {Type: "AWS::SSM::Parameter::Value<String>", Default: /some/path}
Mappings:
  Sizes: {dev: {memory: 128, zones: [x, y]}}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsDev: !Not [Condition: IsProd]
  Both: !And [!Condition IsDev, !Equals [a, a]]
  Either: !Or [!Condition IsProd, !Equals [!Ref Count, 3]]
  Loop: !Not [Condition: Loop]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: pk, KeyType: HASH}]}
  Named:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-${Stage}", KeySchema: [{AttributeName: pk, KeyType: HASH}]}
  Circle:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Ref Circle, KeySchema: []}
  Queue:
    Type: AWS::SQS::Queue
    Properties: {FifoQueue: true}
  Bucket: {Type: "AWS::S3::Bucket"}
  Role: {Type: "AWS::IAM::Role"}
  Topic: {Type: "AWS::SNS::Topic"}
  Cluster: {Type: "AWS::RDS::DBCluster"}
  Bus: {Type: "AWS::Events::EventBus", Properties: {Name: !Sub "${Stage}-bus"}}
  Key: {Type: "AWS::SSM::Parameter", Properties: {Name: /shop/key, Type: String, Value: x}}
  Stream: {Type: "AWS::Kinesis::Stream", Properties: {Name: clicks, ShardCount: 1}}
  Pool: {Type: "AWS::Cognito::UserPool", Properties: {UserPoolName: users}}
  Gone: {Type: "AWS::SNS::Topic", Condition: IsProd}
  Api: {Type: "AWS::Serverless::HttpApi"}
  Fn:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties:
      CodeUri: dist/
      Runtime: provided.al2023
      Environment:
        Variables:
          XX: `

// variable resolves a value as a function's variable.
func variable(t *testing.T, value string, optFns ...func(*sam.Options)) (string, bool, error) {
	t.Helper()
	tpl := load(t, base+value, optFns...)
	tpl.Set("Queue", "", "http://127.0.0.1:9324/q")
	functions, err := tpl.Functions()
	if err != nil {
		return "", false, err
	}
	v, ok := functions[0].Environment["XX"]
	return v, ok, nil
}

func TestValuesAreResolved(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`plain`:                        "plain",
		`1.50`:                         "1.50",
		`"007"`:                        "007",
		`!Ref Stage`:                   "dev",
		`{Ref: Stage}`:                 "dev",
		`!Ref Count`:                   "3",
		`!Ref AWS::Region`:             "us-east-1",
		`!Ref AWS::StackName`:          "local",
		`!Ref Table`:                   "local-Table",
		`!Ref Queue`:                   "http://127.0.0.1:9324/q",
		`!GetAtt Queue.QueueName`:      "local-Queue.fifo",
		`!GetAtt Queue.Arn`:            "arn:aws:sqs:us-east-1:123456789012:local-Queue.fifo",
		`!GetAtt Named.Arn`:            "arn:aws:dynamodb:us-east-1:123456789012:table/local-dev",
		`!GetAtt [Fn, Arn]`:            "arn:aws:lambda:us-east-1:123456789012:function:local-Fn",
		`!Ref Fn.Version`:              "arn:aws:lambda:us-east-1:123456789012:function:local-Fn",
		`!Ref Bucket`:                  "local-bucket",
		`!GetAtt Bucket.Arn`:           "arn:aws:s3:::local-bucket",
		`!Ref Topic`:                   "arn:aws:sns:us-east-1:123456789012:local-Topic",
		`!GetAtt Role.Arn`:             "arn:aws:iam::123456789012:role/local-Role",
		`!Ref Bus`:                     "dev-bus",
		`!GetAtt Bus.Arn`:              "arn:aws:events:us-east-1:123456789012:event-bus/dev-bus",
		`!Ref Key`:                     "/shop/key",
		`!Sub "${Stream.Arn}"`:         "arn:aws:kinesis:us-east-1:123456789012:stream/clicks",
		`"{{resolve it"`:               "{{resolve it",
		`!Sub "${Stage}-${Table}"`:     "dev-local-Table",
		`!Sub "${Table.Arn}/x"`:        "arn:aws:dynamodb:us-east-1:123456789012:table/local-Table/x",
		`!Sub "${!Stage} $x ${Count}"`: "${Stage} $x 3",
		`!Sub ["${A}${Stage}${B.c}", {A: !Ref Count, B.c: x}]`:                       "3devx",
		`{"Fn::Sub": "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}"}`: "https://Api.execute-api.us-east-1.amazonaws.com",
		`!Join ["-", [a, !Ref Stage, 1]]`:                                            "a-dev-1",
		`!Join [",", !Ref Names]`:                                                    "a,b,c",
		`!Join [",", [a, !If [IsProd, b, !Ref AWS::NoValue], c]]`:                    "a,c",
		`!Select [1, !Ref Names]`:                                                    "b",
		`!Select ["0", !Split [":", "p:q"]]`:                                         "p",
		`!FindInMap [Sizes, !Ref Stage, memory]`:                                     "128",
		`!Select [1, !FindInMap [Sizes, dev, zones]]`:                                "y",
		`!FindInMap [Sizes, dev, nothing, {DefaultValue: d}]`:                        "d",
		`!If [IsProd, p, d]`:                                                         "d",
		`!If [Both, both, d]`:                                                        "both",
		`!If [Either, either, d]`:                                                    "either",
		`!If [IsDev, !If [IsProd, x, !Ref Count], y]`:                                "3",
		`!Base64 hi`: "aGk=",
	}
	for value, want := range tests {
		got, _, err := variable(t, value)
		if err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", value, got, err, want)
		}
	}
}

func TestNoValueIsNoVariable(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`!Ref AWS::NoValue`, `!If [IsProd, x, !Ref AWS::NoValue]`, `null`} {
		if got, there, err := variable(t, value); there || err != nil {
			t.Errorf("%s is %q, %v", value, got, err)
		}
	}
}

func TestWhatCannotBeKnownIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`!Ref Nothing`:                "there is no parameter or resource Nothing",
		`!Ref Unset`:                  "-parameter Unset=",
		`!Ref Stored`:                 "-parameter Stored=",
		`!Ref Gone`:                   "its condition is false",
		`!Ref Circle`:                 "in a circle",
		`!GetAtt Cluster.Endpoint`:    "-env",
		`!Ref Pool`:                   "Ref of Pool (AWS::Cognito::UserPool) is not known here: make it a parameter", // an id that only AWS knows
		`!GetAtt Pool.Arn`:            "Arn of Pool (AWS::Cognito::UserPool) is not known here",
		`"{{resolve:ssm:/shop/key}}"`: "the dynamic reference {{resolve:ssm:/shop/key}} is not known here: make it a parameter",
		`!Sub "x{{resolve:secretsmanager:${Stage}:SecretString:k}}"`: "{{resolve:secretsmanager:dev:SecretString:k}}",
		`!GetAtt Table.StreamArn`:                                    "StreamSpecification",
		`!ImportValue other-stack`:                                   "exports of other stacks",
		`!Transform {Name: x}`:                                       "Fn::Transform: not known here",
		`!FindInMap [Sizes, prod, memory]`:                           "nothing at Sizes.prod.memory",
		`!Select [5, !Ref Names]`:                                    "no element 5 in a list of 3",
		`!Sub "${Names}"`:                                            "${Names}: a list or mapping where a text is wanted",
		`!If [Unknown, a, b]`:                                        "there is no condition Unknown",
		`!If [Loop, a, b]`:                                           "condition Loop refers to itself",
		`[a, b]`:                                                     "a list or mapping where a text is wanted",
		`!Join [a]`:                                                  "takes a delimiter and a list",
	}
	for value, want := range tests {
		_, _, err := variable(t, value)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", value, err, want)
			continue
		}
		if !strings.Contains(err.Error(), "Fn.Environment.Variables.XX (line 47)") {
			t.Errorf("%s: error %v doesn't tell where", value, err)
		}
	}
}

func TestParametersAndVariablesFromOutside(t *testing.T) {
	t.Parallel()
	got, _, err := variable(t, `!Join ["+", [!Ref Stage, !Ref Unset, !Ref Stored, !Join ["", !Ref Names], !If [IsProd, p, d]]]`, func(o *sam.Options) {
		o.Parameters = map[string]string{"Stage": "prod", "Unset": "u", "Stored": "s", "Names": "x,y"}
	})
	if err != nil || got != "prod+u+s+xy+p" {
		t.Errorf("%q, %v", got, err)
	}
	got, _, err = variable(t, `!ImportValue nowhere`, func(o *sam.Options) { o.Environment = map[string]string{"XX": "given"} })
	if err != nil || got != "given" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBadTemplatesAreRefused(t *testing.T) {
	t.Parallel()
	withParameter := func(name, value string) func(*sam.Options) {
		return func(o *sam.Options) { o.Parameters = map[string]string{name: value} }
	}
	tests := map[string]struct {
		template string
		opt      func(*sam.Options)
		want     string
	}{
		"no YAML":              {template: "a: [", want: "yaml"},
		"a list":               {template: "- a", want: "not a mapping"},
		"no type":              {template: "Resources: {A: {}}", want: "resource A has no Type"},
		"a key twice":          {template: "Resources:\n  A: {Type: T}\n  A: {Type: T}", want: "line 3: A appears twice"},
		"an alias of itself":   {template: "Resources: &a\n  A: *a", want: "nested too deeply"},
		"an unknown condition": {template: "Resources: {A: {Type: T, Condition: C}}", want: "resource A: there is no condition C"},
		"an unknown parameter": {template: base + "x", opt: withParameter("Stag", "dev"), want: "there is no parameter Stag"},
		"a value not allowed":  {template: base + "x", opt: withParameter("Stage", "test"), want: `parameter Stage is "test", but must be one of dev, prod`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := tt.opt
			if opt == nil {
				opt = func(*sam.Options) {}
			}
			_, err := sam.Load(write(t, tt.template), opt)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := sam.Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("no error for a file that isn't there")
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	t.Parallel()
	tpl := load(t, `
Defaults: &defaults
  Runtime: provided.al2023
  Timeout: 7
Resources:
  Fn:
    Type: AWS::Serverless::Function
    Properties:
      <<: *defaults
      CodeUri: dist/
      Timeout: 9
`)
	functions, err := tpl.Functions()
	if err != nil {
		t.Fatal(err)
	}
	if got := functions[0].Timeout.Seconds(); got != 9 {
		t.Errorf("timeout is %v s", got)
	}
}
