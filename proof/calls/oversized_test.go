package calls_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/servers/elasticmq"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// lower is a queue whose limit, 1 MiB, is lower by 900 KB for large messages: below that of staging.
type lower struct{ sink.QueueAPI }

func (l lower) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	for i := range in.Entries {
		if e := &in.Entries[i]; len(*e.MessageBody) > 1000 {
			e.MessageBody = aws.String(*e.MessageBody + strings.Repeat(" ", 900<<10))
		}
	}
	return l.QueueAPI.SendMessageBatch(ctx, in, opts...)
}

// Two jobs that their queue takes in no size of batch, and with a code that nobody
// documents, stand in nobody's way for ever: the others are delivered, and they are
// parked, the one that is alone in the end as well.
func TestOversizedJobsAreParked(t *testing.T) {
	t.Parallel()
	server := elasticmq.Start(t)
	queue, err := server.Client().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("receipts")})
	if err != nil {
		t.Fatal(err)
	}
	store, client, _ := newTable(t)
	engine := idem.New(store, callertest.Anybody)
	for key, size := range map[string]int{"small-1": 10, "large-1": 200 << 10, "large-2": 200 << 10, "small-2": 10} {
		_, err := engine.Do(t.Context(), idem.Request{Scope: "orders", Key: key}, func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("receipt", strings.Repeat("x", size)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	drain := stream.NewDrain(store, jobs.Route{"receipt": sink.NewQueue(lower{server.Client()}, *queue.QueueUrl)}, func(o *stream.DrainOptions) { o.MaxTries = 2 })
	sweep := stream.NewSweep(client, store, func(o *stream.SweepOptions) {
		o.Drain, o.Now = drain, func() time.Time { return time.Now().Add(time.Hour) }
	})
	delivered := 0
	for range 4 {
		rep, err := sweep.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		delivered += rep.Delivered
	}
	rep, err := sweep.List(t.Context())
	if err != nil || delivered != 2 || rep.ByReason[state.ReasonParked].Count != 2 || rep.ByReason[state.ReasonUndelivered].Count != 0 {
		t.Errorf("%d delivered; left: %+v, %v", delivered, rep.ByReason, err)
	}
	for _, e := range rep.Entries {
		if e.Tries != 2 || !strings.Contains(e.LastErr, "sqs") {
			t.Errorf("%+v", e)
		}
	}
}
