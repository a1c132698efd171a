package completer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda/internal/envelope"
)

// Resumer takes a due ticket up, and says what came of it. It is safe for
// concurrent use.
type Resumer interface {
	Resume(ctx context.Context, t jobs.Ticket) TicketOutcome
}

// InProcess is a Resumer that runs the operation in this process: resume is
// [idem.Engine.Resume] with the handler's code. The engine's options, or
// [idem.ResumeOptions], say for which function it acts: it must be the one that
// the records name.
type InProcess func(ctx context.Context, t jobs.Ticket) error

// Resume implements [Resumer].
func (resume InProcess) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	return outcome(envelope.OutcomeOf(resume(ctx, t)))
}

// Functions is a Resumer that hands a ticket to the function which its record
// names: these functions a completer may call, and no others. "" is code that has
// no idem.Options.Function, outside of Lambda.
//
// A function that was renamed is reached under both names, and says itself which
// ones it accepts ([lambda.HandlerOptions]):
//
//	functions := completer.Invoke(client, "payments:live", "refunds")
//	functions["charges"] = functions["payments"]
type Functions map[string]Resumer

// Resume implements [Resumer]. A ticket for a function that isn't on the list is
// [TicketNotMine]. One that names no function, as those of an earlier
// version, is offered to each until one says that it is its own: the record tells.
func (f Functions) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	if r := f[t.Function]; r != nil {
		return r.Resume(ctx, t)
	}
	o := TicketOutcome{Kind: TicketNotMine, Error: fmt.Sprintf("the function %q is not on the completer's list", t.Function)}
	if t.Function == "" {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			if o = f[name].Resume(ctx, t); o.Kind != TicketNotMine {
				break
			}
		}
	}
	return o
}

// FunctionAPI is the part of the SDK's *lambda.Client that [Invoke] uses.
type FunctionAPI interface {
	Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error)
}

var _ FunctionAPI = (*awslambda.Client)(nil)

// Invoke returns the list of these functions. Each is a name or an ARN, both of
// which may have a qualifier: a record names its function without one, and this
// says which alias or version completes it.
//
// The function is invoked, for the tenant of the record if that has one, and its
// answer is waited for. It takes the request and who made it from its own table,
// and runs the same code as for a client; it must be one that [lambda.Wrap] or
// [lambda.NewRouter] made. The ticket is all it is given.
//
// The client's HTTP timeout must be longer than the functions'. Invoke panics if
// api is nil, if there is no function or one without a name, or if two have the
// same: mistakes in the program, best found at cold start.
func Invoke(api FunctionAPI, functions ...string) Functions {
	if api == nil || len(functions) == 0 {
		panic("completer: Invoke: api is nil, or there is no function") //nolint:forbidigo // a mistake in the program
	}
	all := make(Functions, len(functions))
	for _, f := range functions {
		name := FunctionName(f)
		if name == "" || all[name] != nil {
			panic(fmt.Sprintf("completer: Invoke: %q has no name, or that of another function", f)) //nolint:forbidigo // as above
		}
		all[name] = &function{api, f}
	}
	return all
}

// FunctionName is the name in what Lambda takes for a function: NAME, NAME:QUALIFIER,
// ACCOUNT:function:NAME or an ARN.
func FunctionName(s string) string {
	if _, rest, ok := strings.Cut(s, ":function:"); ok {
		s = rest
	}
	name, _, _ := strings.Cut(s, ":")
	return name
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
		return failed(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	if out.FunctionError != nil {
		// Crashed or timed out: the record has its lease, and the stream a new ticket.
		return failed(fmt.Sprintf("invoke %s: %s: %.200s", f.name, *out.FunctionError, out.Payload))
	}
	o, err := envelope.ParseOutcome(out.Payload)
	if err != nil {
		return failed(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	return outcome(o)
}

func failed(why string) TicketOutcome {
	return TicketOutcome{Kind: TicketFailed, Error: why}
}

// ByNamespace is a Resumer for applications that share a table: it asks the one
// whose idem.Options.Namespace the record is of. "" is that of an engine without
// one. A ticket of any other is [TicketNotMine].
type ByNamespace map[string]Resumer

// Resume implements [Resumer].
func (m ByNamespace) Resume(ctx context.Context, t jobs.Ticket) TicketOutcome {
	_, rest, _ := strings.Cut(t.PK, "#")
	namespace, _, _ := strings.Cut(rest, "#")
	r := m[namespace]
	if r == nil {
		return TicketOutcome{Kind: TicketNotMine, Error: fmt.Sprintf("no resumer for the namespace %q", namespace)}
	}
	return r.Resume(ctx, t)
}
