package idem_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// Stripe's API v2: keys live for 30 days, on POST and DELETE; no failure is
// final. A missing key is refused: Stripe's clients always send a key, except
// with DELETE to v1's paths.
func TestPresetStripe(t *testing.T) {
	t.Parallel()
	c := stripeContract{expires: "Mon, 31 Jan 2000 00:00:00 GMT", renewed: "Thu, 02 Mar 2000 00:00:00 GMT"}
	want := c.both()
	maps.Copy(want, map[string]string{
		"other method": want["other body"],
		"no key": stripeError(400, 0, "", "invalid_request_error", "idempotency_key_missing", "Idempotency-Key is missing. "+
			"Send a unique key for this operation in the Idempotency-Key header, and the same one with every retry of it."),
		"no key, other method": untouched(1),
		"a 500":                "500 after 1 runs\nContent-Type: application/json\nIdempotency-Key: k\nSet-Cookie: a=b\nStripe-Should-Retry: true\nno",
		"after a 500":          c.first(2),
		"after a 503":          c.first(2),
	})
	testPreset(t, desk{preset: idem.Stripe, key: "k", also: "DELETE"}, want)
}

// Stripe's API v1: keys live for 24 hours, are optional, and act on POST only;
// the first answer is kept "regardless of whether it succeeds or fails", 500s
// included.
func TestPresetStripeV1(t *testing.T) {
	t.Parallel()
	c := stripeContract{expires: "Sun, 02 Jan 2000 00:00:00 GMT", renewed: "Wed, 02 Feb 2000 00:00:00 GMT"}
	want := c.both()
	maps.Copy(want, map[string]string{
		"other method":         unprotected(2),
		"no key":               untouched(1),
		"no key, other method": untouched(1),
		"a 500":                kept(500, 1, c.expires, "k", "Set-Cookie: a=b\nStripe-Should-Retry: false", "no"), // the handler's own value is replaced
		"after a 500":          c.replay(500, "no"),
		"after a 503":          c.replay(503, "no"),
	})
	testPreset(t, desk{preset: idem.StripeV1, key: "k", also: "DELETE"}, want)
}

// stripeContract has the ends of two keys' lifetimes: of a key first used when
// the bubble begins, and of a key that is new again a month later.
type stripeContract struct{ expires, renewed string }

