package recipes

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // processes crash on purpose here
	os.Exit(m.Run())
}

func post(path, body string) request {
	ev := request{RawPath: path, Body: body, Headers: map[string]string{"idempotency-key": "7f0c"}}
	ev.RequestContext.HTTP.Method = "POST"
	ev.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"sub": "jane"}}
	return ev
}

func api(h func(context.Context, request) (response, error)) func(*idemtest.World) *lambda.Handler[request, response] {
	return func(w *idemtest.World) *lambda.Handler[request, response] {
		return lambda.Wrap(w.Engine(), lambda.HTTPAPI, h, func(o *lambda.HandlerOptions) { o.Name = "recipe" })
	}
}

func TestMoneyMovesOnce(t *testing.T) {
	t.Parallel()
	transfer := post("/transfers", `{"from":"jane","to":"omar","amount":500}`)
	lambdatest.CrashEverywhere(t, api(MoveMoney), transfer, func(t testing.TB, w *idemtest.World, re response) {
		writes := idemtest.Finished(t, w).Writes
		if re.StatusCode != 201 || len(writes) != 3 || !strings.Contains(writes[0], "balance - 500 if balance >= 500") || !strings.Contains(writes[1], "balance + 500") {
			t.Errorf("%d, writes %q", re.StatusCode, writes)
		}
	})
}

func TestMoneyThatIsNotThereDoesNotMove(t *testing.T) {
	t.Parallel()
	transfer := post("/transfers", `{"from":"jane","to":"omar","amount":500}`)
	lambdatest.CrashEverywhere(t, api(MoveMoney), transfer, func(t testing.TB, w *idemtest.World, re response) {
		if writes := idemtest.Finished(t, w).Writes; re.StatusCode != 402 || writes != nil {
			t.Errorf("%d, writes %q", re.StatusCode, writes)
		}
	}, func(o *idemtest.CrashOptions) {
		o.Store = func() store.Store {
			return &idem.MemoryStore{Apply: func([]store.Write) error { return idem.ErrCondition }}
		}
	})
	for _, body := range []string{"", `{"from":"jane","to":"jane","amount":5}`, `{"from":"jane","to":"omar","amount":-5}`} {
		re, err := lambda.Wrap(idem.New(new(idem.MemoryStore), callertest.Anybody), lambda.HTTPAPI, MoveMoney).Handle(t.Context(), post("/transfers", body))
		if err != nil || re.StatusCode != 400 {
			t.Errorf("%s: %d, %v", body, re.StatusCode, err)
		}
	}
}

// unsigned takes every delivery.
type unsigned struct{}

func (unsigned) Verify(h http.Header, body []byte) (webhook.Event, error) {
	return webhook.Event{ID: h.Get("Webhook-Id"), Body: body}, nil
}

func TestAPaymentShipsOnce(t *testing.T) {
	t.Parallel()
	idemtest.CrashProgram(t, func(w *idemtest.World) idemtest.Program[int] {
		hooks := webhook.New(w.Store(), "payments", unsigned{}, OnPayment, w.Options)
		return idemtest.Program[int]{
			Send: func(ctx context.Context) (status int, replayed bool, err error) {
				before := len(w.Commits())
				ev := httptest.NewRequestWithContext(ctx, http.MethodPost, "/webhooks", strings.NewReader(`{"order":"o1"}`))
				ev.Header.Set("Webhook-Id", "evt_1")
				rec := httptest.NewRecorder()
				hooks.ServeHTTP(rec, ev)
				return rec.Code, len(w.Commits()) == before, nil
			},
			Diff: func(a, b int) string { return cmp.Diff(a, b) },
		}
	}, func(t testing.TB, w *idemtest.World, status int) {
		if got := idemtest.Staged[Shipment](t, w, "ship"); status != 200 || got.Order != "o1" {
			t.Errorf("%d, staged %+v", status, got)
		}
	})
}

