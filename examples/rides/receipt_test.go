package rides_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/lambda"
)

type sent struct {
	JobID  string `json:"job_id"`
	RideID string `json:"ride_id"`
	Calls  int    `json:"calls"`
}

func (st *stage) mails(t *testing.T) (all []sent) {
	t.Helper()
	rec := httptest.NewRecorder()
	st.world.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/mails", http.NoBody))
	if err := json.Unmarshal(rec.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// messages are the jobs of the only record as their queue delivers them.
func (st *stage) messages(t *testing.T) (ev events.SQSEvent) {
	t.Helper()
	r := st.record(t)
	for name, job := range r.Jobs {
		ev.Records = append(ev.Records, message(state.JobID(r.ID, name), string(job.Args)))
	}
	return ev
}

func message(job, body string) events.SQSMessage {
	return events.SQSMessage{
		MessageId: newKey(), Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:receipts",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {DataType: "String", StringValue: aws.String(job)}},
	}
}

func (st *stage) receive(t *testing.T, ev events.SQSEvent) (events.SQSEventResponse, error) {
	t.Helper()
	if st.receipts == nil {
		engine := rides.Engine(st.store, rides.ReceiptsNamespace, func(o *idem.Options) { o.Hooks = idem.Hooks{} })
		st.receipts = lambda.WrapEach(engine, lambda.SQS, (&rides.Mails{URL: st.url}).Receive)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	return st.receipts.Handle(ctx, ev)
}

func TestEachReceiptIsSentOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, st *stage) {
		booked := st.post(t, jane, "k", trip).is(t, 201).ride(t)
		ev := st.messages(t)
		again := ev.Records[0]
		again.MessageId = newKey() // the drain sent it twice
		ev.Records = append(ev.Records, again)
		for range 2 { // and the queue delivers twice
			if re, err := st.receive(t, ev); err != nil || len(re.BatchItemFailures) > 0 {
				t.Errorf("got %v, %v", re, err)
			}
		}
		want := []sent{{JobID: *again.MessageAttributes[lambda.KeyAttribute].StringValue, RideID: booked.ID, Calls: 1}}
		if diff := cmp.Diff(want, st.mails(t)); diff != "" {
			t.Errorf("mails (-want +got):\n%s", diff)
		}
	})
}

func TestReceiptThatCannotBeSentComesAgain(t *testing.T) {
	t.Parallel()
	st := inMemory(t)
	st.post(t, jane, "k", trip).is(t, 201)
	ev := st.messages(t)
	st.world.SetMode(world.Mode{Mail: world.Error, Times: 1})
	if _, err := st.receive(t, ev); err == nil {
		t.Error("no error while mails can't be sent")
	}
	if _, err := st.receive(t, ev); err != nil {
		t.Error(err)
	}
	if got := st.mails(t); len(got) != 1 || got[0].Calls != 1 {
		t.Errorf("mails: %+v", got)
	}
}

func TestMessagesThatAreNoReceipts(t *testing.T) {
	t.Parallel()
	good := `{"ride_id":"ride_1","to":"jane@example.com","amount":2000}`
	foreign := message("", good)
	foreign.MessageAttributes = nil
	for name, msg := range map[string]events.SQSMessage{
		"no job":     foreign,
		"no JSON":    message("job", "receipt"),
		"no ride":    message("job", `{"to":"jane@example.com"}`),
		"no address": message("job", `{"ride_id":"ride_1"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := inMemory(t)
			re, err := st.receive(t, events.SQSEvent{Records: []events.SQSMessage{msg, message("good", good)}})
			if err != nil || len(re.BatchItemFailures) != 1 || re.BatchItemFailures[0].ItemIdentifier != msg.MessageId {
				t.Errorf("got %v, %v; want it reported", re, err)
			}
			if got := st.mails(t); len(got) != 1 || got[0].JobID != "good" {
				t.Errorf("mails: %+v, want that of the good one", got)
			}
		})
	}
}
