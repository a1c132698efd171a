package stack

import (
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// A schedule sends its message once, not before its time, and deletes itself. Another of its
// name is refused until then.
func TestScheduleSendsAMessageOnce(t *testing.T) {
	t.Parallel()
	all, err := openQueues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.close() })
	if err := all.create(t.Context(), sam.Queue{ID: "Tickets", Name: "tickets", Attributes: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	later := &schedulerAPI{ctx: t.Context(), arn: "arn:aws:scheduler:us-east-1:123456789012:schedule/default", log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	later.serves(all)
	srv := httptest.NewServer((&invokeAPI{later: later}).handler())
	t.Cleanup(srv.Close)
	client := scheduler.New(scheduler.Options{BaseEndpoint: &srv.URL, Region: "us-east-1", Credentials: identity{key: "k", secret: "s"}, Retryer: aws.NopRetryer{}})
	create := func(change func(*scheduler.CreateScheduleInput)) (string, error) {
		in := &scheduler.CreateScheduleInput{
			Name: aws.String("samekey-A-1"), ScheduleExpression: aws.String("at(" + time.Now().UTC().Add(2*time.Second).Format("2006-01-02T15:04:05") + ")"),
			FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}, ActionAfterCompletion: types.ActionAfterCompletionDelete,
			Target: &types.Target{Arn: aws.String(all.made["Tickets"].arn), RoleArn: aws.String("arn:aws:iam::123456789012:role/later"), Input: aws.String(`{"pk":"x"}`)},
		}
		change(in)
		out, err := client.CreateSchedule(t.Context(), in)
		if err != nil {
			return "", err
		}
		return aws.ToString(out.ScheduleArn), nil
	}
	same := func(*scheduler.CreateScheduleInput) {}
	begin := time.Now()
	if arn, err := create(same); err != nil || arn != later.arn+"/samekey-A-1" {
		t.Fatal(arn, err)
	}
	inAnHour := func(in *scheduler.CreateScheduleInput) {
		in.Name, in.ScheduleExpression = aws.String("samekey-B-1"), aws.String("at("+time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05")+")")
	}
	if _, err := create(inAnHour); err != nil {
		t.Error(err)
	}
	if _, err := create(inAnHour); !isConflict(err) {
		t.Errorf("a second one of the name: %v", err)
	}
	for name, change := range map[string]func(*scheduler.CreateScheduleInput){
		"a rate":         func(in *scheduler.CreateScheduleInput) { in.ScheduleExpression = aws.String("rate(1 hour)") },
		"no such queue":  func(in *scheduler.CreateScheduleInput) { in.Target.Arn = aws.String("arn:aws:sqs:us-east-1:1:other") },
		"a long name":    func(in *scheduler.CreateScheduleInput) { in.Name = aws.String(strings.Repeat("x", 65)) },
		"one that stays": func(in *scheduler.CreateScheduleInput) { in.ActionAfterCompletion = types.ActionAfterCompletionNone },
	} {
		if _, err := create(change); err == nil || !strings.Contains(err.Error(), "ValidationException") {
			t.Errorf("%s: %v", name, err)
		}
	}
	receive := func(wait int32) []string {
		out, err := all.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(all.made["Tickets"].url), WaitTimeSeconds: wait})
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
		}
		return bodies
	}
	if got := receive(20); len(got) != 1 || got[0] != `{"pk":"x"}` || time.Since(begin) < time.Second {
		t.Errorf("got %q after %v", got, time.Since(begin))
	}
	if got := receive(1); len(got) != 0 {
		t.Errorf("again %q", got)
	}
	localtest.Eventually(t, "it has deleted itself", func() bool { _, err := create(same); return err == nil })
}

func isConflict(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ConflictException"
}
