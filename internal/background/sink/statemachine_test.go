package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/testkit/statestest"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/lambda"
)

const (
	shipping = "arn:aws:states:us-east-1:123456789012:stateMachine:shipping"
	mailing  = "arn:aws:states:us-east-1:123456789012:stateMachine:mailing"
)

// machine is a sink to a state machine of a stand-in, by the SDK's client. lose makes the
// next answer of that action be lost.
func machine(t *testing.T, states *statestest.States, arn string, lose *string) jobs.Sink {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if lose != nil && *lose != "" && strings.HasSuffix(r.Header.Get("X-Amz-Target"), *lose) {
			*lose = ""
			states.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		states.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	return sink.NewStateMachine(sfn.New(sfn.Options{
		Region: "us-east-1", BaseEndpoint: &srv.URL, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{},
	}), arn)
}

func standard() *statestest.States {
	return &statestest.States{Types: map[string]string{shipping: "STANDARD", mailing: "EXPRESS"}}
}

func inputOf(t *testing.T, d jobs.Delivery) string {
	t.Helper()
	b, err := json.Marshal(lambda.JobEvent{Key: d.JobID, Operation: d.Operation, Kind: d.Kind, Args: d.Args})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A job starts one execution, however often it comes: while the execution runs, when it has
// ended, after an answer that was lost, with a trace context of another delivery, by a
// version or an alias.
func TestJobStartsOneExecution(t *testing.T) {
	t.Parallel()
	states, lose := standard(), "StartExecution"
	s := machine(t, states, shipping, &lose)
	job := deliveries(1)
	if got := verdicts(s.Deliver(t.Context(), job), 1); got != "d" {
		t.Fatalf("a lost answer is %v", got)
	}
	again := func(what string, s jobs.Sink, d jobs.Delivery) {
		t.Helper()
		if errs := s.Deliver(t.Context(), []jobs.Delivery{d}); verdictOf(errors.Join(errs...)) != taken {
			t.Errorf("%s: %v", what, errs)
		}
	}
	again("it runs", s, job[0])
	states.End()
	again("it has ended", s, job[0])
	traced := job[0]
	traced.Trace = trace.Context{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	again("another trace", s, traced)
	again("an alias", machine(t, states, shipping+":live", nil), job[0])
	if diff := cmp.Diff([]string{inputOf(t, job[0])}, states.Inputs()); diff != "" {
		t.Errorf("executions (-want +got):\n%s", diff)
	}
}

// Args that were made by hand are compared as they were sent: JSON escapes characters of HTML.
func TestArgsByHandStartOneExecution(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"of HTML":     `{"url":"a?b=1&c=<x>"}`,
		"escaped":     `{"url":"a?b=1\u0026c=\u003Cx\u003e"}`,
		"separators":  "{\"text\":\"a\u2028b\u2029c\"}",
		"white space": "{ \"n\" :\t1.0,\n\"m\": null }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := standard()
			s, job := machine(t, states, shipping, nil), deliveries(1)
			job[0].Args = json.RawMessage(args)
			for _, what := range []string{"at first", "it has ended"} {
				if errs := s.Deliver(t.Context(), job); verdictOf(errors.Join(errs...)) != taken {
					t.Errorf("%s: %v", what, errs)
				}
				states.End()
			}
			if n := len(states.Inputs()); n != 1 {
				t.Errorf("%d executions", n)
			}
		})
	}
}

// namesake is Step Functions with an execution of each name.
type namesake struct{ input string }

func (namesake) DescribeStateMachine(context.Context, *sfn.DescribeStateMachineInput, ...func(*sfn.Options)) (*sfn.DescribeStateMachineOutput, error) {
	return &sfn.DescribeStateMachineOutput{Type: types.StateMachineTypeStandard}, nil
}

func (namesake) StartExecution(context.Context, *sfn.StartExecutionInput, ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	return nil, &types.ExecutionAlreadyExists{}
}

func (n namesake) DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error) {
	return &sfn.DescribeExecutionOutput{Input: &n.input}, nil
}

