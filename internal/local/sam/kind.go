package sam

import "strings"

const (
	typeFunction    = "AWS::Serverless::Function"
	typeLambda      = "AWS::Lambda::Function"
	typeMapping     = "AWS::Lambda::EventSourceMapping"
	typeInvokes     = "AWS::Lambda::EventInvokeConfig"
	typeSchedule    = "AWS::Scheduler::Schedule"
	typeApplication = "AWS::Serverless::Application"
	typeStack       = "AWS::CloudFormation::Stack"
	typeHTTPAPI     = "AWS::Serverless::HttpApi"
	typeRESTAPI     = "AWS::Serverless::Api"
	typeSimpleTable = "AWS::Serverless::SimpleTable"
	typeTable       = "AWS::DynamoDB::Table"
	typeQueue       = "AWS::SQS::Queue"
)

// meaningless holds prefixes of types that nobody misses on one machine. Ignored leaves
// out resources of these types.
var meaningless = []string{
	"AWS::ApplicationAutoScaling::", "AWS::Budgets::", "AWS::CloudWatch::", "AWS::IAM::", "AWS::KMS::",
	"AWS::Lambda::Permission", "AWS::Logs::", "AWS::ResourceGroups::", "AWS::S3::BucketPolicy", "AWS::Serverless::Connector",
	"AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::ApiGateway::Account", "AWS::S3::Bucket", "AWS::XRay::",
}

// Ignored returns the resources that have no effect here, except those of types that
// nobody misses on one machine, such as AWS::IAM::Role.
func (t *Template) Ignored() []Resource {
	var out []Resource
	for in := range t.all() {
		for _, r := range in.resources {
			if !in.counts(r) && !hasPrefix(r.kind, meaningless) {
				out = append(out, Resource{ID: in.full(r.id), Type: r.kind, Line: r.line})
			}
		}
	}
	return out
}

// Template.counts is true for a resource that has an effect here.
func (t *Template) counts(r resource) bool {
	switch r.kind {
	case typeFunction, typeLambda, typeHTTPAPI, typeRESTAPI, typeSimpleTable, typeTable, typeQueue, typeMapping, typeInvokes:
		return true
	case typeSchedule:
		return t.target(t.props(r).mapping("Target").str("Arn")) != ""
	case typeApplication, typeStack:
		return t.child(r.id) != nil
	}
	return false
}

func isFunction(kind string) bool { return kind == typeFunction || kind == typeLambda }

func isNested(kind string) bool { return kind == typeApplication || kind == typeStack }

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
