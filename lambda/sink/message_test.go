package sink_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/lambda"
)

// message is what a consumer sees of a job.
type message struct {
	Body, Key, Kind, Dedup, Group, To string
}

// optional is a text that services don't take if it is there, and empty.
func optional(s *string) string {
	if s != nil && *s == "" {
		return "nothing"
	}
	return aws.ToString(s)
}

func sent(t *testing.T, f *fake) message {
	t.Helper()
	switch in := f.last.(type) {
	case *sqs.SendMessageBatchInput:
		e := in.Entries[0]
		return message{
			aws.ToString(e.MessageBody), aws.ToString(e.MessageAttributes[lambda.KeyAttribute].StringValue),
			aws.ToString(e.MessageAttributes[lambda.KindAttribute].StringValue), optional(e.MessageDeduplicationId),
			optional(e.MessageGroupId), aws.ToString(in.QueueUrl),
		}
	case *sns.PublishBatchInput:
		e := in.PublishBatchRequestEntries[0]
		return message{
			aws.ToString(e.Message), aws.ToString(e.MessageAttributes[lambda.KeyAttribute].StringValue),
			aws.ToString(e.MessageAttributes[lambda.KindAttribute].StringValue), optional(e.MessageDeduplicationId),
			optional(e.MessageGroupId), aws.ToString(in.TopicArn),
		}
	case *eventbridge.PutEventsInput:
		e := in.Entries[0]
		return message{Body: aws.ToString(e.Detail), Kind: aws.ToString(e.DetailType), To: aws.ToString(e.EventBusName) + " from " + aws.ToString(e.Source)}
	case *sfn.StartExecutionInput:
		return message{Body: aws.ToString(in.Input), To: aws.ToString(in.StateMachineArn), Dedup: aws.ToString(in.Name)}
	case *awslambda.InvokeInput:
		if in.InvocationType != lambdatypes.InvocationTypeEvent {
			t.Errorf("invoked as %s", in.InvocationType)
		}
		return message{Body: string(in.Payload), To: aws.ToString(in.FunctionName)}
	}
	t.Fatalf("a %T", f.last)
	return message{}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	job := jobs.Delivery{JobID: "op.1.0", Operation: "op", Kind: "mail", Args: json.RawMessage(`{"to":"a<b"}`), Group: "jane"}
	const asJob = `{"idempotency_key":"op.1.0","operation":"op","kind":"mail","args":{"to":"a\u003cb"}}`
	want := map[string]message{
		"queue":      {Body: `{"to":"a<b"}`, Key: "op.1.0", Kind: "mail", To: "https://sqs/1/jobs"},
		"fifo queue": {Body: `{"to":"a<b"}`, Key: "op.1.0", Kind: "mail", Dedup: "op.1.0", Group: "jane", To: "https://sqs/1/jobs.fifo"},
		"topic":      {Body: `{"to":"a<b"}`, Key: "op.1.0", Kind: "mail", To: "arn:aws:sns:us-east-1:1:jobs"},
		"fifo topic": {Body: `{"to":"a<b"}`, Key: "op.1.0", Kind: "mail", Dedup: "op.1.0", Group: "jane", To: "arn:aws:sns:us-east-1:1:jobs.fifo"},
		"bus":        {Body: asJob, Kind: "mail", To: "default from rides"},
		"function":   {Body: asJob, To: "mails"},
		"machine":    {Body: asJob, To: shipping, Dedup: "op_1_0"},
	}
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		if errs := s.Deliver(t.Context(), []jobs.Delivery{job}); verdictOf(errlist.Pad(errs, 1)[0]) != taken {
			t.Fatal(errs)
		}
		if diff := cmp.Diff(want[name], sent(t, f)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A job's trace context is an attribute of its message, or a member of its event: the
// same on every delivery, so that consumers which compare events see no difference.
func TestTraceContextGoesWithAJob(t *testing.T) {
	t.Parallel()
	const parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1"
	const asJob = `{"idempotency_key":"op.1.0","operation":"op","kind":"mail","args":1,"traceparent":"` + parent + `","tracestate":"a=1"}`
	job := jobs.Delivery{
		JobID: "op.1.0", Operation: "op", Kind: "mail", Args: json.RawMessage(`1`), Group: "jane", Trace: trace.Context{Parent: parent, State: state},
	}
	each(t, func(t *testing.T, _ string, f *fake, s jobs.Sink) {
		t.Helper()
		for n, c := range []trace.Context{{}, {Parent: parent}, {State: state}} { // of which the last is none
			one := job
			one.Trace = c
			s.Deliver(t.Context(), []jobs.Delivery{one})
			if in, ok := f.last.(*sqs.SendMessageBatchInput); ok && len(in.Entries[0].MessageAttributes) != 2+n%2 {
				t.Errorf("%+v becomes %+v", c, in.Entries[0].MessageAttributes)
			}
		}
		if errs := s.Deliver(t.Context(), []jobs.Delivery{job}); verdictOf(errlist.Pad(errs, 1)[0]) != taken {
			t.Fatal(errs)
		}
		switch in := f.last.(type) {
		case *sqs.SendMessageBatchInput:
			a := in.Entries[0].MessageAttributes
			if len(a) != 4 || *a["traceparent"].StringValue != parent || *a["tracestate"].StringValue != state || *a["traceparent"].DataType != "String" {
				t.Errorf("attributes %+v", a)
			}
		case *sns.PublishBatchInput:
			a := in.PublishBatchRequestEntries[0].MessageAttributes
			if len(a) != 4 || *a["traceparent"].StringValue != parent || *a["tracestate"].StringValue != state {
				t.Errorf("attributes %+v", a)
			}
		default:
			if body := sent(t, f).Body; body != asJob {
				t.Errorf("got %s, want %s", body, asJob)
			}
		}
	})
}

// A message group id is 1 to 128 characters of ASCII: other groups get a name
// that is as good, the same for the same group.
func TestMessageGroups(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("g", 128)
	seen := make(map[string]string)
	for g, kept := range map[string]bool{
		"jane@example.com": true, "!~": true, long: true, long + "g": false, "jané": false, "two words": false, "line\nfeed": false, long + "h": false,
	} {
		f := &fake{}
		s := sinks(f)["fifo queue"]
		s.Deliver(t.Context(), deliveries(1, g))
		got := sent(t, f).Group
		if (got == g) != kept || len(got) < 1 || len(got) > 128 {
			t.Errorf("group %q becomes %q", g, got)
		}
		for _, c := range got {
			if c <= ' ' || c > '~' {
				t.Errorf("group %q becomes %q", g, got)
			}
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q become the same", g, other)
		}
		seen[got] = g
		s.Deliver(t.Context(), deliveries(1, g))
		if again := sent(t, f).Group; again != got {
			t.Errorf("group %q becomes %q, then %q", g, got, again)
		}
	}
}

// SQS puts U+FFFD in the place of two characters that JSON may hold as they are.
func TestCharactersThatQueuesDoNotTake(t *testing.T) {
	t.Parallel()
	const text = "a\uFFFEb\uFFFFc\U0001F600\u007f"
	args, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"queue", "topic"} {
		f := &fake{}
		job := deliveries(1)
		job[0].Args = args
		sinks(f)[name].Deliver(t.Context(), job)
		body := sent(t, f).Body
		for _, c := range body {
			if c < ' ' || c == '\uFFFE' || c == '\uFFFF' {
				t.Errorf("%s: %q holds %q", name, body, c)
			}
		}
		var got string
		if err := json.Unmarshal([]byte(body), &got); err != nil || got != text {
			t.Errorf("%s: %q is read as %q, %v", name, body, got, err)
		}
	}
}
