package idemtest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/failtest"
)

// shop is a user's program: an order is priced, paid, and confirmed by mail.
type shop struct{ outside *http.Client }

type order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

func (s shop) post(ctx context.Context, path, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://provider.example"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := s.outside.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return nil
}

// buy is sound.
func (s shop) buy(ctx context.Context) (idem.Response, error) {
	o, err := idem.Atomic(ctx, "priced", func(context.Context, *idem.Tx) (order, error) {
		return order{rand.Text(), 2000}, nil
	})
	if err != nil {
		return idem.Response{}, err
	}
	_, err = idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		return true, s.post(ctx, "/charges", tx.Key("payments"), o)
	})
	if err != nil {
		return idem.Response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Stage(idem.NewJob("send_mail", o))
		return idem.Response{Status: 201, Body: []byte(o.ID)}, nil
	})
}

// mailOutside sends a mail outside of a phase.
func (s shop) mailOutside(ctx context.Context) (idem.Response, error) {
	if err := s.post(ctx, "/mails", "", "thank you"); err != nil {
		return idem.Response{}, err
	}
	return s.buy(ctx)
}

// assigns takes the order out of an Atomic by an assignment.
func (s shop) assigns(ctx context.Context) (idem.Response, error) {
	var o order
	_, err := idem.Atomic(ctx, "priced", func(context.Context, *idem.Tx) (bool, error) {
		o = order{rand.Text(), 2000}
		return true, nil
	})
	if err != nil {
		return idem.Response{}, err
	}
	_, err = idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		return true, s.post(ctx, "/charges", tx.Key("payments"), o)
	})
	return idem.Response{Status: 201, Body: []byte(o.ID)}, err
}

// ownKey charges with a key of its own.
func (s shop) ownKey(ctx context.Context) (idem.Response, error) {
	_, err := idem.Foreign(ctx, "paid", func(ctx context.Context, _ *idem.Tx) (bool, error) {
		return true, s.post(ctx, "/charges", rand.Text(), 2000)
	})
	return idem.Response{Status: 201}, err
}

func everywhere(t testing.TB, handler func(shop, context.Context) (idem.Response, error), optFns ...func(*idemtest.CrashOptions)) {
	t.Helper()
	idemtest.CrashEverywhere(t, func(ctx context.Context, w *idemtest.World, _ *idem.Request) (idem.Response, error) {
		return handler(shop{w.Client()}, ctx)
	}, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST", Path: "/orders"}, func(t testing.TB, w *idemtest.World, _ idem.Response) {
		for _, e := range w.Provider.Effects("/charges") {
			if strings.Contains(string(e.Body), `"amount":0`) {
				t.Errorf("a charge of %s", e.Body)
			}
		}
	}, optFns...)
}

// Three handlers, each with a planted bug, and a sound one.
func ExampleCrashEverywhere() {
	for _, h := range []struct {
		name string
		buy  func(shop, context.Context) (idem.Response, error)
	}{
		{"sound", shop.buy},
		{"a mail outside of a phase", shop.mailOutside},
		{"an assignment out of an Atomic", shop.assigns},
		{"a call without a derived key", shop.ownKey},
	} {
		fmt.Println(h.name + ":")
		failtest.Print(os.Stdout, func(t testing.TB) { everywhere(t, h.buy) })
	}
	// Output:
	// sound:
	// a mail outside of a phase:
	// crash after call 2 (POST /mails), then the client's retry: effects of POST /mails: 2, and without a crash 1
	// an assignment out of an Atomic:
	// crash after call 2 (the commit of phase "priced"), then the client's retry: a charge of {"id":"","amount":0}
	// crash after call 4 (POST /charges), then the client's retry: the request ends in an error: /charges: 400 Bad Request
	// crash after call 4 (POST /charges), then a completer: the completer's run ends in an error: idem: resume: the handler failed: /charges: 400 Bad Request
	// a call without a derived key:
	// crash after call 3 (POST /charges), then the client's retry: effects of POST /charges: 2, and without a crash 1
}
