package sink

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/awsname"
	"github.com/samekey/samekey/lambda"
)

// StateMachineAPI is the part of *sfn.Client that a [StateMachine] uses.
type StateMachineAPI interface {
	// DescribeStateMachine shows whether the state machine is a standard workflow.
	DescribeStateMachine(context.Context, *sfn.DescribeStateMachineInput, ...func(*sfn.Options)) (*sfn.DescribeStateMachineOutput, error)
	StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
	// DescribeExecution returns the input of an execution that exists already.
	DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error)
}

var _ StateMachineAPI = (*sfn.Client)(nil)

// StateMachine starts an execution of Step Functions for each job. The execution's name is made of
// the job's id, and its input is a lambda.JobEvent, whose key is the job's id. Step Functions
// starts no other execution with this name until 90 days after the execution's end. So a job that
// is delivered again in this time starts nothing. If the name belongs to an execution with another
// input, the error counts against the job.
//
// Only standard workflows keep names in this way. So before its first delivery, a process asks for
// the state machine's type (states:DescribeStateMachine). Until the answer is STANDARD, the sink is
// unavailable and starts nothing. If a name is taken, the sink asks for the execution's input
// (states:DescribeExecution), to see whether the execution is the job's own.
type StateMachine struct {
	oneByOne
	api StateMachineAPI
	arn machineARN

	standard atomic.Bool // states:DescribeStateMachine returned STANDARD
}

// NewStateMachine returns a sink to the state machine with the ARN arn. The ARN may end with a
// version or an alias. NewStateMachine panics if api is nil, or if arn isn't the ARN of a state
// machine.
func NewStateMachine(api StateMachineAPI, arn string) *StateMachine {
	parsed, ok := parseMachine(arn)
	if api == nil || !ok {
		panic("sink: NewStateMachine: api is nil, or arn is not as arn:aws:states:REGION:ACCOUNT:stateMachine:NAME") //nolint:forbidigo // a mistake in the program
	}
	m := &StateMachine{api: api, arn: parsed}
	m.oneByOne = oneByOne{service: machines, call: m.start}
	return m
}

// Deliver implements [jobs.Sink] with a call for each job.
func (m *StateMachine) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	if len(batch) == 0 {
		return nil
	}
	if err := m.keepsNames(ctx); err != nil {
		return slices.Repeat([]error{fmt.Errorf("%s: %w: %s: %w", m.service.name, jobs.ErrSinkDown, m.arn.whole, err)}, len(batch))
	}
	return m.deliver(ctx, batch)
}

// keepsNames returns nil if the state machine is a standard workflow, otherwise an
// error. An express workflow accepts the same name again, so it would do a job twice if
// the job is delivered twice.
func (m *StateMachine) keepsNames(ctx context.Context) error {
	if m.standard.Load() {
		return nil
	}
	out, err := m.api.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: aws.String(m.arn.unqualified())})
	switch {
	case err != nil:
		return err
	case out.Type != types.StateMachineTypeStandard:
		return fmt.Errorf("its type is %s: a job may come again, and only a STANDARD workflow starts an execution's name once", cmp.Or(out.Type, "unknown"))
	}
	m.standard.Store(true)
	return nil
}

// maxExecution is the maximum length of a name: a durable execution allows 64
// characters, an execution of Step Functions 80.
const maxExecution = 64

// executionName returns the name of a job's execution, which is the same on every
// delivery.
func executionName(jobID string) string { return awsname.Of(jobID, "", maxExecution) }

func (m *StateMachine) start(ctx context.Context, d jobs.Delivery) *fault {
	input, name := payload(d), executionName(d.JobID)
	if input == nil {
		return errNotJSON
	}
	out, err := m.api.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &m.arn.whole, Name: &name, Input: aws.String(string(input))})
	if _, exists := errors.AsType[*types.ExecutionAlreadyExists](err); exists {
		return m.compare(ctx, input, name)
	}
	switch {
	case err == nil && aws.ToString(out.ExecutionArn) == "":
		return &fault{ofSink, errUntold}
	case err == nil:
		return nil
	}
	f := callFault(err)
	if f.blame == inDoubt && len(input) > machines.bytes {
		f.blame = ofJob
	}
	return f
}

// StateMachine.compare finds out whether the existing execution is the job's own. Step
// Functions returns the same error in two cases: an execution with the same input has
// ended, or there is an execution with another input. The parameter input is the job,
// encoded in the same way as the execution's input, because the encoding may change the
// text of the Args.
func (m *StateMachine) compare(ctx context.Context, input []byte, name string) *fault {
	out, err := m.api.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: aws.String(m.arn.execution(name))})
	if err != nil {
		return &fault{ofSink, fmt.Errorf("execution %s exists, and its input can't be read: %w", name, err)}
	}
	var was, is lambda.JobEvent
	if json.Unmarshal([]byte(aws.ToString(out.Input)), &was) == nil && json.Unmarshal(input, &is) == nil &&
		was.Key == is.Key && was.Operation == is.Operation && was.Kind == is.Kind && sameJSON(was.Args, is.Args) {
		return nil // the trace context is no part of the work, so it may differ
	}
	return &fault{ofJob, fmt.Errorf("execution %s exists with another input: it is not of this job", name)}
}

// sameJSON reports whether two values have the same text apart from white space, which the service
// may change.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// machineARN is arn:PARTITION:states:REGION:ACCOUNT:stateMachine:NAME, with or without a
// version or an alias.
type machineARN struct {
	whole string
	parts []string
}

func parseMachine(arn string) (machineARN, bool) {
	const kind, name = 5, 6
	p := strings.Split(arn, ":")
	ok := len(p) > name && len(p) <= name+2 && p[0] == "arn" && p[2] == "states" && p[kind] == "stateMachine" && p[name] != "" && p[len(p)-1] != "" &&
		!strings.Contains(p[name], "/") // a name with "/" belongs to a Map state of a machine, and a Map state can't be started
	return machineARN{arn, p}, ok
}

func (a machineARN) unqualified() string { return strings.Join(a.parts[:7], ":") }

func (a machineARN) execution(name string) string {
	p := slices.Clone(a.parts[:7])
	p[5] = "execution"
	return strings.Join(append(p, name), ":")
}
