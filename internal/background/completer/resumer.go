package completer

import (
	"context"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/functionname"
	"github.com/samekey/samekey/internal/envelope"
)

// Resumer resumes the operation of a due ticket, and returns the outcome. A Resumer
// must be safe for concurrent use.
type Resumer interface {
	Resume(ctx context.Context, t jobs.Ticket) TicketOutcome
}

// InProcess is a Resumer that runs the operation in this process. An InProcess must
// call [idem.Engine.Resume] with the handler's code. The engine's options, or
// [idem.ResumeOptions], must name the function that the records name.
type InProcess func(ctx context.Context, t jobs.Ticket) error

// Resume implements [Resumer].
func (resume InProcess) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	return outcome(envelope.OutcomeOf(resume(ctx, t)))
}

// Functions is a Resumer that gives a ticket to the function that its record names. A
// completer calls only the functions in the map. The name "" is for records that were
// made outside of Lambda without idem.Options.Function.
//
// If a function was renamed, add it under both names:
//
//	functions := completer.Invoke(client, "payments:live", "refunds")
//	functions["charges"] = functions["payments"] // charges is the former name
//
// The function's handlers must accept the former name ([lambda.HandlerOptions]).
type Functions map[string]Resumer

// Resume implements [Resumer]. If the ticket's function isn't in the map, the outcome is
// [TicketNotMine].
func (f Functions) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	if r := f[t.Function]; r != nil {
		return r.Resume(ctx, t)
	}
	return TicketOutcome{Kind: TicketNotMine, Error: fmt.Sprintf("the function %q is not on the completer's list", t.Function)}
}

// FunctionAPI is the part of the SDK's *lambda.Client that [Invoke] uses.
type FunctionAPI interface {
	Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error)
}

var _ FunctionAPI = (*awslambda.Client)(nil)

// Invoke returns a map of functions. Each argument is a function's name or ARN. A
// qualifier in the argument is the alias or version that completes the operations. The
// map's keys are names without a qualifier, as in records.
//
// Each Resumer in the map invokes its function and waits for the answer. If the record
// has a tenant, the call is for that tenant. The function gets only the ticket. The
// function reads the request and the caller from its table, and runs the same code as
// for a client. The function's handler must be made by [lambda.Wrap] or
// [lambda.NewRouter].
//
// The HTTP timeout of api must be longer than the timeouts of the functions. Invoke
// panics if api is nil, if there is no function, if a function has no name, or if two
// functions have the same name.
func Invoke(api FunctionAPI, functions ...string) Functions {
	if api == nil || len(functions) == 0 {
		panic("completer: Invoke: api is nil, or there is no function") //nolint:forbidigo // a mistake in the program
	}
	all := make(Functions, len(functions))
	for _, f := range functions {
		name, _ := functionname.Split(f)
		if name == "" || all[name] != nil {
			panic(fmt.Sprintf("completer: Invoke: %q has no name, or that of another function", f)) //nolint:forbidigo // as above
		}
		all[name] = &function{api, f}
	}
	return all
}

type function struct {
	api  FunctionAPI
	name string
}

func (f *function) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	in := &awslambda.InvokeInput{
		FunctionName: &f.name, InvocationType: types.InvocationTypeRequestResponse, Payload: envelope.EncodeTicket(t),
	}
	if t.Tenant != "" {
		in.TenantId = &t.Tenant
	}
	out, err := f.api.Invoke(ctx, in)
	if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {
		return TicketOutcome{Kind: TicketNotMine, Error: fmt.Sprintf("invoke %s: %v", f.name, err)}
	}
	if err != nil {
		return unanswered(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	if out.FunctionError != nil {
		// The function crashed or timed out. If it had taken over the operation, it still
		// holds the lease.
		return unanswered(fmt.Sprintf("invoke %s: %s: %.200s", f.name, *out.FunctionError, out.Payload))
	}
	o, err := envelope.ParseOutcome(out.Payload)
	if err != nil {
		return unanswered(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	return outcome(o)
}

func failed(why string) TicketOutcome {
	return TicketOutcome{Kind: TicketFailed, Error: why}
}

func unanswered(why string) TicketOutcome {
	return TicketOutcome{Kind: TicketFailed, Error: why, Unanswered: true}
}
