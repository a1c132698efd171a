package completer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/envelope"
)

type fakeLambda struct {
	out *awslambda.InvokeOutput
	err error
	in  *awslambda.InvokeInput
}

func (f *fakeLambda) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	f.in = in
	return f.out, f.err
}

func ticketFor(function, tenant string) jobs.Ticket {
	return jobs.Ticket{PK: "v1##p", Owner: "o", Ver: 3, Due: now, Function: function, Tenant: tenant}
}

func says(kind envelope.Kind) *awslambda.InvokeOutput {
	return &awslambda.InvokeOutput{StatusCode: 200, Payload: envelope.EncodeOutcome(envelope.Outcome{Kind: kind})}
}

func done() *awslambda.InvokeOutput { return says(envelope.Done) }

// A ticket goes to the function that its record names, by the alias that the list
// has for it, and to no other.
func TestTicketsGoToTheirFunction(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:lambda:eu-central-1:123456789012:function:receipts:7"
	for function, want := range map[string]string{
		"charges": "charges:live", "refunds": "refunds", "receipts": arn, "partial": "123456789012:function:partial", "payments": "charges:live",
		"charges:live": "", "live": "", "Charges": "", "function": "", "mails": "",
	} {
		f := &fakeLambda{out: done()}
		list := completer.Invoke(f, "charges:live", "refunds", arn, "123456789012:function:partial")
		list["payments"] = list["charges"] // renamed
		o := list.Resume(t.Context(), ticketFor(function, "jane"))
		switch {
		case want == "" && (o.Kind != completer.TicketNotMine || f.in != nil || !strings.Contains(o.Error, function)):
			t.Errorf("%s: got %+v, invoked %v", function, o, f.in)
		case want != "" && (o.Kind != completer.TicketDone || *f.in.FunctionName != want):
			t.Errorf("%s: got %+v, invoked %v, want %s", function, o, f.in, want)
		case want != "" && aws.ToString(f.in.TenantId) != "jane": // which a function that keeps tenants apart needs
			t.Errorf("%s: invoked for the tenant %q", function, aws.ToString(f.in.TenantId))
		}
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	crashed := "Unhandled"
	for name, test := range map[string]struct {
		out  *awslambda.InvokeOutput
		err  error
		want completer.TicketOutcome
	}{
		"its answer": {
			&awslambda.InvokeOutput{StatusCode: 200, Payload: envelope.EncodeOutcome(envelope.Outcome{Kind: envelope.InFlight, RetryAfter: time.Second})}, nil,
			completer.TicketOutcome{Kind: completer.TicketInFlight, RetryAfter: time.Second},
		},
		"done":      {done(), nil, completer.TicketOutcome{Kind: completer.TicketDone}},
		"moved":     {says(envelope.Moved), nil, completer.TicketOutcome{Kind: completer.TicketMoved}},
		"stuck":     {says(envelope.Stuck), nil, completer.TicketOutcome{Kind: completer.TicketStuck}},
		"failed":    {says(envelope.Failed), nil, completer.TicketOutcome{Kind: completer.TicketFailed}},
		"not mine":  {says(envelope.NotMine), nil, completer.TicketOutcome{Kind: completer.TicketNotMine}},
		"no answer": {nil, errors.New("timeout"), completer.TicketOutcome{Kind: completer.TicketFailed, Error: "timeout", Unanswered: true}},
		"it is gone, or its alias is": {
			nil, fmt.Errorf("operation error Lambda: Invoke: %w", &types.ResourceNotFoundException{Message: aws.String("Function not found")}),
			completer.TicketOutcome{Kind: completer.TicketNotMine, Error: "Function not found"},
		},
		"a crash": {
			&awslambda.InvokeOutput{StatusCode: 200, FunctionError: &crashed, Payload: []byte(`{"errorMessage":"Task timed out"}`)}, nil,
			completer.TicketOutcome{Kind: completer.TicketFailed, Error: "Task timed out", Unanswered: true},
		},
		"a crash that looks like an answer": {
			&awslambda.InvokeOutput{StatusCode: 200, FunctionError: &crashed, Payload: envelope.EncodeOutcome(envelope.Outcome{Kind: envelope.Done})}, nil,
			completer.TicketOutcome{Kind: completer.TicketFailed, Error: "Unhandled", Unanswered: true},
		},
		"a function that knows no envelopes": {
			&awslambda.InvokeOutput{StatusCode: 200, Payload: []byte(`{"statusCode":400,"body":"no route"}`)}, nil,
			completer.TicketOutcome{Kind: completer.TicketFailed, Error: "not a sound envelope", Unanswered: true},
		},
		"nothing at all": {&awslambda.InvokeOutput{StatusCode: 200}, nil, completer.TicketOutcome{Kind: completer.TicketFailed, Error: "not a sound envelope", Unanswered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeLambda{out: test.out, err: test.err}
			got := completer.Invoke(f, "api:live").Resume(t.Context(), ticketFor("api", ""))
			if !strings.Contains(got.Error, test.want.Error) {
				t.Errorf("error %q, want %q in it", got.Error, test.want.Error)
			}
			got.Error, test.want.Error = "", ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if *f.in.FunctionName != "api:live" || f.in.InvocationType != types.InvocationTypeRequestResponse ||
				f.in.TenantId != nil || string(f.in.Payload) != `{"samekey":{"resume":{"pk":"v1##p","owner":"o","ver":3}}}` {
				t.Errorf("invoked %s as %s with %s", *f.in.FunctionName, f.in.InvocationType, f.in.Payload)
			}
		})
	}
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	ticket := ticketFor("api", "jane")
	r := completer.InProcess(func(_ context.Context, got jobs.Ticket) error {
		if got != ticket {
			t.Errorf("got %+v", got)
		}
		return jobs.ErrMoved
	})
	if o := r.Resume(t.Context(), ticket); o.Kind != completer.TicketMoved {
		t.Errorf("got %+v", o)
	}
}
