package completer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
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

func TestInvoke(t *testing.T) {
	t.Parallel()
	crashed := "Unhandled"
	for name, test := range map[string]struct {
		out  *awslambda.InvokeOutput
		err  error
		want lambda.Outcome
	}{
		"its answer": {
			&awslambda.InvokeOutput{StatusCode: 200, Payload: lambda.EncodeOutcome(lambda.Outcome{Kind: lambda.OutcomeInFlight, RetryAfter: time.Second})}, nil,
			lambda.Outcome{Kind: lambda.OutcomeInFlight, RetryAfter: time.Second},
		},
		"no answer": {nil, errors.New("timeout"), lambda.Outcome{Kind: lambda.OutcomeFailed, Error: "timeout"}},
		"a crash": {
			&awslambda.InvokeOutput{StatusCode: 200, FunctionError: &crashed, Payload: []byte(`{"errorMessage":"Task timed out"}`)}, nil,
			lambda.Outcome{Kind: lambda.OutcomeFailed, Error: "Task timed out"},
		},
		"a crash that looks like an answer": {
			&awslambda.InvokeOutput{StatusCode: 200, FunctionError: &crashed, Payload: lambda.EncodeOutcome(lambda.Outcome{Kind: lambda.OutcomeDone})}, nil,
			lambda.Outcome{Kind: lambda.OutcomeFailed, Error: "Unhandled"},
		},
		"a function that knows no envelopes": {
			&awslambda.InvokeOutput{StatusCode: 200, Payload: []byte(`{"statusCode":400,"body":"no route"}`)}, nil,
			lambda.Outcome{Kind: lambda.OutcomeFailed, Error: "not a sound envelope"},
		},
		"nothing at all": {&awslambda.InvokeOutput{StatusCode: 200}, nil, lambda.Outcome{Kind: lambda.OutcomeFailed, Error: "not a sound envelope"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeLambda{out: test.out, err: test.err}
			got := completer.Invoke(f, "api:live").Resume(t.Context(), idem.Ticket{PK: "v1##p", Owner: "o", Ver: 3})
			if !strings.Contains(got.Error, test.want.Error) {
				t.Errorf("error %q, want %q in it", got.Error, test.want.Error)
			}
			got.Error, test.want.Error = "", ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if *f.in.FunctionName != "api:live" || f.in.InvocationType != types.InvocationTypeRequestResponse ||
				string(f.in.Payload) != `{"samekey":{"resume":{"pk":"v1##p","owner":"o","ver":3}}}` {
				t.Errorf("invoked %s as %s with %s", *f.in.FunctionName, f.in.InvocationType, f.in.Payload)
			}
		})
	}
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	ticket := idem.Ticket{PK: "v1##p", Owner: "o", Ver: 3}
	r := completer.InProcess(func(_ context.Context, got idem.Ticket) error {
		if got != ticket {
			t.Errorf("got %+v", got)
		}
		return idem.ErrMoved
	})
	if o := r.Resume(t.Context(), ticket); o.Kind != lambda.OutcomeMoved {
		t.Errorf("got %+v", o)
	}
}

// Functions that share a table get the tickets of their own records, and no
// others.
func TestByNamespace(t *testing.T) {
	t.Parallel()
	kind := func(k lambda.OutcomeKind) completer.Resumer { return always(lambda.Outcome{Kind: k}) }
	r := completer.ByNamespace{"rides": kind("rides"), "": kind("none")}
	for _, namespace := range []string{"rides", "", "mails", "ride"} {
		store := &idem.MemoryStore{}
		engine := idem.New(store, func(o *idem.Options) { o.Namespace = namespace })
		if _, err := engine.Do(t.Context(), idem.Request{Key: "k", Method: "POST"}, func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 200}, nil
		}); err != nil {
			t.Fatal(err)
		}
		want := map[string]lambda.OutcomeKind{"rides": "rides", "": "none"}[namespace]
		if want == "" {
			want = lambda.OutcomeFailed
		}
		for _, rec := range store.Records() {
			if o := r.Resume(t.Context(), idem.TicketFor(rec)); o.Kind != want {
				t.Errorf("%q (%s): got %+v, want %s", namespace, rec.PK, o, want)
			}
		}
	}
	if o := r.Resume(t.Context(), idem.Ticket{PK: "nonsense"}); o.Kind != "none" && o.Kind != lambda.OutcomeFailed {
		t.Errorf("got %+v", o)
	}
}
