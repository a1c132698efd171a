// Package provider calls the shop's payment provider and its mail service.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/client"
)

// ErrDeclined says that the card was declined.
var ErrDeclined = errors.New("declined")

// Mail is the job of kind "send_mail".
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// Client calls a service that takes idempotency keys.
type Client struct {
	URL  string
	HTTP http.Client
}

// Post sends v under key and returns the id of its result. After an error other than
// ErrDeclined the outcome is unknown: call again with the same key.
func (c *Client) Post(ctx context.Context, path, key string, v any) (id string, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct {
		ID    string
		Error struct{ Type, Code string }
	}
	err = json.NewDecoder(resp.Body).Decode(&out)
	switch outcome := client.Classify(resp.StatusCode, err, out.Error.Type, out.Error.Code); {
	case outcome == client.Declined:
		return "", ErrDeclined
	case outcome != client.Succeeded:
		return "", fmt.Errorf("%s: %s: %s", path, resp.Status, outcome)
	case out.ID == "":
		return "", errors.New(path + ": an answer without an id")
	}
	return out.ID, nil
}
