package main

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type statement struct {
	Sid      string
	Action   list
	Resource list
}

// list is a text, or several.
type list []string

func (l *list) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*l = list{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

func statements(t *testing.T) []statement {
	t.Helper()
	var p struct{ Statement []statement }
	if err := json.Unmarshal([]byte(Policy("us-gov-west-1")), &p); err != nil {
		t.Fatal(err)
	}
	return p.Statement
}

func allowed(all []statement, action string) bool {
	return slices.ContainsFunc(all, func(s statement) bool {
		return slices.ContainsFunc(s.Action, func(a string) bool { ok, _ := path.Match(a, action); return ok })
	})
}

// The policy allows each call of the program, and no other names than a run's.
func TestPolicy(t *testing.T) {
	t.Parallel()
	all := statements(t)
	for _, c := range calls() {
		for _, action := range c.actions {
			if !allowed(all, action) {
				t.Errorf("%s of %s needs %s", c.operation, c.service, action)
			}
		}
	}
	if allowed(all, "ec2:RunInstances") || allowed(all, "cloudformationx:CreateStack") {
		t.Error("the policy allows everything")
	}
	for _, s := range all {
		for _, r := range s.Resource {
			if s.Sid != "Nameless" && !strings.Contains(r, Prefix+"*") && !strings.HasSuffix(r, "transform/Serverless-2016-10-31") {
				t.Errorf("%s allows %s", s.Sid, r)
			}
		}
		if s.Sid == "Nameless" && slices.ContainsFunc(s.Action, func(a string) bool { return strings.HasSuffix(a, "*") }) {
			t.Errorf("%s allows %v on everything", s.Sid, s.Action)
		}
	}
	if len(Policy("us-gov-west-1")) > 6144 {
		t.Errorf("%d characters are too many for a managed policy", len(Policy("us-gov-west-1")))
	}
}

// A policy names the resources of its Region's partition: in another one they aren't the run's.
func TestPolicyOfAPartition(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{"us-east-1": "arn:aws:s3:::", "cn-north-1": "arn:aws-cn:s3:::", "us-gov-west-1": "arn:aws-us-gov:s3:::"} {
		if got := Policy(region); !strings.Contains(got, want) || strings.Count(got, `"arn:`) != strings.Count(got, strings.TrimSuffix(want, "s3:::")) {
			t.Errorf("in %s: %s, want ARNs as %s", region, got, want)
		}
	}
}

// services are the services of resource types, by their names in the template.
var services = map[string]string{
	"ApiGatewayV2": "apigateway:POST", "CloudFormation": "cloudformation:CreateStack", "CloudWatch": "cloudwatch:PutMetricAlarm", "DynamoDB": "dynamodb:CreateTable",
	"IAM": "iam:CreateRole", "Lambda": "lambda:CreateFunction", "Logs": "logs:CreateLogGroup", "S3": "s3:CreateBucket", "SQS": "sqs:CreateQueue",
	"Scheduler": "scheduler:CreateSchedule", "Serverless": "lambda:CreateFunction",
}

type resources struct {
	Resources map[string]struct {
		Type                string         `yaml:"Type"`
		DeletionPolicy      string         `yaml:"DeletionPolicy"`
		UpdateReplacePolicy string         `yaml:"UpdateReplacePolicy"`
		Properties          map[string]any `yaml:"Properties"`
	} `yaml:"Resources"`
}

// Every resource goes with its stack, each function has a cap, and each service is in the policy.
func TestTemplates(t *testing.T) {
	t.Parallel()
	all := statements(t)
	functions := 0
	for _, packaged := range []bool{true, false} {
		for text, where := range map[string][2]string{
			Template(packaged): {"    CodeUri: {Bucket: !Ref CodeBucket, Key: program.zip}\n", "    CodeUri: dist/program/\n"},
			Nested(packaged):   {"    Description: The zip file's key.\n    Type: String\n    Default: program.zip\n", "      Code: dist/program/\n"},
		} {
			if strings.Contains(text, where[0]) != packaged || strings.Contains(text, where[1]) == packaged || !packaged && strings.Contains(text, "CodeBucket: !Ref") || strings.Contains(text, "cmd/samekey-worker #") {
				t.Errorf("packaged: %t, and the program is elsewhere:\n%s", packaged, text)
			}
		}
		for _, text := range []string{Template(packaged), Nested(packaged)} {
			var tmpl resources
			if err := yaml.Unmarshal([]byte(text), &tmpl); err != nil {
				t.Fatal(err)
			}
			for id, r := range tmpl.Resources {
				if r.DeletionPolicy != "" && r.DeletionPolicy != "Delete" || r.UpdateReplacePolicy != "" && r.UpdateReplacePolicy != "Delete" {
					t.Errorf("%s stays", id)
				}
				action := services[strings.Split(r.Type, "::")[1]]
				if action == "" || !allowed(all, action) {
					t.Errorf("%s is a %s, which the policy doesn't allow", id, r.Type)
				}
				if strings.HasSuffix(r.Type, "::Function") {
					functions++
					if _, ok := r.Properties["ReservedConcurrentExecutions"].(int); !ok {
						t.Errorf("%s has no cap of its concurrency", id)
					}
				}
				if recovery, ok := r.Properties["PointInTimeRecoverySpecification"].(map[string]any); ok && recovery["PointInTimeRecoveryEnabled"] != false {
					t.Errorf("%s leaves a backup", id)
				}
				if r.Type == "AWS::CloudWatch::Dashboard" || id == "SemanticsTable" && r.Properties["StreamSpecification"] == nil {
					t.Errorf("%s is a %s", id, r.Type)
				}
			}
		}
	}
	if functions != 2*6 {
		t.Errorf("%d functions", functions)
	}
}

// Each claim has all that a report needs, and a name of its own.
func TestClaims(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range Claims() {
		if c.Name == "" || c.Text == "" || names[c.Name] || c.Cost == (Cost{}) || c.Page == "" {
			t.Errorf("%+v isn't complete, or there twice", c)
		}
		names[c.Name] = true
	}
}
