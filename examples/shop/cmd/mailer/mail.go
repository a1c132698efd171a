package main

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
)

type mailer struct{ mails provider.Client }

// send sends the mail of a job. The message's key is the job's id, so a message that
// is delivered twice sends one mail.
func (m mailer) send(ctx context.Context, msg events.SQSMessage) error {
	var mail provider.Mail
	if err := json.Unmarshal([]byte(msg.Body), &mail); err != nil {
		return err
	}
	_, err := idem.Foreign(ctx, "sent", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return m.mails.Post(ctx, "/mails", tx.Key("mails"), mail)
	})
	return err
}
