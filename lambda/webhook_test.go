package lambda_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/lambda"
)

const hookSecret = "whsec_test"

// webhooks makes an endpoint for a source, which remembers the bodies it handled.
func webhooks(t *testing.T, s source, handled *[]string, optFns ...func(*idem.Options)) awslambda.Handler {
	t.Helper()
	v, err := webhook.NewStripe(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := webhook.New(&idem.MemoryStore{}, "stripe", v, func(_ context.Context, ev webhook.Event) error {
		*handled = append(*handled, string(ev.Body))
		return nil
	}, optFns...)
	switch s.name {
	case "HTTPAPI":
		return lambda.Webhook(lambda.HTTPAPI, h)
	case "REST":
		return lambda.Webhook(lambda.REST, h)
	case "FunctionURL":
		return lambda.Webhook(lambda.FunctionURL, h)
	}
	return lambda.Webhook(lambda.ALB, h)
}

// signedCall is what Stripe sends.
func signedCall(body string, at time.Time) call {
	p := stripehook.GenerateTestSignedPayload(&stripehook.UnsignedPayload{Payload: []byte(body), Secret: hookSecret, Timestamp: at})
	return call{
		method: "POST", path: "/webhooks/stripe", body: []byte(body),
		header: http.Header{"Content-Type": {"application/json; charset=utf-8"}, webhook.StripeHeader: {p.Header}},
	}
}

// A signature is over bytes: they must come through every source as they were
// sent, in base64 or not.
func TestWebhookRawBody(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		for name, body := range map[string]string{
			"plain":           `{"id":"evt_1"}`,
			"pretty":          "{\n  \"id\": \"evt_1\",\n  \"amount\": 2000\n}\n",
			"not ASCII":       `{"id":"evt_1","name":"Zoë ☕ 日本"}`,
			"escapes":         `{"id":"evt_1","html":"\u003cb\u003e <b>&","sep":"` + "\u2028" + `"}`,
			"CRLF and tabs":   "{\"id\":\"evt_1\"}\r\n\t",
			"no valid UTF-8":  "{\"id\":\"evt_1\",\"x\":\"\xff\xfe\"}",
			"NUL in a string": "{\"id\":\"evt_1\",\"x\":\"\\u0000\"}",
		} {
			for _, encoded := range []bool{false, true} {
				var handled []string
				h := webhooks(t, s, &handled)
				c := signedCall(body, time.Now())
				c.base64 = encoded
				s.send(t, h, c).accepted(t, 200, "", false)
				s.send(t, h, c).accepted(t, 200, "", true)
				if len(handled) != 1 || handled[0] != body {
					t.Errorf("%s, base64 %t: handled %q", name, encoded, handled)
				}
			}
		}
	})
}

func TestWebhookThroughEachSource(t *testing.T) {
	t.Parallel()
	const body = `{"id":"evt_1"}`
	each(t, sources, func(t *testing.T, s source) {
		var handled []string
		h := webhooks(t, s, &handled, func(o *idem.Options) { o.MaxRequest = 100 })
		altered := signedCall(body, time.Now())
		altered.body = []byte(`{"id":"evt_2"}`)
		s.send(t, h, altered).refused(t, 400, "no_valid_signature")
		truncated := signedCall(body, time.Now())
		truncated.body = truncated.body[:5]
		s.send(t, h, truncated).refused(t, 400, "no_valid_signature")
		unsigned := signedCall(body, time.Now())
		unsigned.header.Del(webhook.StripeHeader)
		s.send(t, h, unsigned).refused(t, 400, "not_signed")
		s.send(t, h, signedCall(body, time.Now().Add(-6*time.Minute))).refused(t, 400, "too_old")
		s.send(t, h, signedCall(strings.Repeat("x", 101), time.Now())).refused(t, 413, "body_too_large")
		get := signedCall(body, time.Now())
		get.method = "GET"
		a := s.send(t, h, get)
		a.refused(t, 405, "method_not_allowed")
		if a.value("Allow") != "POST" {
			t.Errorf("headers: %v", a.header)
		}
		noBase64 := editedSource(s, func(ev map[string]any) { ev["isBase64Encoded"] = true })
		noBase64.send(t, h, signedCall(body, time.Now())).refused(t, 400, "malformed")
		if len(handled) != 0 {
			t.Fatalf("handled %q", handled)
		}
		s.send(t, h, signedCall(body, time.Now())).accepted(t, 200, "", false)
		s.send(t, h, signedCall(body, time.Now().Add(time.Second))).accepted(t, 200, "", true)
		if len(handled) != 1 {
			t.Errorf("handled %q", handled)
		}
	})
}

func TestWebhookWrongKindOfEvent(t *testing.T) {
	t.Parallel()
	var handled []string
	for name, tc := range map[string]struct{ payload, says string }{
		"a queue's":  {`{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}`, `records of "aws:sqs"`},
		"no JSON":    {`{`, "no JSON object"},
		"wrong type": {`{"requestContext":{"http":{"method":"POST"}},"body":{}}`, "an HTTP API event"},
	} {
		out, err := webhooks(t, httpAPI, &handled).Invoke(t.Context(), []byte(tc.payload))
		if !errors.Is(err, lambda.ErrEvent) || out != nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %s, %v", name, out, err)
		}
	}
	if len(handled) != 0 {
		t.Errorf("handled %q", handled)
	}
}

type noVerifier struct{}

func (noVerifier) Verify(http.Header, []byte) (webhook.Event, error) {
	return webhook.Event{}, webhook.ErrNotSigned
}

// In a router that sends some events here and others elsewhere.
func TestWebhookHandle(t *testing.T) {
	t.Parallel()
	endpoint := webhook.New(&idem.MemoryStore{}, "e", noVerifier{}, func(context.Context, webhook.Event) error { return nil })
	var ev events.APIGatewayV2HTTPRequest
	ev.RequestContext.HTTP.Method = "POST"
	re, err := lambda.Webhook(lambda.HTTPAPI, endpoint).Handle(t.Context(), ev)
	if err != nil || re.StatusCode != 400 || !strings.Contains(re.Body, "not_signed") {
		t.Errorf("got %+v, %v", re, err)
	}
	re, err = lambda.Webhook(lambda.HTTPAPI, endpoint).Handle(t.Context(), v2Request{})
	if !errors.Is(err, lambda.ErrEvent) || re.StatusCode != 0 {
		t.Errorf("got %+v, %v", re, err)
	}
}
