//go:build unix

package killsweep_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/examples/rides/internal/tap"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/internal/local/lambdarun"
	"github.com/samekey/samekey/lambda"
)

// TestKillSweepOfAReceipt harms the process that mails a receipt at every call it
// makes. Its queue delivers the message again until it is taken.
func TestKillSweepOfAReceipt(t *testing.T) {
	t.Parallel()
	db := dynamotest.Start(t)
	b := &backstage{db: db, client: db.Client(), records: "receipts-" + rand.Text(), bootstrap: filepath.Join(t.TempDir(), "bootstrap")}
	if err := lambdarun.BuildBootstrap(t.Context(), pkgs+"receipts", b.bootstrap); err != nil {
		t.Fatal(err)
	}
	b.createTable(t, dynamo.CreateTableInput(b.records))
	const mails = "/v1/mails"
	calls := []string{"PutItem", mails, "UpdateItem"}
	t.Run("unharmed", func(t *testing.T) {
		t.Parallel()
		r := newReceipt(t, b)
		r.redeliver(t)
		var got []string
		for _, c := range r.tap.Calls() {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(calls, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		r.redeliver(t) // queues do
		r.mailed(t, 1)
	})
	for _, p := range points(calls) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			// The mail service hears of a mail again, under the same job id, if a
			// process was lost between the call and the record of it. It sends one.
			asked := 1
			if p.nth == 2 && (p.side == tap.After || p.harm == stopped) || p.nth == 3 && p.side == tap.Before {
				asked = 2
			}
			newReceipt(t, b).play(t, p, asked)
		})
	}
}

// receipt is a message in the queue, with a function and a mail service of its
// own.
type receipt struct {
	tap      tap.Tap
	mails    world.World
	function *lambdarun.Function
	job      string
	payload  []byte
}

func newReceipt(t *testing.T, b *backstage) *receipt {
	t.Helper()
	r := &receipt{job: rand.Text()}
	srv := httptest.NewServer(r.mails.Handler())
	t.Cleanup(srv.Close)
	var err error
	r.payload, err = json.Marshal(events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: r.job, Body: `{"ride_id":"ride_1","to":"` + user + `","amount":2000}`,
		EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:receipts",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {DataType: "String", StringValue: &r.job}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r.function, err = lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "receipts", Binary: b.bootstrap, Timeout: timeout, Overtime: 2 * patience, Stderr: t.Output(),
		Env: []string{
			"IDEM_TABLE=" + b.records, "MAILS_URL=" + through(t, &r.tap, srv.URL, tap.Path),
			"AWS_ENDPOINT_URL_DYNAMODB=" + through(t, &r.tap, b.db.Endpoint, tap.DynamoDB),
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "SAMEKEY_LEASE_MARGIN=" + margin.String(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.function.Close() })
	return r
}

// deliver delivers the message, and reports whether it was taken.
func (r *receipt) deliver(t *testing.T) bool {
	t.Helper()
	out, err := r.function.Invoke(t.Context(), r.payload)
	var re events.SQSEventResponse
	return err == nil && json.Unmarshal(out, &re) == nil && len(re.BatchItemFailures) == 0
}

// redeliver delivers the message until it is taken.
func (r *receipt) redeliver(t *testing.T) {
	t.Helper()
	for begin := time.Now(); !r.deliver(t); sleep(t.Context(), 100*time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("the message is never taken")
		}
	}
}

func (r *receipt) play(t *testing.T, p point, asked int) {
	t.Helper()
	held := r.tap.Hold(p.nth, nil, p.side)
	defer held.Drop()
	first := make(chan bool, 1)
	go func() { first <- r.deliver(t) }()
	pid := reached(t, held, r.function)
	if p.harm == killed {
		kill(t, r.function, pid, held)
		if <-first {
			t.Error("the message of the dead process is taken")
		}
		r.redeliver(t)
		r.mailed(t, asked)
		return
	}
	signal(t, pid, syscall.SIGSTOP)
	r.redeliver(t)
	held.GoOn() // what was on its way arrives
	signal(t, pid, syscall.SIGCONT)
	select {
	case <-first:
	case <-time.After(patience):
		t.Fatal("the process that was woken doesn't come to its end")
	}
	r.redeliver(t)
	r.mailed(t, asked)
}

// mailed checks that one mail was sent, and how often it was asked for.
func (r *receipt) mailed(t *testing.T, asked int) {
	t.Helper()
	type mail struct {
		Job   string `json:"job_id"`
		Ride  string `json:"ride_id"`
		Calls int    `json:"calls"`
	}
	var got []mail
	list(t, &r.mails, "/v1/mails", &got)
	if diff := cmp.Diff([]mail{{r.job, "ride_1", asked}}, got); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}
