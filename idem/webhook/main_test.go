package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
)

const (
	stripeSecret   = "whsec_test_of_the_endpoint"
	otherSecret    = "whsec_test_of_another_endpoint"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	succeeded      = `{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1"}}}`
)

// start is the time at which the tests begin, in whole seconds like signatures.
var start = time.Unix(1_800_000_000, 0)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: start} }

// stripeSigned returns a delivery signed by Stripe's own library for tests.
func stripeSigned(body string, at time.Time, secret string) http.Header {
	p := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: secret, Timestamp: at})
	return http.Header{webhook.StripeHeader: {p.Header}}
}

// standardSign signs by the specification's words; TestStandardVectors holds it
// to the published vector.
func standardSign(t testing.TB, id string, at time.Time, body, secret string) string {
	t.Helper()
	return standardSignText(t, id+"."+strconv.FormatInt(at.Unix(), 10)+"."+body, secret)
}

func standardSignText(t testing.TB, message, secret string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func standardHeader(id string, at time.Time, signature string) http.Header {
	return http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature},
	}
}

func newStripe(t testing.TB, c *clock, optFns ...func(*webhook.VerifierOptions)) webhook.Verifier {
	t.Helper()
	v, err := webhook.NewStripe(stripeSecret, append([]func(*webhook.VerifierOptions){func(o *webhook.VerifierOptions) { o.Now = c.Now }}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newStandard(t testing.TB, c *clock, secret string, optFns ...func(*webhook.VerifierOptions)) webhook.Verifier {
	t.Helper()
	v, err := webhook.NewStandard(secret, append([]func(*webhook.VerifierOptions){func(o *webhook.VerifierOptions) { o.Now = c.Now }}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// delivery is a neutral request.
func delivery(h http.Header, body string) idem.Request {
	return idem.Request{Method: http.MethodPost, Path: "/webhooks", Header: h, Body: []byte(body)}
}

// says is an error with its whole text.
type says struct {
	error
	text string
}

func malformed(text string) error { return says{webhook.ErrMalformed, text} }

// is compares an error with the one that is wanted.
func is(err, want error) bool {
	if s, ok := errors.AsType[says](want); ok {
		return errors.Is(err, s.error) && err.Error() == s.Error()+": "+s.text
	}
	return errors.Is(err, want)
}

// want checks status, code (of a refusal) and replay marker of an answer.
func want(t testing.TB, got idem.Response, status int, code string) {
	t.Helper()
	var p struct {
		Type, Code, Title, Detail string
		Status                    int
	}
	if status != http.StatusOK {
		if err := json.Unmarshal(got.Body, &p); err != nil || p.Status != got.Status || got.Header.Get("Content-Type") != "application/problem+json" ||
			!strings.HasSuffix(p.Type, "docs/use/webhooks.md#"+p.Code) || p.Title == "" || p.Detail == "" {
			t.Errorf("the answer is no problem: %d %v %s", got.Status, got.Header, got.Body)
		}
	} else if got.Header.Get(idem.ReplayedHeader) == "true" {
		p.Code = "duplicate"
	}
	if got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("it may be cached: %v", got.Header)
	}
	if got.Status != status || p.Code != code {
		t.Errorf("got %d %q, want %d %q", got.Status, p.Code, status, code)
	}
}
