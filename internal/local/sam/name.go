package sam

import (
	"errors"
	"fmt"
	"strings"
)

// These are the ids of the APIs that SAM makes for events that name no API.
const (
	implicitHTTP = "ServerlessHttpApi"
	implicitREST = "ServerlessRestApi"
)

// Template.ref returns the value of Ref for a pseudo parameter, a parameter or a
// resource.
func (t *Template) ref(name string) (any, error) {
	switch name {
	case "AWS::NoValue":
		return noValue{}, nil
	case "AWS::Region":
		return t.opts.Region, nil
	case "AWS::AccountId":
		return t.opts.AccountID, nil
	case "AWS::Partition":
		return "aws", nil
	case "AWS::URLSuffix":
		return "amazonaws.com", nil
	case "AWS::StackName":
		return t.opts.StackName, nil
	case "AWS::StackId":
		return t.arn("cloudformation", "stack/"+t.opts.StackName+"/local"), nil
	case "AWS::NotificationARNs":
		return []any{}, nil
	}
	if child(child(t.root, "Parameters"), name) != nil {
		return t.parameter(name)
	}
	if v, ok := t.known[attributeName{t.full(name), ""}]; ok {
		return v, nil
	}
	// SAM makes the resources FUNCTION.Version and FUNCTION.Alias for a function
	if id, suffix, ok := strings.Cut(name, "."); ok {
		r, there := t.resource(id)
		if there && isFunction(r.kind) && (suffix == "Alias" || suffix == "Version") {
			return t.attribute(id, "Arn")
		}
	}
	if name == implicitHTTP || name == implicitREST {
		return name, nil
	}
	r, ok := t.resource(name)
	if !ok {
		return nil, t.missing(name)
	}
	switch r.kind {
	case typeQueue:
		return t.later("url", name, fmt.Errorf("the URL of queue %s is not known yet", name))
	case typeApplication, typeStack:
		return t.arn("cloudformation", "stack/"+t.opts.StackName+"-"+name+"/local"), nil
	case "AWS::SNS::Topic", "AWS::StepFunctions::StateMachine", "AWS::Serverless::StateMachine", "AWS::SecretsManager::Secret":
		return t.attribute(name, "Arn")
	case typeHTTPAPI, typeRESTAPI:
		return name, nil
	}
	if nameProperty[r.kind] == "" {
		return nil, fmt.Errorf("the Ref of %s (%s) is not known here: %s", name, r.kind, remedy)
	}
	return t.name(r)
}

// remedy is the advice for a value that only AWS knows.
const remedy = "make it a parameter, or set the function's variable with --env"

func (t *Template) missing(name string) error {
	if node := child(child(t.root, "Resources"), name); node != nil {
		return fmt.Errorf("resource %s doesn't exist: its condition is false", name)
	}
	return fmt.Errorf("there is no parameter or resource %s", name)
}

// nameProperty maps a resource's type to the property that holds the resource's name. A
// Ref to any other type is an error, unless ref has a case for the type.
var nameProperty = map[string]string{
	typeFunction: "FunctionName", typeLambda: "FunctionName", typeTable: "TableName", typeSimpleTable: "TableName", typeQueue: "QueueName",
	typeSchedule:                           "Name",
	"AWS::CloudWatch::Alarm":               "AlarmName",
	"AWS::DynamoDB::GlobalTable":           "TableName",
	"AWS::Events::EventBus":                "Name",
	"AWS::IAM::Role":                       "RoleName",
	"AWS::Kinesis::Stream":                 "Name",
	"AWS::KinesisFirehose::DeliveryStream": "DeliveryStreamName",
	"AWS::Logs::LogGroup":                  "LogGroupName",
	"AWS::RDS::DBCluster":                  "DBClusterIdentifier",
	"AWS::RDS::DBInstance":                 "DBInstanceIdentifier",
	"AWS::S3::Bucket":                      "BucketName",
	"AWS::SNS::Topic":                      "TopicName",
	"AWS::SSM::Parameter":                  "Name",
	"AWS::Scheduler::ScheduleGroup":        "Name",
	"AWS::SecretsManager::Secret":          "Name",
	"AWS::Serverless::StateMachine":        "Name",
	"AWS::StepFunctions::StateMachine":     "StateMachineName",
}

