package sink

import (
	"context"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/jobs"
)

// FunctionAPI is the part of the SDK's *lambda.Client that a [Function] uses.
type FunctionAPI interface {
	Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error)
}

var _ FunctionAPI = (*awslambda.Client)(nil)

// Function invokes a function asynchronously for each job: Lambda has accepted the
// job when it has queued the event. The payload is a lambda.JobEvent, whose key is
// the job's id. Jobs of a group are queued in order, but Lambda doesn't keep the
// order.
//
// A job of an operation that was invoked for a tenant is sent for that tenant.
// Lambda accepts that only for a function with tenant isolation.
type Function struct {
	api  FunctionAPI
	name string
	opt  FunctionOptions
	past evidence
}

// FunctionOptions vary [NewFunction].
type FunctionOptions struct {
	// WithoutTenant invokes a function without tenant isolation. The job's Args must
	// then name the tenant, if the function needs it.
	WithoutTenant bool
}

// NewFunction returns a sink to the function of that name or ARN, which may have a
// qualifier. It panics if api is nil or name is empty: mistakes in the program,
// which show at cold start.
func NewFunction(api FunctionAPI, name string, optFns ...func(*FunctionOptions)) *Function {
	if api == nil || name == "" {
		panic("sink: NewFunction: api is nil or name is empty") //nolint:forbidigo // a mistake in the program
	}
	f := &Function{api: api, name: name}
	for _, fn := range optFns {
		fn(&f.opt)
	}
	return f
}

// Deliver implements [jobs.Sink], a call for each job.
func (f *Function) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	r := newRound(functions, &f.past, batch)
	held := make(map[string]bool)
	for i, d := range batch {
		switch {
		case r.over(ctx, i):
		case held[d.Group]:
			r.errs[i] = errHeldBack
		default:
			fault := f.invoke(ctx, d)
			r.note(i, fault)
			r.down = fault != nil && fault.blame == ofSink
			held[d.Group] = fault != nil
		}
	}
	return r.verdicts()
}

func (f *Function) invoke(ctx context.Context, d jobs.Delivery) *fault {
	const accepted = 202
	in := &awslambda.InvokeInput{FunctionName: &f.name, InvocationType: types.InvocationTypeEvent, Payload: payload(d)}
	if in.Payload == nil {
		return &fault{ofJob, errors.New("its Args are not JSON")} // Lambda would accept an event without a payload
	}
	if d.Tenant != "" && !f.opt.WithoutTenant {
		in.TenantId = &d.Tenant
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