// A job that is too deep to be read again is no execution's: it isn't taken for delivered.
func TestJobThatCantBeCompared(t *testing.T) {
	t.Parallel()
	job := deliveries(1)
	job[0].Args = json.RawMessage(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))
	if got := verdicts(sink.NewStateMachine(namesake{`{}`}, shipping).Deliver(t.Context(), job), 1); got != "c" {
		t.Errorf("got %v", got)
	}
}

// A name that another input has is the job's fault, and says so: it is parked. Other jobs go
// on.
func TestExecutionOfAnotherInput(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(*jobs.Delivery){
		"args":      func(d *jobs.Delivery) { d.Args = json.RawMessage(`{"to":"z"}`) },
		"kind":      func(d *jobs.Delivery) { d.Kind = "sms" },
		"operation": func(d *jobs.Delivery) { d.Operation = "op-z" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := standard()
			s := machine(t, states, shipping, nil)
			batch := deliveries(2)
			was := batch[0]
			other(&was)
			if errs := s.Deliver(t.Context(), []jobs.Delivery{was}); verdictOf(errors.Join(errs...)) != taken {
				t.Fatal(errs)
			}
			errs := s.Deliver(t.Context(), batch)
			if diff := cmp.Diff("ct", verdicts(errs, 2)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if errs[0] == nil || !strings.Contains(errs[0].Error(), "another input") || len(states.Inputs()) != 2 {
				t.Errorf("%v, %d executions", errs[0], len(states.Inputs()))
			}
		})
	}
	t.Run("a stranger's", func(t *testing.T) {
		t.Parallel()
		states, batch := standard(), deliveries(3)
		for name, input := range map[string]string{
			"op-a_0_0": `"hello"`, "op-b_0_0": strings.Replace(inputOf(t, batch[1]), "{", `{"traceparent":7,`, 1), "op-c_0_0": strings.Replace(inputOf(t, batch[2]), "op-c.0.0", "op-c_0_0", 1),
		} {
			if _, err := states.Start(shipping, name, input); err != nil {
				t.Fatal(err)
			}
		}
		if got := verdicts(machine(t, states, shipping, nil).Deliver(t.Context(), batch), 3); got != "ccc" {
			t.Errorf("got %v", got)
		}
	})
}

// Whatever keeps a state machine from taking any job leaves the jobs where they are.
func TestStateMachineThatTakesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		arn    string
		denied []string
		taken  bool // the name, by an execution that has ended
		says   string
	}{
		"express":                  {arn: mailing, says: "its type is EXPRESS"},
		"missing":                  {arn: shipping + "s", says: "StateMachineDoesNotExist"},
		"may not look at it":       {arn: shipping, denied: []string{"DescribeStateMachine"}, says: "states:DescribeStateMachine"},
		"may not start":            {arn: shipping, denied: []string{"StartExecution"}, says: "states:StartExecution"},
		"may not look at an input": {arn: shipping, denied: []string{"DescribeExecution"}, taken: true, says: "states:DescribeExecution"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := standard()
			states.Denied = tt.denied
			batch := deliveries(3)
			if tt.taken {
				if _, err := states.Start(shipping, "op-a_0_0", inputOf(t, batch[0])); err != nil {
					t.Fatal(err)
				}
				states.End()
			}
			before := len(states.Inputs())
			errs := machine(t, states, tt.arn, nil).Deliver(t.Context(), batch)
			if got := verdicts(errs, 3); got[0] != 'd' || strings.ContainsAny(got, "tc") {
				t.Errorf("got %v", got)
			}
			if !strings.Contains(errors.Join(errs...).Error(), tt.says) || len(states.Inputs()) != before {
				t.Errorf("%v, %d executions", errs, len(states.Inputs()))
			}
		})
	}
}

