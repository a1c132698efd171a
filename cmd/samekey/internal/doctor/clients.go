package doctor

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	"github.com/aws/aws-sdk-go-v2/service/apigatewayv2"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Clients are the AWS clients that [Gather] uses. All are required.
type Clients struct {
	DynamoDB       DynamoDB
	Lambda         Lambda
	SQS            SQS
	EventBridge    EventBridge
	StepFunctions  StepFunctions
	Scheduler      Scheduler
	IAM            IAM
	CloudWatch     CloudWatch
	CloudFormation cloudformation.ListStackResourcesAPIClient
	HTTPAPIs       HTTPAPIs
	RESTAPIs       RESTAPIs
	HTTP           aws.HTTPClient // downloads functions' code
}

// DynamoDB reads a table, and tries writes that can't succeed.
type DynamoDB interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Lambda reads functions and their event sources.
type Lambda interface {
	lambda.ListFunctionsAPIClient
	lambda.ListEventSourceMappingsAPIClient
	lambda.ListAliasesAPIClient
	GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
	GetFunction(context.Context, *lambda.GetFunctionInput, ...func(*lambda.Options)) (*lambda.GetFunctionOutput, error)
	GetFunctionConcurrency(context.Context, *lambda.GetFunctionConcurrencyInput, ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error)
	GetFunctionRecursionConfig(context.Context, *lambda.GetFunctionRecursionConfigInput, ...func(*lambda.Options)) (*lambda.GetFunctionRecursionConfigOutput, error)
	GetFunctionEventInvokeConfig(context.Context, *lambda.GetFunctionEventInvokeConfigInput, ...func(*lambda.Options)) (*lambda.GetFunctionEventInvokeConfigOutput, error)
	GetPolicy(context.Context, *lambda.GetPolicyInput, ...func(*lambda.Options)) (*lambda.GetPolicyOutput, error)
}

// SQS reads queues.
type SQS interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// CloudWatch reads alarms, and names of metrics.
type CloudWatch interface {
	cloudwatch.DescribeAlarmsAPIClient
	cloudwatch.ListMetricsAPIClient
}

// EventBridge reads buses.
type EventBridge interface {
	DescribeEventBus(context.Context, *eventbridge.DescribeEventBusInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeEventBusOutput, error)
}

// StepFunctions reads state machines.
type StepFunctions interface {
	DescribeStateMachine(context.Context, *sfn.DescribeStateMachineInput, ...func(*sfn.Options)) (*sfn.DescribeStateMachineOutput, error)
}

// IAM reads roles and simulates their permissions.
type IAM interface {
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	SimulatePrincipalPolicy(context.Context, *iam.SimulatePrincipalPolicyInput, ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error)
}

// Scheduler reads schedules.
type Scheduler interface {
	scheduler.ListSchedulesAPIClient
	GetSchedule(context.Context, *scheduler.GetScheduleInput, ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error)
}

// HTTPAPIs reads the integrations of HTTP APIs.
type HTTPAPIs interface {
	GetIntegrations(context.Context, *apigatewayv2.GetIntegrationsInput, ...func(*apigatewayv2.Options)) (*apigatewayv2.GetIntegrationsOutput, error)
}

// RESTAPIs reads REST APIs and their integrations.
type RESTAPIs interface {
	apigateway.GetResourcesAPIClient
	GetRestApi(context.Context, *apigateway.GetRestApiInput, ...func(*apigateway.Options)) (*apigateway.GetRestApiOutput, error)
}

var (
	_ DynamoDB      = (*dynamodb.Client)(nil)
	_ Lambda        = (*lambda.Client)(nil)
	_ SQS           = (*sqs.Client)(nil)
	_ CloudWatch    = (*cloudwatch.Client)(nil)
	_ EventBridge   = (*eventbridge.Client)(nil)
	_ StepFunctions = (*sfn.Client)(nil)
	_ Scheduler     = (*scheduler.Client)(nil)
	_ IAM           = (*iam.Client)(nil)
	_ HTTPAPIs      = (*apigatewayv2.Client)(nil)
	_ RESTAPIs      = (*apigateway.Client)(nil)
)

// NewClients makes Clients from cfg. The argument table is the client for DynamoDB; if it is
// nil, NewClients makes this client too.
func NewClients(cfg aws.Config, table DynamoDB) Clients {
	if table == nil {
		table = dynamodb.NewFromConfig(cfg)
	}
	web := cfg.HTTPClient
	if web == nil {
		web = http.DefaultClient
	}
	return Clients{
		HTTP:     web,
		DynamoDB: table, Lambda: lambda.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), CloudWatch: cloudwatch.NewFromConfig(cfg),
		EventBridge: eventbridge.NewFromConfig(cfg), StepFunctions: sfn.NewFromConfig(cfg), Scheduler: scheduler.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		CloudFormation: cloudformation.NewFromConfig(cfg), HTTPAPIs: apigatewayv2.NewFromConfig(cfg), RESTAPIs: apigateway.NewFromConfig(cfg),
	}
}
