package sink

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/functionname"
)

// FunctionAPI is the part of the SDK's *lambda.Client that a [Function] uses.
type FunctionAPI interface {
	Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error)
}

var _ FunctionAPI = (*awslambda.Client)(nil)

// Function invokes a function asynchronously for each job. A job counts as delivered
// once Lambda has queued its event. The payload is a lambda.JobEvent, whose key is the
// job's id. Jobs of a group are queued in order, but Lambda doesn't keep the order.
//
// If an operation was invoked for a tenant, its jobs are sent for the same tenant.
// Lambda accepts a tenant only for a function with tenant isolation. For any other
// function, set WithoutTenant.
type Function struct {
	oneByOne
	api  FunctionAPI
	name string
	opt  FunctionOptions
}

// FunctionOptions are the options of [NewFunction].
type FunctionOptions struct {
	// WithoutTenant sends jobs without their tenant, for a function without tenant isolation. If
	// the function needs the tenant, the job's Args must name it.
	WithoutTenant bool
	// Durable starts a durable execution for each job. The execution's name is made of the job's
	// id. So a job that is delivered again starts nothing, as long as Lambda keeps the execution's
	// history. If the name belongs to an execution with another payload, the error counts against
	// the job. Lambda invokes a durable function only by a version or an alias, so the function's
	// name must have a qualifier.
	Durable bool
}

// NewFunction returns a sink to a function. name is the function's name or ARN, with or without a
// qualifier. NewFunction panics if api is nil, if name is empty, or if Durable is set although name
// has no qualifier.
func NewFunction(api FunctionAPI, name string, optFns ...func(*FunctionOptions)) *Function {
	f := &Function{api: api, name: name}
	for _, fn := range optFns {
		fn(&f.opt)
	}
	if api == nil || name == "" || f.opt.Durable && !qualified(name) {
		panic("sink: NewFunction: api is nil, or name is empty, or a durable function has no version or alias") //nolint:forbidigo // a mistake in the program
	}
	f.oneByOne = oneByOne{service: functions, call: f.invoke}
	return f
}

// qualified reports whether a function's name or ARN ends with a version or an alias.
func qualified(name string) bool {
	_, qualifier := functionname.Split(name)
	return qualifier != ""
}

// Deliver implements [jobs.Sink] with a call for each job.
func (f *Function) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	return f.deliver(ctx, batch)
}

func (f *Function) invoke(ctx context.Context, d jobs.Delivery) *fault {
	const accepted = 202
	in := &awslambda.InvokeInput{FunctionName: &f.name, InvocationType: types.InvocationTypeEvent, Payload: payload(d)}
	if in.Payload == nil {
		return errNotJSON
	}
	if d.Tenant != "" && !f.opt.WithoutTenant {
		in.TenantId = &d.Tenant
	}
	if f.opt.Durable {
		in.DurableExecutionName = aws.String(executionName(d.JobID))
	}
	out, err := f.api.Invoke(ctx, in)
	switch {
	case err != nil:
		return callFault(err)
	case out.StatusCode != accepted:
		return &fault{ofSink, fmt.Errorf("status %d", out.StatusCode)}
	}
	return nil
}