// An input over the documented limit is the job's fault, and one of the limit is sent.
func TestInputOfAnExecution(t *testing.T) {
	t.Parallel()
	batch := deliveries(2)
	rest := len(inputOf(t, jobs.Delivery{JobID: batch[0].JobID, Operation: batch[0].Operation, Kind: batch[0].Kind, Args: json.RawMessage(`""`)}))
	const limit = 262_144
	sized(batch, limit-rest+2, limit-rest+3)
	got := verdicts(machine(t, standard(), shipping, nil).Deliver(t.Context(), batch), 2)
	if diff := cmp.Diff("tc", got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Alone, and again: nobody else is suspected.
	s := machine(t, standard(), shipping, nil)
	for range 2 {
		for _, i := range []int{1, 1} {
			if got := verdicts(s.Deliver(t.Context(), batch[i:i+1]), 1); got != counted {
				t.Errorf("alone: %v", got)
			}
		}
	}
}

// An execution costs a call for each job, and one more in a process; a name that is taken
// costs one more.
func TestCallsPerExecution(t *testing.T) {
	t.Parallel()
	states := standard()
	s := machine(t, states, shipping, nil)
	if s.Deliver(t.Context(), nil); len(states.Calls()) != 0 {
		t.Errorf("nothing costs %v", states.Calls())
	}
	for range 2 {
		s.Deliver(t.Context(), deliveries(2))
		states.End()
	}
	want := []string{
		"DescribeStateMachine", "StartExecution", "StartExecution",
		"StartExecution", "DescribeExecution", "StartExecution", "DescribeExecution",
	}
	if diff := cmp.Diff(want, states.Calls()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// durable is Lambda for a durable function: a name belongs to one payload.
type durable struct{ payloads map[string]string }

func (f *durable) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	name, payload := aws.ToString(in.DurableExecutionName), string(in.Payload)
	if was, ok := f.payloads[name]; ok && was != payload {
		return nil, answer(http.StatusConflict, "DurableExecutionAlreadyStartedException")
	}
	f.payloads[name] = payload
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// A job starts one durable execution, named by its id within Lambda's alphabet. A name of
// another payload is the job's fault.
func TestJobStartsOneDurableExecution(t *testing.T) {
	t.Parallel()
	f := &durable{map[string]string{}}
	s := sink.NewFunction(f, "arn:aws:lambda:us-east-1:123456789012:function:ship:live", func(o *sink.FunctionOptions) { o.Durable = true })
	batch := deliveries(3)
	batch[1].JobID = "a name that is none/" + strings.Repeat("x", 90)
	for range 2 {
		if errs := s.Deliver(t.Context(), batch); verdictOf(errors.Join(errs...)) != taken {
			t.Fatal(errs)
		}
	}
	if len(f.payloads) != 3 || f.payloads["op-a_0_0"] == "" {
		t.Errorf("got %v", f.payloads)
	}
	for name := range f.payloads {
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("Lambda takes no %q", name)
		}
	}
	batch[0].Args = json.RawMessage(`{"to":"z"}`)
	if diff := cmp.Diff("ctt", verdicts(s.Deliver(t.Context(), batch), 3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	plain := &tenantsNoName{}
	sink.NewFunction(plain, "mails").Deliver(t.Context(), batch[:1])
	if plain.named {
		t.Error("a function that isn't durable gets a name")
	}
}

type tenantsNoName struct{ named bool }

func (f *tenantsNoName) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	f.named = in.DurableExecutionName != nil
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// The errors of StartExecution, by their documented codes.
func TestErrorsOfExecutions(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"ThrottlingException": down, "ExecutionLimitExceeded": down, "StateMachineDeleting": down, "StateMachineDoesNotExist": down, "InvalidArn": down,
		"KmsAccessDeniedException": down, "KmsInvalidStateException": down, "KmsThrottlingException": down, "ServiceUnavailable": down,
		"InvalidExecutionInput": counted, "InvalidName": counted, "ValidationException": counted,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f := &fake{whole: func([]string) error { return answer(http.StatusBadRequest, code) }}
			if got := verdicts(sink.NewStateMachine(fakeStates{f}, shipping).Deliver(t.Context(), deliveries(1)), 1); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
