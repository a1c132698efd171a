package sink_test

import (
	"context"
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
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/base/errlist"
	"github.com/samekey/samekey/internal/trace"
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

// A job names no destination: whatever its data says, it goes where the program has
// said. Otherwise a client whose input becomes a job could have a function call any
// address with the function's role.
func TestJobsChooseNoDestination(t *testing.T) {
	t.Parallel()
	const evil = "http://169.254.169.254/latest/meta-data"
	args, err := json.Marshal(map[string]any{
		"QueueUrl": evil, "TopicArn": "arn:aws:sns:us-east-1:2:evil", "FunctionName": "evil", "EventBusName": "evil", "url": evil, "Endpoint": evil,
	})
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, name string, f *fake, s jobs.Sink) {
		t.Helper()
		honest := &fake{}
		if errs := sinks(honest)[name].Deliver(t.Context(), deliveries(1)); verdictOf(errlist.Pad(errs, 1)[0]) != taken {
			t.Fatal(errs)
		}
		want := sent(t, honest).To
		for _, d := range []jobs.Delivery{
			{JobID: "op.1.0", Operation: "op", Kind: "mail", Args: args},
			{JobID: evil, Operation: evil, Kind: "mail", Args: args, Group: evil},
			{JobID: "op.1.0", Operation: "op", Kind: evil, Args: args},
			{JobID: "op.1.0", Operation: "op", Kind: "arn:aws:lambda:us-east-1:2:function:evil", Args: args},
		} {
			s.Deliver(t.Context(), []jobs.Delivery{d}) // a refusal is as good
			if f.last == nil {
				continue
			}
			if to := sent(t, f).To; to != want || strings.Contains(to, "evil") {
				t.Errorf("%+v goes to %s, want %s", d, to, want)
			}
		}
	})
}

func tenantOf(d jobs.Delivery) string { return d.Tenant }

func fairQueue(o *sink.QueueOptions) { o.FairBy = tenantOf }

func fairTopic(o *sink.TopicOptions) { o.FairBy = tenantOf }

// In a standard queue, and through a standard topic, a message's group is whose it
// is, and nothing of order: all go in one call.
func TestFairQueues(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]func(*fake) jobs.Sink{
		"queue": func(f *fake) jobs.Sink { return sink.NewQueue(fakeSQS{f}, "https://sqs/1/jobs", fairQueue) },
		"topic": func(f *fake) jobs.Sink { return sink.NewTopic(fakeSNS{f}, "arn:aws:sns:us-east-1:1:jobs", fairTopic) },
	} {
		for tenant, want := range map[string]string{"jane": "jane", "": "", "two words": "oD8dYRZF61OtFsGvVGygeS3IhFBbq1ft6A9NrWuRHTo"} {
			f := &fake{}
			batch := deliveries(2, "x", "x")
			batch[0].Tenant, batch[1].Tenant = tenant, tenant
			s(f).Deliver(t.Context(), batch)
			if m := sent(t, f); m.Group != want || m.Dedup != "" || names(f.calls) != "ab" {
				t.Errorf("%s: tenant %q: %+v in calls %q", name, tenant, m, names(f.calls))
			}
		}
	}
}

// takesAll is Lambda, which queues an event without a payload as well.
type takesAll struct{ payloads []string }

func (l *takesAll) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	l.payloads = append(l.payloads, string(in.Payload))
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// A job that can't be made a payload isn't handed on as an event without one, which
// Lambda would take: nobody would ever do it.
func TestFunctionGetsNoEmptyEvent(t *testing.T) {
	t.Parallel()
	l := &takesAll{}
	batch := deliveries(3)
	batch[1].Args = json.RawMessage(`{"to":`)
	got := verdicts(sink.NewFunction(l, "mails").Deliver(t.Context(), batch), 3)
	if want := "tct"; got != want || len(l.payloads) != 2 {
		t.Errorf("got %v by %d calls, want %v by 2", got, len(l.payloads), want)
	}
	for _, i := range []int{0, 2} { // none is taken, and each counts
		batch[i].Args = batch[1].Args
	}
	for _, name := range []string{"function", "machine"} {
		f := &fake{}
		if got := deliver(t, sinks(f)[name], batch); got != "ccc" || f.calls != nil {
			t.Errorf("%s: got %v by %d calls", name, got, len(f.calls))
		}
	}
}

type tenants struct{ got []string }

func (f *tenants) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	tenant := "none"
	if in.TenantId != nil {
		tenant = *in.TenantId
	}
	f.got = append(f.got, tenant)
	return &awslambda.InvokeOutput{StatusCode: 202}, nil
}

// A tenant's job is invoked for that tenant: a function that keeps tenants apart
// takes it in no other way.
func TestFunctionIsInvokedForTheJobsTenant(t *testing.T) {
	t.Parallel()
	batch := deliveries(2)
	batch[1].Tenant = "jane"
	for name, tt := range map[string]struct {
		opt  func(*sink.FunctionOptions)
		want string
	}{
		"by default":    {func(*sink.FunctionOptions) {}, "jane"},
		"without asked": {func(o *sink.FunctionOptions) { o.WithoutTenant = true }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &tenants{}
			for i, err := range sink.NewFunction(f, "mails", tt.opt).Deliver(t.Context(), batch) {
				if err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			}
			if len(f.got) != 2 || f.got[0] != "none" || f.got[1] != tt.want {
				t.Errorf("invoked for %q", f.got)
			}
		})
	}
}
