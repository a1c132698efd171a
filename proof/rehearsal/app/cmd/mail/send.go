package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
)

// send would call a mail service. It runs once for each job.
func send(ctx context.Context, msg events.SQSMessage) error {
	var order struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(msg.Body), &order); err != nil {
		return fmt.Errorf("message %s is no order: %w", msg.MessageId, err)
	}
	slog.InfoContext(ctx, "mailed", "order", order.ID)
	return nil
}
