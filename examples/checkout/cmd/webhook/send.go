package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// webhook is the platform's receiver. Without a URL, orders are only logged.
type webhook struct {
	url    string
	secret []byte
	http   http.Client
}

// send sends the event of an order. The message's key is the job's id, so a message that is
// delivered twice sends one event.
func (w webhook) send(ctx context.Context, msg events.SQSMessage) error {
	_, err := idem.Foreign(ctx, "sent", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		return true, w.post(ctx, tx.Key("webhook"), `{"type":"order_create","data":`+msg.Body+`}`)
	})
	return err
}

func (w webhook) post(ctx context.Context, key, body string) error {
	if w.url == "" {
		slog.InfoContext(ctx, "no WEBHOOK_URL: the event is not sent")
		return nil
	}
	if len(w.secret) == 0 {
		return errors.New("WEBHOOK_URL without WEBHOOK_SECRET: anybody could sign events")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Merchant-Signature", hex.EncodeToString(mac.Sum(nil)))
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("webhook: %s", resp.Status)
	}
	return nil
}