func TestAnUploadIsEnteredOnce(t *testing.T) {
	t.Parallel()
	var ev events.S3Event
	if err := json.Unmarshal([]byte(`{"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "awsRegion": "eu-central-1",
		"s3": {"bucket": {"name": "photos", "arn": "arn:aws:s3:::photos"}, "object": {"key": "a+b.jpg", "size": 7, "eTag": "e", "sequencer": "01"}}}]}`), &ev); err != nil {
		t.Fatal(err)
	}
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.S3Event, events.S3EventRecord, struct{}] {
		return lambda.WrapEach(w.Engine(), lambda.S3, OnUpload)
	}, ev, func(t testing.TB, w *idemtest.World, _ struct{}) {
		if got := idemtest.Staged[Thumbnail](t, w, "thumbnail"); got.Bucket != "photos" || got.Key != "a b.jpg" {
			t.Errorf("staged %+v", got)
		}
		if writes := idemtest.Finished(t, w).Writes; len(writes) != 1 || !strings.Contains(writes[0], "photos/a b.jpg") {
			t.Errorf("writes %q", writes)
		}
	})
}

func TestEachGuestIsInvitedOnce(t *testing.T) {
	t.Parallel()
	lambdatest.CrashEverywhere(t, api(Invite), post("/invitations", `["jane@example.com", "omar@example.com"]`), func(t testing.TB, w *idemtest.World, re response) {
		if got := idemtest.Staged[Invitations](t, w, "invite"); re.StatusCode != 202 || len(got.To) != 2 {
			t.Errorf("%d, staged %+v", re.StatusCode, got)
		}
	})

	id := "job-1"
	job := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "1", Body: `{"to":["jane@example.com","omar@example.com"]}`, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:invitations",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {StringValue: &id, DataType: "String"}},
	}}}
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
		return lambda.WrapEach(w.Engine(), lambda.SQS, Mail(func(ctx context.Context, key, to string) error {
			_, err := w.Call(ctx, "mail", key, to)
			return err
		}).OnInvitations)
	}, job, func(t testing.TB, w *idemtest.World, _ events.SQSEventResponse) {
		if mails := w.Provider.Effects("mail"); len(mails) != 2 || string(mails[0].Body) != `"jane@example.com"` || string(mails[1].Body) != `"omar@example.com"` {
			t.Errorf("mails %+v", mails)
		}
	})
}

// A record holds the largest fan-out, with addresses as long as they get.
func TestTheLargestFanOutFits(t *testing.T) {
	t.Parallel()
	guests := slices.Repeat([]string{strings.Repeat("x", 254)}, maxGuests)
	invite := func(guests []string) (re response, staged int) {
		all, err := json.Marshal(guests)
		if err != nil {
			t.Fatal(err)
		}
		log := idemtest.Watch(new(idem.MemoryStore))
		re, err = lambda.Wrap(idem.New(log, callertest.Anybody), lambda.HTTPAPI, Invite).Handle(t.Context(), post("/invitations", string(all)))
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range idemtest.AllStaged[Invitations](t, log, "invite") {
			staged += len(job.To)
		}
		return re, staged
	}
	if re, n := invite(guests); re.StatusCode != 202 || n != maxGuests {
		t.Errorf("%d, %d guests are invited", re.StatusCode, n)
	}
	if re, n := invite(append(guests, "x")); re.StatusCode != 400 || n != 0 {
		t.Errorf("too many: %d, %d guests are invited", re.StatusCode, n)
	}
}

func TestAStateChargesOnce(t *testing.T) {
	t.Parallel()
	task := Task{Context: json.RawMessage(`{"Execution": {"Id": "arn:aws:states:eu-central-1:123456789012:execution:orders:1"}, "State": {"Name": "Charge", "RetryCount": 0}}`)}
	task.Input.Order, task.Input.Amount = "o1", 500
	start := func(w *idemtest.World) *lambda.Handler[Task, Charged] {
		return ChargeTask(w.Engine(), func(ctx context.Context, key string, amount int) (string, error) {
			e, err := w.Call(ctx, "charge", key, amount)
			return e.ID, err
		})
	}
	lambdatest.CrashEverywhere(t, start, task, func(t testing.TB, w *idemtest.World, got Charged) {
		again := task
		again.Context = json.RawMessage(strings.ReplaceAll(string(task.Context), `"RetryCount": 0`, `"RetryCount": 1`))
		retried, err := start(w).Handle(t.Context(), again)
		if err != nil || got != retried || got.Charge != "1" || len(w.Provider.Effects()) != 1 {
			t.Errorf("%+v; tried again by the state machine %+v, %v", got, retried, err)
		}
	})
}
