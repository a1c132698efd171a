package rides

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/lambda"
)

// ReceiptJob is the kind of the job that sends a receipt.
const ReceiptJob = "send_ride_receipt"

// Receipt is the data of a job of kind ReceiptJob.
type Receipt struct {
	RideID string `json:"ride_id"`
	To     string `json:"to"`
	Amount int    `json:"amount"` // in cents
}

// Mails is the mail service's client. Client may be the zero value.
type Mails struct {
	URL    string // base URL
	Client http.Client
}

// Receive sends the receipt of a job in a message. Wrap Receive by [lambda.WrapEach], which
// does each job once: queues may deliver twice.
func (m *Mails) Receive(ctx context.Context, msg events.SQSMessage) error {
	id := msg.MessageAttributes[lambda.KeyAttribute].StringValue
	if id == nil || *id == "" {
		return fmt.Errorf("message %s is no job of ours", msg.MessageId)
	}
	var r Receipt
	if err := json.Unmarshal([]byte(msg.Body), &r); err != nil {
		return fmt.Errorf("message %s is no receipt: %w", msg.MessageId, err)
	}
	return m.Send(ctx, *id, r)
}

// Send mails a receipt. The service sends one mail for each job: if a process dies after
// the call, the call of the next process sends no second mail.
func (m *Mails) Send(ctx context.Context, job string, r Receipt) error {
	if r.RideID == "" || r.To == "" {
		return errors.New("mails: a receipt without a ride or an address")
	}
	var sent struct{}
	if err := call(ctx, &m.Client, http.MethodPost, m.URL+"/v1/mails", "", map[string]string{
		"job_id": job, "ride_id": r.RideID, "to": r.To,
		"subject": "Your Rocket Ride",
		"text":    fmt.Sprintf("Thank you for flying with us. We have charged $%d.%02d for ride %s.", r.Amount/100, r.Amount%100, r.RideID),
	}, &sent); err != nil {
		return fmt.Errorf("mails: %w", err)
	}
	return nil
}
