package completer

import (
	"context"
	"fmt"
	"strings"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Resumer takes a due ticket up, and says what came of it. It is safe for
// concurrent use.
type Resumer interface {
	Resume(ctx context.Context, t idem.Ticket) lambda.Outcome
}

// InProcess is a Resumer that runs the operation in this process: resume is
// [idem.Engine.Resume] with the handler's code.
type InProcess func(ctx context.Context, t idem.Ticket) error

// Resume implements [Resumer].
func (resume InProcess) Resume(ctx context.Context, t idem.Ticket) lambda.Outcome {
	return lambda.OutcomeOf(resume(ctx, t))
}

// Lambda is the part of the SDK's *lambda.Client that [Invoke] uses.
type Lambda interface {
	Invoke(context.Context, *awslambda.InvokeInput, ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error)
}

var _ Lambda = (*awslambda.Client)(nil)

// Invoke returns a Resumer that invokes the function of that name or ARN, which
// may have a qualifier, and waits for its answer. The function takes the request
// and who made it from its own table, and runs the same code as for a client; it
// must be one that [lambda.Wrap] made. The ticket is all it is given.
//
// The client's HTTP timeout must be longer than the function's. Invoke panics if
// api is nil or name is empty: mistakes in the program, best found at cold start.
func Invoke(api Lambda, name string) Resumer {
	if api == nil || name == "" {
		panic("completer: Invoke: api is nil or name is empty") //nolint:forbidigo // a mistake in the program
	}
	return &function{api, name}
}

type function struct {
	api  Lambda
	name string
}

func (f *function) Resume(ctx context.Context, t idem.Ticket) lambda.Outcome {
	out, err := f.api.Invoke(ctx, &awslambda.InvokeInput{
		FunctionName: &f.name, InvocationType: types.InvocationTypeRequestResponse, Payload: lambda.EncodeResume(t),
	})
	if err != nil {
		return failed(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	if out.FunctionError != nil {
		// Crashed or timed out: the record has its lease, and the stream a new ticket.
		return failed(fmt.Sprintf("invoke %s: %s: %.200s", f.name, *out.FunctionError, out.Payload))
	}
	o, err := lambda.ParseOutcome(out.Payload)
	if err != nil {
		return failed(fmt.Sprintf("invoke %s: %v", f.name, err))
	}
	return o
}

func failed(why string) lambda.Outcome {
	return lambda.Outcome{Kind: lambda.OutcomeFailed, Error: why}
}

// ByNamespace is a Resumer for applications that share a table: it asks the one
// whose idem.Options.Namespace the record is of. "" is that of an engine without
// one.
type ByNamespace map[string]Resumer

// Resume implements [Resumer].
func (m ByNamespace) Resume(ctx context.Context, t idem.Ticket) lambda.Outcome {
	_, rest, _ := strings.Cut(t.PK, "#")
	namespace, _, _ := strings.Cut(rest, "#")
	r := m[namespace]
	if r == nil {
		return failed(fmt.Sprintf("no resumer for the namespace %q", namespace))
	}
	return r.Resume(ctx, t)
}
