package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/samekey/samekey/idem/store"
)

// Source is a question to AWS, named by the permission that it needs.
type Source string

// The sources.
const (
	DescribeTable  Source = "dynamodb:DescribeTable"
	DescribeTTL    Source = "dynamodb:DescribeTimeToLive"
	DescribeBackup Source = "dynamodb:DescribeContinuousBackups"
	ScanTable      Source = "dynamodb:Scan"
	TryGet         Source = "dynamodb:GetItem"
	TryPut         Source = "dynamodb:PutItem"
	TryUpdate      Source = "dynamodb:UpdateItem"
	TryQuery       Source = "dynamodb:Query"
	ServerClock    Source = "the header Date of DynamoDB's answers"
	Functions      Source = "lambda:GetFunctionConfiguration"
	Code           Source = "lambda:GetFunction"
	Mappings       Source = "lambda:ListEventSourceMappings"
	Concurrency    Source = "lambda:GetFunctionConcurrency"
	Recursion      Source = "lambda:GetFunctionRecursionConfig"
	EventInvokes   Source = "lambda:GetFunctionEventInvokeConfig"
	Policies       Source = "lambda:GetPolicy"
	Queues         Source = "sqs:GetQueueAttributes"
	Buses          Source = "events:DescribeEventBus"
	Machines       Source = "states:DescribeStateMachine"
	Schedules      Source = "scheduler:GetSchedule"
	ScheduleRole   Source = "iam:GetRole"
	Simulation     Source = "iam:SimulatePrincipalPolicy"
	Gateways       Source = "apigateway:GET"
	Alarms         Source = "cloudwatch:DescribeAlarms"
	Metrics        Source = "cloudwatch:ListMetrics"
)

// Options select what to examine. Table may be empty if Stack has exactly one table with the
// logical name Table.
type Options struct {
	Table string
	// Stack names the CloudFormation stack with the functions. If neither
	// Stack nor Functions gives a function, the functions are found by their variable
	// IDEM_TABLE.
	Stack string
	// Functions are functions to examine besides those of the stack.
	Functions []string
	// As names a role: "function", "worker" or "operator". If As is set, the caller must
	// have the permissions of this role on the table; a missing permission is a finding.
	As string
	// ClientRetries is the longest time over which a client retries; 0 = unknown.
	ClientRetries time.Duration
	// ProviderRemembers is how long the payment provider remembers a key. 0 means 24
	// hours, the time of Stripe's API v1.
	ProviderRemembers time.Duration
	// Version is the version of the library in this command; "" leaves the command out of
	// the comparison of versions.
	Version string
	// Sample is how many items are examined. Default 200.
	Sample int
	// TableOnly is the reason why only the table is examined; "" examines everything.
	// The report gives this reason for each check that needs more than the table.
	TableOnly string
	// Now is the time of the examination. The default is the current time.
	Now time.Time
}

// Facts are the answers of AWS.
type Facts struct {
	Options Options
	Now     time.Time

	Table     *ddbtypes.TableDescription
	TTL       *ddbtypes.TimeToLiveDescription
	Recovery  bool // point-in-time recovery is on
	Sample    []*store.Record
	Unread    []string          // why items of the sample can't be read: one reason for each item
	Refused   map[Source]string // AWS's errors for the calls that the caller isn't allowed to make
	Skew      time.Duration     // how far the local clock is ahead of the table's
	Functions []*Function
	Gone      []string // functions in SAMEKEY_FUNCTIONS that don't exist
	Queues    map[string]*Queue
	Buses     []*Bus
	Machines  []*Machine
	Role      *Role      // role of the schedules for later jobs; nil if there is none, or if AWS gave no answer
	Schedules []Schedule // schedules of the worker
	Alarms    []cwtypes.MetricAlarm
	Counted   []string // applications (values of the dimension App) for which CloudWatch lists the metric Requests

	unread map[Source]string // why a source has no answer
}