// both are the common situations of both contracts.
func (c stripeContract) both() map[string]string {
	const key = "Idempotency-Key: k\n"
	known := "Idempotency-Expires: " + c.expires + "\n" + key
	badKey := stripeError(400, 0, "", "invalid_request_error", "idempotency_key_invalid",
		"Idempotency-Key is invalid. Send one key of 1 to 255 visible ASCII characters, for instance a UUID.")
	mismatch := stripeError(400, 1, known, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters "+
		"they were first used with. Try using a key other than the one you sent if you meant to execute a different request.")
	return map[string]string{
		"new":         c.first(1),
		"replay":      c.replay(201, made),
		"other body":  mismatch,
		"other path":  mismatch,
		"other user":  c.first(2),
		"other token": c.replay(201, made),

		"key empty": badKey, "key empty quote": badKey, "key of spaces": badKey, "key too long": badKey,
		"key twice": badKey, "keys in a list": badKey, "key with umlaut": badKey,
		"key is a number": kept(201, 1, c.expires, "4711", "Set-Cookie: a=b", made),
		"key bare":        c.replay(201, made),
		"key quoted":      kept(201, 1, c.expires, `"k"`, "Idempotent-Replayed: true", made),
		"GET with a key":  unprotected(2),

		// 22 s of lease, of which 3 s have passed.
		"in flight": stripeError(409, 1, known+"Retry-After: 5\n", "idempotency_error", "idempotency_key_in_use",
			"There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, "+
				"and the other request is still going through). Please try again later."),
		"other body in flight": mismatch,

		"handler fails": `500 after 1 runs
Cache-Control: no-store
Content-Type: application/json
Idempotency-Key: k
Stripe-Should-Retry: true
{"error":{"code":"internal_error","message":"Internal error. The request could not be completed. Retry with the same key until it succeeds.","type":"api_error"}}`,
		"after it has failed": c.first(2),
		"after a 400":         c.first(2),
		"after a 401":         c.first(2),
		"after a 402":         c.replay(402, "no"),
		"after a 409":         c.first(2),
		"after a 429":         c.first(2),
		"rate limited":        limited("k"),
		"with a request id":   identified(c.first(1)),
		"after a request id":  identified(c.replay(201, made)),

		"expired": kept(201, 2, c.renewed, "k", "Set-Cookie: a=b", made),
		"expired, told": stripeError(410, 1, known, "idempotency_error", "idempotency_key_expired", "Idempotency-Key has expired. "+
			"The request with this key was carried out, and its answer is no longer kept. It was not carried out again."),
		"answer not kept": stripeError(410, 1, known, "idempotency_error", "idempotency_answer_not_kept", "The answer was not kept. "+
			"The request with this key was carried out, and its answer was too large to keep. It was not carried out again."),
		"stuck": stripeError(409, 1, key, "idempotency_error", "idempotency_stuck", "The request is stuck. "+
			"The request with this key could not be completed and waits for an operator. Retrying does not help."),

		"store down": stripeError(503, 0, key+"Retry-After: 1\n", "api_error", "store_unavailable",
			"The service is temporarily unavailable. What is known of this key could not be read. Retry with the same key."),
		"over the quota": stripeError(429, 0, key+"Retry-After: 2\n", "invalid_request_error", "rate_limit",
			"Request rate limit exceeded. Nothing was done. Wait as long as Retry-After says, and retry with the same key."),
		"too little time": stripeError(503, 0, key+"Retry-After: 1\n", "api_error", "no_time_left",
			"Too little time left. Nothing was done. Retry with the same key."),
		"record is corrupt": stripeError(500, 0, key, "api_error", "record_corrupt",
			"The record of this key is corrupt. The request was not carried out again. An operator must look at it."),
		"too large a body": stripeError(413, 0, key, "invalid_request_error", "request_too_large",
			"Request body is too large. Nothing was done. Send a smaller body."),
		"undecodable body": stripeError(400, 0, key, "invalid_request_error", "request_invalid",
			"Request can't be decoded. Nothing was done. Correct the request's encoding."),
	}
}

func (c stripeContract) first(runs int) string {
	return kept(201, runs, c.expires, "k", "Set-Cookie: a=b", made)
}

func (c stripeContract) replay(status int, body string) string {
	more := "Idempotent-Replayed: true"
	if status >= 400 {
		more += "\nStripe-Should-Retry: false"
	}
	return kept(status, 1, c.expires, "k", more, body)
}

// identified is an answer to req_1, or its replay if only the handler gives ids
// to requests.
func identified(answer string) string {
	head, body, _ := strings.Cut(answer, "\n{")
	lines := append(strings.Split(head, "\n"), "Original-Request: req_1", "Request-Id: req_1")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n") + "\n{" + body
}

// kept is a handler's answer with all headers about its key.
func kept(status, runs int, expires, key, more, body string) string {
	return fmt.Sprintf("%d after %d runs\nContent-Type: application/json\nIdempotency-Expires: %s\nIdempotency-Key: %s\n%s\n%s",
		status, runs, expires, key, more, body)
}

// stripeError is an error in Stripe's shape. A client may retry an error with
// Retry-After.
func stripeError(status, runs int, header, kind, code, message string) string {
	retry := strings.Contains(header, "Retry-After")
	if code != "" {
		code = fmt.Sprintf(`"code":%q,`, code)
	}
	return fmt.Sprintf("%d after %d runs\nCache-Control: no-store\nContent-Type: application/json\n%sStripe-Should-Retry: %t\n"+
		`{"error":{%s"message":%q,"type":%q}}`, status, runs, header, retry, code, message, kind)
}
