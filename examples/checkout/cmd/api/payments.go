package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

var errDeclined = errors.New("declined")

// payments is the payment provider. Without a URL it approves every token except
// "tok_declined". Replace it by your provider's client.
type payments struct {
	url  string
	http http.Client
}

// charge takes an amount once for each key. After an error other than errDeclined the
// outcome is unknown: call again with the same key.
func (p payments) charge(ctx context.Context, key, token string, amount int) (id string, err error) {
	if p.url == "" {
		sum := sha256.Sum256([]byte(key))
		if token == "tok_declined" {
			return "", errDeclined
		}
		return "ch_" + hex.EncodeToString(sum[:8]), nil
	}
	body, err := json.Marshal(map[string]any{"token": token, "amount": amount})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := p.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct{ ID string }
	switch resp.StatusCode {
	case http.StatusPaymentRequired, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		return "", errDeclined // definitely: the last three characters of the token, which the assistant chose
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return "", fmt.Errorf("payments: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.ID == "" {
		return "", errors.Join(errors.New("payments: an answer without an id"), err)
	}
	return out.ID, nil
}

// tokenOf returns the payment's token in the body of a completion; "" if there is no token.
func tokenOf(body string) string {
	var in struct {
		Payment struct {
			Token string `json:"token"`
		} `json:"payment_data"`
	}
	if json.Unmarshal([]byte(body), &in) != nil {
		return ""
	}
	return in.Payment.Token
}
