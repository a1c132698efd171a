package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bustypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/lambda"
)

// sinks are all over one fake.
func sinks(f *fake) map[string]jobs.Sink {
	return map[string]jobs.Sink{
		"queue":      sink.NewQueue(fakeSQS{f}, "https://sqs/1/jobs"),
		"fifo queue": sink.NewQueue(fakeSQS{f}, "https://sqs/1/jobs.fifo"),
		"topic":      sink.NewTopic(fakeSNS{f}, "arn:aws:sns:us-east-1:1:jobs"),
		"fifo topic": sink.NewTopic(fakeSNS{f}, "arn:aws:sns:us-east-1:1:jobs.fifo"),
		"bus":        sink.NewBus(fakeBus{f}, "default", "rides"),
		"function":   sink.NewFunction(fakeLambda{f}, "mails"),
		"machine":    sink.NewStateMachine(fakeStates{f}, shipping),
	}
}

// single reports whether a sink makes a call for each job.
func single(name string) bool { return name == "function" || name == "machine" }

// wired are the sinks with the SDK's clients.
func wired(cfg aws.Config, url string) map[string]jobs.Sink {
	return map[string]jobs.Sink{
		"queue":    sink.NewQueue(sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true }), url+"/1/jobs"),
		"topic":    sink.NewTopic(sns.NewFromConfig(cfg), "arn:aws:sns:us-east-1:1:jobs"),
		"bus":      sink.NewBus(eventbridge.NewFromConfig(cfg), "default", "rides"),
		"function": sink.NewFunction(awslambda.NewFromConfig(cfg), "mails"),
		"durable":  sink.NewFunction(awslambda.NewFromConfig(cfg), "mails:live", func(o *sink.FunctionOptions) { o.Durable = true }),
	}
}

func response(status int) *http.Response { return &http.Response{StatusCode: status} }

type fakeSQS struct{ *fake }

func (f fakeSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = aws.ToString(e.MessageAttributes[lambda.KeyAttribute].StringValue)
	}
	if err := f.call(ids); err != nil || f.mute {
		return out, err
	}
	f.note(in)
	for i := range slices.Backward(ids) { // results come in any order
		if code, sender := f.judge(ids[i]); code != "" {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: in.Entries[i].Id, Code: &code, SenderFault: sender})
		} else {
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: in.Entries[i].Id})
		}
	}
	return out, nil
}

type fakeSNS struct{ *fake }

func (f fakeSNS) PublishBatch(_ context.Context, in *sns.PublishBatchInput, _ ...func(*sns.Options)) (*sns.PublishBatchOutput, error) {
	out := &sns.PublishBatchOutput{}
	ids := make([]string, len(in.PublishBatchRequestEntries))
	for i, e := range in.PublishBatchRequestEntries {
		ids[i] = aws.ToString(e.MessageAttributes[lambda.KeyAttribute].StringValue)
	}
	if err := f.call(ids); err != nil || f.mute {
		return out, err
	}
	f.note(in)
	for i := range slices.Backward(ids) {
		id := in.PublishBatchRequestEntries[i].Id
		if code, sender := f.judge(ids[i]); code != "" {
			out.Failed = append(out.Failed, snstypes.BatchResultErrorEntry{Id: id, Code: &code, SenderFault: sender})
		} else {
			out.Successful = append(out.Successful, snstypes.PublishBatchResultEntry{Id: id})
		}
	}
	return out, nil
}

type fakeBus struct{ *fake }

func (f fakeBus) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	out := &eventbridge.PutEventsOutput{}
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		var job lambda.JobEvent
		if err := json.Unmarshal([]byte(aws.ToString(e.Detail)), &job); err != nil {
			return nil, err
		}
		ids[i] = job.Key
	}
	if err := f.call(ids); err != nil || f.mute {
		return out, err
	}
	f.note(in)
	for _, id := range ids { // results come in the order of the entries
		e := bustypes.PutEventsResultEntry{}
		if code, _ := f.judge(id); code != "" {
			e.ErrorCode = &code
		}
		out.Entries = append(out.Entries, e)
	}
	return out, nil
}

type fakeLambda struct{ *fake }

func (f fakeLambda) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	var job lambda.JobEvent
	if err := json.Unmarshal(in.Payload, &job); err != nil {
		return nil, err
	}
	if err := f.call([]string{job.Key}); err != nil {
		return nil, err
	}
	f.note(in)
	out := &awslambda.InvokeOutput{StatusCode: 202}
	if f.mute {
		out.StatusCode = 200
	}
	return out, nil
}

type fakeStates struct{ *fake }

func (f fakeStates) StartExecution(_ context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	var job lambda.JobEvent
	if err := json.Unmarshal([]byte(aws.ToString(in.Input)), &job); err != nil {
		return nil, err
	}
	if err := f.call([]string{job.Key}); err != nil {
		return nil, err
	}
	f.note(in)
	out := &sfn.StartExecutionOutput{}
	if !f.mute {
		out.ExecutionArn = aws.String("arn")
	}
	return out, nil
}

func (fakeStates) DescribeStateMachine(context.Context, *sfn.DescribeStateMachineInput, ...func(*sfn.Options)) (*sfn.DescribeStateMachineOutput, error) {
	return &sfn.DescribeStateMachineOutput{Type: sfntypes.StateMachineTypeStandard}, nil
}

func (fakeStates) DescribeExecution(context.Context, *sfn.DescribeExecutionInput, ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error) {
	return nil, errors.New("no such execution")
}

func (f fakeBus) DescribeEventBus(context.Context, *eventbridge.DescribeEventBusInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeEventBusOutput, error) {
	return &eventbridge.DescribeEventBusOutput{}, nil
}