// Template.name returns the name that the template gives to a resource, or else a name
// in the form STACK-LOGICALID.
func (t *Template) name(r resource) (string, error) {
	name := t.opts.StackName + "-" + r.id
	if r.kind == "AWS::S3::Bucket" {
		name = strings.ToLower(name)
	}
	if n := child(r.properties, nameProperty[r.kind]); n != nil {
		v, err := t.resolved(n)
		if err != nil {
			return "", fmt.Errorf("%s.%s (line %d): %w", r.id, nameProperty[r.kind], n.Line, err)
		}
		if _, none := v.(noValue); !none {
			return text(v)
		}
	}
	if r.kind == typeQueue {
		if fifo, err := t.isTrue(child(r.properties, "FifoQueue")); err != nil || fifo {
			return name + ".fifo", err
		}
	}
	return name, nil
}

// Template.attribute resolves Fn::GetAtt.
func (t *Template) attribute(id, attribute string) (any, error) {
	if v, ok := t.known[attributeName{t.full(id), attribute}]; ok {
		return v, nil
	}
	r, ok := t.resource(id)
	if !ok {
		return nil, t.missing(id)
	}
	if output, ok := strings.CutPrefix(attribute, "Outputs."); ok && isNested(r.kind) {
		return t.output(id, output)
	}
	name, err := t.name(r)
	if err != nil {
		return nil, err
	}
	switch {
	case attribute == "Arn" || attribute == "TopicArn" && r.kind == "AWS::SNS::Topic":
		switch r.kind {
		case typeFunction, typeLambda:
			return t.arn("lambda", "function:"+name), nil
		case typeTable, typeSimpleTable:
			return t.arn("dynamodb", "table/"+name), nil
		case typeQueue:
			return t.arn("sqs", name), nil
		case "AWS::S3::Bucket":
			return "arn:aws:s3:::" + name, nil
		case "AWS::SNS::Topic":
			return t.arn("sns", name), nil
		case "AWS::IAM::Role":
			return "arn:aws:iam::" + t.opts.AccountID + ":role/" + name, nil
		case "AWS::KMS::Key":
			return t.arn("kms", "key/"+name), nil
		case "AWS::Logs::LogGroup":
			return t.arn("logs", "log-group:"+name+":*"), nil
		case "AWS::Serverless::StateMachine", "AWS::StepFunctions::StateMachine":
			return t.arn("states", "stateMachine:"+name), nil
		case "AWS::SecretsManager::Secret":
			return t.arn("secretsmanager", "secret:"+name), nil
		case "AWS::Events::EventBus":
			return t.arn("events", "event-bus/"+name), nil
		case "AWS::Kinesis::Stream":
			return t.arn("kinesis", "stream/"+name), nil
		}
	case attribute == "QueueName" && r.kind == typeQueue, attribute == "TopicName" && r.kind == "AWS::SNS::Topic", attribute == "Name" && r.kind == "AWS::Events::EventBus":
		return name, nil
	case attribute == "QueueUrl" && r.kind == typeQueue:
		return t.ref(id)
	case attribute == "StreamArn" && r.kind == typeTable:
		return t.later("stream", id, errors.New("the stream of "+id+" is not known: give the table a StreamSpecification"))
	}
	return nil, fmt.Errorf("%s of %s (%s) is not known here: %s", attribute, id, r.kind, remedy)
}

func (t *Template) arn(service, rest string) string {
	return "arn:aws:" + service + ":" + t.opts.Region + ":" + t.opts.AccountID + ":" + rest
}
