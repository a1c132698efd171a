package deploy

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/dynamo"
)

// template is the stack, as far as these tests look at it.
type template struct {
	Parameters map[string]struct {
		Default *string `yaml:"Default"`
	} `yaml:"Parameters"`
	Resources map[string]struct {
		Type                string `yaml:"Type"`
		DependsOn           string `yaml:"DependsOn"`
		DeletionPolicy      string `yaml:"DeletionPolicy"`
		UpdateReplacePolicy string `yaml:"UpdateReplacePolicy"`
		Properties          struct {
			Code                             any    `yaml:"Code"`
			DeletionProtectionEnabled        string `yaml:"DeletionProtectionEnabled"`
			PointInTimeRecoverySpecification struct {
				PointInTimeRecoveryEnabled bool `yaml:"PointInTimeRecoveryEnabled"`
			} `yaml:"PointInTimeRecoverySpecification"`
			DashboardBody yaml.Node `yaml:"DashboardBody"`
			FunctionName  string    `yaml:"FunctionName"`
			TracingConfig struct {
				Mode string `yaml:"Mode"`
			} `yaml:"TracingConfig"`
		} `yaml:"Properties"`
	} `yaml:"Resources"`
	Outputs map[string]any `yaml:"Outputs"`
}

func read(t *testing.T, text string) template {
	t.Helper()
	var out template
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Nobody loses records by a default.
func TestDefaultsAreSafe(t *testing.T) {
	t.Parallel()
	all := read(t, Nested())
	table := all.Resources["Table"]
	if p := table.Properties; p.DeletionProtectionEnabled != "DeletionProtection" || !p.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled {
		t.Errorf("the table has deletion protection %s, point-in-time recovery %v", p.DeletionProtectionEnabled, p.PointInTimeRecoverySpecification)
	}
	if d := all.Parameters["DeletionProtection"].Default; d == nil || *d != "true" {
		t.Errorf("DeletionProtection is %v by default", d)
	}
	for _, id := range []string{"Table", "FailedBucket"} {
		if r := all.Resources[id]; r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s has the policies %q and %q", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
	for name, p := range all.Parameters {
		if p.Default == nil {
			t.Errorf("parameter %s has no default", name)
		}
	}
}

// Lambda makes no function with traces whose role may not write them, and no mapping whose role may not read its source:
// CloudFormation makes the policy first.
func TestPermissionsComeFirst(t *testing.T) {
	t.Parallel()
	mappings := 0
	for id, r := range read(t, Nested()).Resources {
		if r.Properties.TracingConfig.Mode == "Active" && r.DependsOn != "WorkerPolicy" {
			t.Errorf("%s is made before its permissions", id)
		}
		if r.Type == "AWS::Lambda::EventSourceMapping" {
			mappings++
			if r.Properties.FunctionName != "Worker" { // whose policy is there
				t.Errorf("%s is of %s", id, r.Properties.FunctionName)
			}
		}
	}
	_, policy, _ := strings.Cut(Nested(), "\n  WorkerPolicy:\n")
	policy, _, _ = strings.Cut(policy, "\n\n  #")
	for _, action := range []string{"xray:PutTraceSegments", "dynamodb:GetRecords", "sqs:ReceiveMessage"} {
		if !strings.Contains(policy, "- "+action+"\n") {
			t.Errorf("WorkerPolicy has no %s", action)
		}
	}
	if mappings != 2 {
		t.Errorf("%d mappings", mappings)
	}
}

// Another account's schedule can't use the worker's role, and a function may be held to
// the keys of its namespace.
func TestRolesAreNarrow(t *testing.T) {
	t.Parallel()
	_, schedule, _ := strings.Cut(Nested(), "\n  ScheduleRole:\n")
	schedule, _, _ = strings.Cut(schedule, "      Policies:\n")
	_, later, _ := strings.Cut(Nested(), "\n  LaterRole:\n")
	later, _, _ = strings.Cut(later, "      Policies:\n")
	_, function, _ := strings.Cut(Nested(), "\n  FunctionPolicy:\n")
	function, _, _ = strings.Cut(function, "\n  Worker:\n")
	before, rest, _ := strings.Cut(schedule, "            # ")
	_, condition, _ := strings.Cut(rest, "            Condition:")
	if later == "" || later != before+"            Condition:"+condition {
		t.Errorf("LaterRole trusts others than ScheduleRole does:\n%s", later)
	}
	for text, lines := range map[string][]string{
		schedule: {"aws:SourceAccount: !Ref AWS::AccountId\n", "aws:SourceArn: !Sub arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule-group/default\n"},
		function: {"Condition: !If\n              - HasLeadingKeys\n              - ForAllValues:StringLike:\n                  dynamodb:LeadingKeys: !Ref LeadingKeys\n"},
	} {
		for _, line := range lines {
			if strings.Count(text, line) != 1 {
				t.Errorf("not once %q in:\n%s", line, text)
			}
		}
	}
	// The condition is of the group that the schedules are in: they name none.
	if strings.Contains(Nested(), "\n      GroupName:") {
		t.Error("a schedule has a group of its own")
	}
}

// Only a stack with keys of KMS allows their use, for data keys of its own table: the
// functions may make and open them, and the worker only open them.
func TestKeysAreForThisTable(t *testing.T) {
	t.Parallel()
	all := Nested()
	_, function, _ := strings.Cut(all, "\n  FunctionPolicy:\n")
	function, _, _ = strings.Cut(function, "\n  Worker:\n")
	_, worker, _ := strings.Cut(all, "\n  KeysPolicy:\n")
	worker, _, _ = strings.Cut(worker, "\n  ScheduleRole:\n")
	for name, text := range map[string]string{"FunctionPolicy": function, "KeysPolicy": worker} {
		for _, line := range []string{"kms:Decrypt\n", "Resource: !Ref KmsKeyArns\n", "kms:EncryptionContext:table: !Ref Table\n"} {
			if strings.Count(text, line) != 1 {
				t.Errorf("%s has not one %q:\n%s", name, line, text)
			}
		}
	}
	if !strings.Contains(function, "- !If\n            - HasKeys\n            - Sid: Keys\n") || !strings.Contains(worker, "    Condition: HasKeys\n") {
		t.Error("a stack without keys has a policy for them")
	}
	if strings.Count(all, "kms:Decrypt") != 2 || strings.Count(all, "kms:Gen") != 1 || !strings.Contains(function, "kms:GenerateDataKey\n") {
		t.Error("others than the functions and the worker may use the keys")
	}
}

// FunctionPolicy allows each call of the store, and the buckets of quotas to a function
// that is held to the keys of its namespace.
func TestFunctionPolicyAllowsEachCall(t *testing.T) {
	t.Parallel()
	_, policy, _ := strings.Cut(Nested(), "\n  FunctionPolicy:\n")
	policy, _, _ = strings.Cut(policy, "\n  Worker:\n")
	without := map[string]string{
		"TransactWriteItems": "needs the rights to its parts",
		"BatchWriteItem":     "is a right to delete: the store writes item by item without it, and tells no fault",
	}
	for method := range reflect.TypeFor[dynamo.API]().Methods() {
		call := method.Name
		if allowed := strings.Contains(policy, "- dynamodb:"+call); allowed == (without[call] != "") {
			t.Errorf("%s is allowed: %t; it %s", call, allowed, without[call])
		}
	}
	_, quotas, _ := strings.Cut(policy, "- Sid: Quotas\n")
	if !strings.Contains(quotas, "Action: dynamodb:UpdateItem\n") || !strings.Contains(quotas, `dynamodb:LeadingKeys: ["samekey#quota#*"]`) {
		t.Errorf("the buckets of quotas are not allowed:\n%s", quotas)
	}
}

// What keeps an outage short and its end mild.
func TestOutagesAreBridged(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"MaximumRecordAgeInSeconds: 86400\n",                               // as long as the stream keeps a record
		"ScalingConfig:\n        MaximumConcurrency: !Ref TicketsAtOnce\n", // the API needs the account's concurrency
		`Input: '{"source":"aws.scheduler","task":"sweep"}'`,
	} {
		if strings.Count(Nested(), want) != 1 {
			t.Errorf("the stack has not once %q", want)
		}
	}
	if n := len(Standalone()); n >= 51200 {
		t.Errorf("the stack has %d bytes: CloudFormation takes 51,200 as a template's body", n)
	}
}

// The stack for other tools is the same but for the worker's program.
func TestStandaloneDiffersInTheProgramOnly(t *testing.T) {
	t.Parallel()
	for i := 0; i < len(replacements); i += 2 {
		if n := strings.Count(Nested(), replacements[i]); n != 1 {
			t.Errorf("the stack has %d times:\n%s", n, replacements[i])
		}
	}
	sam, other := read(t, Nested()), read(t, Standalone())
	if code := sam.Resources["Worker"].Properties.Code; code != "dist/samekey-worker/" {
		t.Errorf("nested, the worker's program is %v", code)
	}
	if code, ok := other.Resources["Worker"].Properties.Code.(map[string]any); !ok || code["S3Bucket"] != "CodeBucket" || code["S3Key"] != "CodeKey" {
		t.Errorf("standalone, the worker's program is %v", other.Resources["Worker"].Properties.Code)
	}
	if len(other.Parameters) != len(sam.Parameters)+2 || len(other.Resources) != len(sam.Resources) || len(other.Outputs) != len(sam.Outputs) {
		t.Errorf("standalone has %d parameters, %d resources, %d outputs", len(other.Parameters), len(other.Resources), len(other.Outputs))
	}
}
