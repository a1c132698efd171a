package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/testkit/statestest"
	"github.com/samekey/samekey/lambda"
)

const (
	shipping   = "arn:aws:states:eu-west-1:123456789012:stateMachine:shipping"
	ticketsARN = "arn:aws:sqs:eu-west-1:123456789012:tickets"
)

var _ sink.StateMachineAPI = link{}

// laterBy is how long after an order its customer is reminded: a queue can hide the ticket for
// so long, or only a schedule can keep it. At most two hours less than a record lives, since
// the clocks of processes differ.
func (w *world) laterBy(order string) time.Duration {
	minutes := int(w.hash("later", order) % 240)
	if minutes%2 == 0 {
		minutes %= 15
	}
	return time.Duration(minutes)*time.Minute + 500*time.Microsecond
}

// notBefore checks that a job is handed on after its time only.
func (w *world) notBefore(id string) {
	if j := w.ledger.jobs[id]; j != nil && time.Now().Before(j.at) {
		w.fail("the job %s of %s is delivered %s before its time", j.kind, j.order, time.Until(j.at))
	}
}

// sent is how often a job's destination has accepted it.
func (w *world) sent(j *job, id string) int {
	if j.kind == "ship" {
		return w.states.accepted[id]
	}
	return w.queues[jobsURL].sent[id]
}

// machines are the state machines, and what they were asked for.
type machines struct {
	*statestest.States
	accepted map[string]int // answers of StartExecution without an error, by the job's id
}

func newMachines() *machines {
	return &machines{&statestest.States{Types: map[string]string{shipping: "STANDARD"}}, make(map[string]int)}
}

// started is the number of executions of a job.
func (m *machines) started(id string) (n int) {
	for _, input := range m.Inputs() {
		if jobOf(input) == id {
			n++
		}
	}
	return n
}

func jobOf(input string) string {
	var job lambda.JobEvent
	if err := json.Unmarshal([]byte(input), &job); err != nil {
		panic(err)
	}
	return job.Key
}

// meets has a call of a service meet what calls of services meet.
func (l link) meets(c *call, apply func(string) (any, error)) {
	w := l.sb.w
	delay := w.between(time.Millisecond, 15*time.Millisecond)
	switch {
	case l.sb.crashes(c, apply):
	case w.fires(requestLost, 0.01):
		w.after(time.Second, func() { c.give(nil, errNet) })
	case w.fires(throttled, 0.01):
		w.after(delay, func() {
			c.give(nil, &smithy.GenericAPIError{Code: "ThrottlingException", Message: "simulated", Fault: smithy.FaultClient})
		})
	case w.fires(answerLost, 0.05):
		w.after(delay, func() { _, _ = apply(", and the answer is lost") })
		w.after(2*time.Second, func() { c.give(nil, errTimeout) })
	default:
		w.after(delay, func() { c.give(apply("")) })
	}
}

// StartExecution is the SDK's call.
func (l link) StartExecution(ctx context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	w := l.sb.w
	id := jobOf(*in.Input)
	v, err := w.ask(ctx, actorOf(ctx, l.sb), "Start", "shipping", l.sb, func(c *call) {
		l.meets(c, func(how string) (any, error) {
			arn, err := w.states.Start(*in.StateMachineArn, *in.Name, *in.Input)
			if _, taken := errors.AsType[*statestest.Error](err); taken {
				return nil, &sfntypes.ExecutionAlreadyExists{Message: aws.String(err.Error())}
			}
			w.progress()
			w.note(c.actor, "an execution starts%s", how)
			w.states.accepted[id]++
			if w.likely(0.3) {
				w.states.End() // a job that comes again finds its execution ended
			}
			return &sfn.StartExecutionOutput{ExecutionArn: &arn}, nil
		})
	})
	out, _ := v.(*sfn.StartExecutionOutput)
	return out, err
}

// DescribeStateMachine is the SDK's call.
func (l link) DescribeStateMachine(ctx context.Context, _ *sfn.DescribeStateMachineInput, _ ...func(*sfn.Options)) (*sfn.DescribeStateMachineOutput, error) {
	v, err := l.sb.w.ask(ctx, actorOf(ctx, l.sb), "Describe", "shipping", l.sb, func(c *call) {
		l.meets(c, func(string) (any, error) {
			return &sfn.DescribeStateMachineOutput{Type: sfntypes.StateMachineTypeStandard}, nil
		})
	})
	out, _ := v.(*sfn.DescribeStateMachineOutput)
	return out, err
}

// DescribeExecution is the SDK's call.
func (l link) DescribeExecution(ctx context.Context, in *sfn.DescribeExecutionInput, _ ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error) {
	v, err := l.sb.w.ask(ctx, actorOf(ctx, l.sb), "Describe", "execution", l.sb, func(c *call) {
		l.meets(c, func(string) (any, error) {
			input, err := l.sb.w.states.Input(*in.ExecutionArn)
			return &sfn.DescribeExecutionOutput{Input: &input}, err
		})
	})
	out, _ := v.(*sfn.DescribeExecutionOutput)
	return out, err
}

// CreateSchedule is the SDK's call. A schedule sends its message once, within a minute after
// its time, and is gone.
func (l link) CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	w := l.sb.w
	var ticket struct{ PK string }
	if err := json.Unmarshal([]byte(*in.Target.Input), &ticket); err != nil {
		panic(err)
	}
	at, err := time.Parse("at(2006-01-02T15:04:05)", *in.ScheduleExpression)
	if err != nil || *in.Target.Arn != ticketsARN || in.ActionAfterCompletion != schedulertypes.ActionAfterCompletionDelete {
		panic("not a schedule of a ticket")
	}
	v, err := w.put(ctx, &call{actor: actorOf(ctx, l.sb), op: "Schedule", about: ticket.PK, rank: *in.ScheduleExpression, sandbox: l.sb, take: func(c *call) {
		l.meets(c, func(how string) (any, error) {
			if w.schedule[*in.Name] {
				return nil, &schedulertypes.ConflictException{Message: aws.String(*in.Name)}
			}
			w.schedule[*in.Name] = true
			w.scheduled++
			w.progress()
			w.note(c.actor, "a schedule for %s%s", w.name(ticket.PK), how)
			w.at(at.Add(w.between(0, time.Minute)), func() {
				delete(w.schedule, *in.Name)
				w.queues[ticketsURL].add(&message{body: *in.Target.Input, visible: time.Now()})
			})
			return &scheduler.CreateScheduleOutput{}, nil
		})
	}})
	out, _ := v.(*scheduler.CreateScheduleOutput)
	return out, err
}