// Function is a function or an alias, with its event sources.
type Function struct {
	Name, ARN string // without the alias
	Alias     string // "" = $LATEST
	Policy    string // its resource policy
	Timeout   time.Duration
	Env       map[string]string
	Reserved  *int32                          // reserved concurrency; nil = none
	Events    *Events                         // configuration for asynchronous invocations; nil if no such invocations are known
	Loops     bool                            // Lambda allows recursive loops of this function; set for the worker only
	LogLevel  lambdatypes.ApplicationLogLevel // the lowest level of log lines that Lambda keeps; "" keeps all
	Mappings  []lambdatypes.EventSourceMappingConfiguration
	Gateways  []Gateway

	Version     string // version of the library in the program; "" if unknown, or if the program lacks the library
	Unversioned string // why the version is unknown
}

// Events is a function's configuration for asynchronous invocations.
type Events struct {
	Retries int32
	Age     time.Duration // MaximumEventAgeInSeconds
}

// Gateway is an integration of an API with a function.
type Gateway struct {
	API      string
	Timeout  time.Duration
	TextOnly bool // the API is a REST API without binary media types
}

// Queue is an SQS queue.
type Queue struct {
	ARN, URL   string
	Gone       bool
	Attributes map[string]string
}

// Bus is an EventBridge bus that the worker sends jobs to.
type Bus struct {
	Named string // a name or an ARN, as in SAMEKEY_SINKS
	ARN   string // the bus's ARN, from AWS
	Gone  bool
}

// Machine is a state machine that the worker's jobs start.
type Machine struct {
	ARN  string // without version and alias
	Type sfntypes.StateMachineType
	Gone bool
}

// Role is the role of the schedules that the worker makes.
type Role struct {
	ARN     string
	Assumed bool // EventBridge Scheduler may assume the role
	Sends   bool // the role may send to the queue of tickets
	Gone    bool
}

// Schedule is a schedule that starts the worker.
type Schedule struct {
	Name, Task string
	Enabled    bool
}

// Facts.missing returns the reason why the first unanswered source in needs has no
// answer. If all have answers, missing returns "".
func (f *Facts) missing(needs []Source) string {
	for _, s := range needs {
		if why, ok := f.unread[s]; ok {
			return why
		}
	}
	return ""
}

func (f *Facts) miss(s Source, why string) {
	if _, known := f.unread[s]; !known {
		f.unread[s] = why
	}
}

// streamARN returns the ARN of the table's stream; "" if there is none.
func (f *Facts) streamARN() string {
	if f.Table == nil || f.Table.StreamSpecification == nil || f.Table.StreamSpecification.StreamEnabled == nil || !*f.Table.StreamSpecification.StreamEnabled || f.Table.LatestStreamArn == nil {
		return ""
	}
	return *f.Table.LatestStreamArn
}

// Facts.worker returns the worker, which is the function with the variable
// SAMEKEY_TICKETS_URL; nil if no function has this variable.
func (f *Facts) worker() *Function {
	i := slices.IndexFunc(f.Functions, func(fn *Function) bool { return fn.Env["SAMEKEY_TICKETS_URL"] != "" })
	if i < 0 {
		return nil
	}
	return f.Functions[i]
}

// Facts.readers returns the mappings of the table's stream, with their functions.
func (f *Facts) readers() (all []reader) {
	arn := f.streamARN()
	for _, fn := range f.Functions {
		for _, m := range fn.Mappings {
			if arn != "" && aws.ToString(m.EventSourceArn) == arn {
				all = append(all, reader{fn, m})
			}
		}
	}
	return all
}

// Facts.consumers returns the mappings of queues, with their functions.
func (f *Facts) consumers() (all []reader) {
	for _, fn := range f.Functions {
		for _, m := range fn.Mappings {
			if strings.Contains(aws.ToString(m.EventSourceArn), ":sqs:") {
				all = append(all, reader{fn, m})
			}
		}
	}
	return all
}

// reader is a function and one of its event source mappings.
type reader struct {
	fn      *Function
	mapping lambdatypes.EventSourceMappingConfiguration
}

// Facts.tickets returns the worker's queue of tickets. If there is no worker, or if the
// queue can't be read, tickets returns nil.
func (f *Facts) tickets() *Queue {
	w := f.worker()
	if w == nil {
		return nil
	}
	for _, q := range f.Queues {
		if q.URL == w.Env["SAMEKEY_TICKETS_URL"] {
			return q
		}
	}
	return nil
}
