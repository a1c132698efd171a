package rides

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/samekey/samekey/idem/client"
)

// Final errors of a call to another system.
var (
	// ErrDeclined says that the customer's card was declined.
	ErrDeclined = errors.New("the card was declined")
	// ErrRefused says that the system refuses the call. ErrRefused says nothing about an
	// earlier call with the same key.
	ErrRefused = errors.New("refused")
)

// Bill is a payment to be taken.
type Bill struct {
	Customer    string `json:"customer"`
	Amount      int    `json:"amount"` // in cents
	Description string `json:"description"`
}

// Charge is a payment that was taken.
type Charge struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Amount   int    `json:"amount"` // in cents
}

// Payments is the payment provider's client. Client may be the zero value.
type Payments struct {
	URL    string // base URL
	Client http.Client
}

// Charge takes the bill's amount from its customer, once for each key that the provider
// remembers, however often Charge is called.
//
// [ErrDeclined] is final. [ErrRefused] is final if no earlier call was made. After
// any other error the money may have been taken or not: call again with the same key.
func (p *Payments) Charge(ctx context.Context, bill Bill, key string) (Charge, error) {
	var c Charge
	err := call(ctx, &p.Client, http.MethodPost, p.URL+"/v1/charges", key, struct {
		Bill
		Currency string `json:"currency"`
	}{bill, "usd"}, &c)
	if err == nil && c.ID == "" {
		err = errors.New("the provider's answer has no id")
	}
	if err != nil {
		return Charge{}, fmt.Errorf("payments: %w", err)
	}
	return c, nil
}

// Find returns the charges that were made with key. The provider lists charges even after
// it has forgotten the key.
func (p *Payments) Find(ctx context.Context, key string) (all []Charge, err error) {
	if err := call(ctx, &p.Client, http.MethodGet, p.URL+"/v1/charges?key="+url.QueryEscape(key), "", nil, &all); err != nil {
		return nil, fmt.Errorf("payments: %w", err)
	}
	return all, nil
}

// maxAnswer limits how many bytes of an answer are read.
const maxAnswer = 1 << 20

// patience is the longest wait for an answer; the context may end first.
const patience = 10 * time.Second

// call sends in as JSON, if in isn't nil, and reads JSON into out. A key that isn't empty
// is sent as the idempotency key.
//
// After an error that matches neither ErrDeclined nor ErrRefused, the outcome is
// unknown.
func call(ctx context.Context, cl *http.Client, method, address, key string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
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
		_ = json.Unmarshal(answer, &refusal) // an answer of another form has no code
	}
	switch outcome := client.Classify(resp.StatusCode, nil, refusal.Error.Type, refusal.Error.Code); outcome {
	case client.Succeeded:
		return json.Unmarshal(answer, out)
	case client.Declined:
		return ErrDeclined
	case client.Rejected:
		return fmt.Errorf("%w: %s", ErrRefused, resp.Status)
	default: // unknown: try again with the same key
		return fmt.Errorf("the outcome is %s: %s", outcome, resp.Status)
	}
}
