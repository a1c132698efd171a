package orders

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"github.com/samekey/samekey/idem"
)

// Shop takes orders.
type Shop struct {
	Payments *http.Client
}

// Buy charges a card and answers.
func (s Shop) Buy(ctx context.Context) (idem.Response, error) {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		return true, s.charge(ctx, rand.Text())
	})
	return idem.Response{Status: 201, Body: []byte("paid")}, err
}

func (s Shop) charge(ctx context.Context, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://payments.example/charges", strings.NewReader(`{"amount":2000}`))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := s.Payments.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("payments: %s", resp.Status)
	}
	return nil
}
