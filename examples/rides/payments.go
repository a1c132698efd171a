package rides

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/samekey/samekey/idem/client"
)

// What a call to another system can end in for good, besides a result.
var (
	// ErrDeclined says that the customer's card was declined.
	ErrDeclined = errors.New("the card was declined")
	// ErrRefused says that the system won't do what was asked. Of an earlier call
	// with the same key it says nothing.
	ErrRefused = errors.New("refused")
)

// Charge is a payment that was taken.
type Charge struct {
	ID string `json:"id"`
}

// Payments is the payment provider's client. The zero Client will do.
type Payments struct {
	URL    string // base URL
	Client http.Client
}

// Charge takes amount cents from a customer, once for each key, however often
// it is called.
//
// [ErrDeclined] is final, and [ErrRefused] is where no earlier call was made.
// After any other error the money may have been taken or not: call again with the
// same key.
func (p *Payments) Charge(ctx context.Context, customer string, amount int, description, key string) (Charge, error) {
	var c Charge
	err := post(ctx, &p.Client, p.URL+"/v1/charges", key, map[string]any{
		"customer": customer, "amount": amount, "currency": "usd", "description": description,
	}, &c)
	if err == nil && c.ID == "" {
		err = errors.New("the provider's answer has no id")
	}
	if err != nil {
		return Charge{}, fmt.Errorf("payments: %w", err)
	}
	return c, nil
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 1 << 20

// patience is how long to wait for an answer at most; the context may end first.
const patience = 10 * time.Second

// post sends JSON and reads JSON into out. key, if there is one, is sent as the
// idempotency key.
//
// An error that matches neither ErrDeclined nor ErrRefused leaves open what
// became of the request.
func post(ctx context.Context, cl *http.Client, url, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := cl.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	var refusal struct {
		Error struct{ Type, Code string }
	}
	if resp.StatusCode >= http.StatusBadRequest {
		_ = json.Unmarshal(answer, &refusal) // what isn't of that form has no code
	}
	switch outcome := client.Classify(resp.StatusCode, nil, refusal.Error.Type, refusal.Error.Code); outcome {
	case client.Succeeded:
		return json.Unmarshal(answer, out)
	case client.Declined:
		return ErrDeclined
	case client.Rejected:
		return fmt.Errorf("%w: %s", ErrRefused, resp.Status)
	default: // to be tried again with the same key
		return fmt.Errorf("the outcome is %s: %s", outcome, resp.Status)
	}
}
