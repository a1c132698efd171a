package sam

import "strings"

const (
	typeFunction    = "AWS::Serverless::Function"
	typeHTTPAPI     = "AWS::Serverless::HttpApi"
	typeRESTAPI     = "AWS::Serverless::Api"
	typeSimpleTable = "AWS::Serverless::SimpleTable"
	typeTable       = "AWS::DynamoDB::Table"
	typeQueue       = "AWS::SQS::Queue"
)

// meaningless are the types, or beginnings of types, that need nothing on one
// machine: nobody will miss them.
var meaningless = []string{
	"AWS::ApplicationAutoScaling::", "AWS::Budgets::", "AWS::CloudWatch::", "AWS::IAM::", "AWS::KMS::",
	"AWS::Lambda::Permission", "AWS::Logs::", "AWS::ResourceGroups::", "AWS::S3::BucketPolicy", "AWS::Serverless::Connector",
	"AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::ApiGateway::Account", "AWS::S3::Bucket", "AWS::XRay::",
}

// Ignored lists the resources that do something in AWS and nothing here, so
// that somebody can be told.
func (t *Template) Ignored() []Resource {
	var out []Resource
	for _, r := range t.resources {
		switch r.kind {
		case typeFunction, typeHTTPAPI, typeRESTAPI, typeSimpleTable, typeTable, typeQueue:
			continue
		}
		if !hasPrefix(r.kind, meaningless) {
			out = append(out, Resource{ID: r.id, Type: r.kind})
		}
	}
	return out
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
