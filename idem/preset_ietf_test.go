package idem_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// draft-ietf-httpapi-idempotency-key-header-07: a quoted string, POST and PATCH;
// 400, 409 and 422 as problems under the draft's titles; the earlier result,
// success or error. idem.IETF decides the points that the draft leaves open
// (expiry, final failures).
func TestPresetIETF(t *testing.T) {
	t.Parallel()
	const (
		expires = "Idempotency-Expires: Sun, 02 Jan 2000 00:00:00 GMT\n"
		key     = "Idempotency-Key: \"k\"\n"
		head    = "Content-Type: application/json\n"
		again   = "201 after 2 runs\n" + head + expires + key + "Set-Cookie: a=b\n" + made
		soon    = key + "Retry-After: 1\n"
	)
	replay := func(status int, body string) string {
		return fmt.Sprintf("%d after 1 runs\n%sIdempotent-Replayed: true\n%s", status, head+expires+key, body)
	}
	invalid := problem(400, 0, "", "idempotency_key_invalid", "Idempotency-Key is invalid",
		"Send one key of 1 to 255 visible ASCII characters, for instance a UUID, in double quotes (a string of RFC 9651).")
	mismatch := problem(422, 1, expires+key, "idempotency_key_mismatch", "Idempotency-Key is already used",
		"This key was first used with another request, which may have been carried out in part. Retry that one unchanged, or "+
			"send another or a corrected request with a new key.")

	testPreset(t, desk{preset: idem.IETF, key: `"k"`, also: "PATCH"}, map[string]string{
		"new":          "201 after 1 runs\n" + head + expires + key + "Set-Cookie: a=b\n" + made,
		"replay":       replay(201, made),
		"other body":   mismatch,
		"other path":   mismatch,
		"other method": mismatch,
		"other user":   again,
		"other token":  replay(201, made),

		"no key": problem(400, 0, "", "idempotency_key_missing", "Idempotency-Key is missing",
			"Send a unique key for this operation in the Idempotency-Key header, and the same one with every retry of it."),
		"no key, other method": problem(400, 0, "", "idempotency_key_missing", "Idempotency-Key is missing",
			"Send a unique key for this operation in the Idempotency-Key header, and the same one with every retry of it."),
		"key empty": invalid, "key empty quote": invalid, "key of spaces": invalid, "key too long": invalid, "key twice": invalid,
		"keys in a list": invalid, "key with umlaut": invalid,
		"key is a number": problem(400, 0, "Idempotency-Key: 4711\n", "idempotency_key_invalid", "Idempotency-Key is invalid",
			"Send one key of 1 to 255 visible ASCII characters, for instance a UUID, in double quotes (a string of RFC 9651)."),
		"key bare":       strings.Replace(replay(201, made), key, "Idempotency-Key: k\n", 1), // only new keys need quotes
		"key quoted":     replay(201, made),                                                  // parameters are ignored
		"GET with a key": unprotected(2),

		"in flight": problem(409, 1, expires+key+"Retry-After: 5\n", "idempotency_in_flight", "A request is outstanding for this Idempotency-Key",
			"The original request is still being processed. Retry with the same key to get its answer."),
		"other body in flight": mismatch,

		"handler fails": problem(500, 1, key, "internal_error", "Internal error",
			"The request could not be completed. Retry with the same key until it succeeds."),
		"after it has failed": again,
		"after a 400":         replay(400, "no"),
		"after a 401":         again,
		"after a 402":         replay(402, "no"),
		"a 500":               "500 after 1 runs\n" + head + key + "Set-Cookie: a=b\nStripe-Should-Retry: true\nno",
		"with a request id":   "201 after 1 runs\n" + head + expires + key + "Request-Id: req_1\nSet-Cookie: a=b\n" + made,
		"after a request id":  replay(201, made),
		"after a 409":         again,
		"after a 429":         again,
		"after a 500":         again,
		"after a 503":         again,
		"rate limited":        limited(`"k"`),

		"expired": "201 after 2 runs\n" + head + "Idempotency-Expires: Wed, 02 Feb 2000 00:00:00 GMT\n" + key + "Set-Cookie: a=b\n" + made,
		"expired, told": problem(410, 1, expires+key, "idempotency_key_expired", "Idempotency-Key has expired",
			"The request with this key was carried out, and its answer is no longer kept. It was not carried out again."),
		"answer not kept": problem(410, 1, expires+key, "idempotency_answer_not_kept", "The answer was not kept",
			"The request with this key was carried out, and its answer was too large to keep. It was not carried out again."),
		"stuck": problem(409, 1, key, "idempotency_stuck", "The request is stuck",
			"The request with this key could not be completed and waits for an operator. Retrying does not help."),

		"store down": problem(503, 0, soon, "store_unavailable", "The service is temporarily unavailable",
			"What is known of this key could not be read. Retry with the same key."),
		"over the quota": problem(429, 0, key+"Retry-After: 2\n", "quota_exceeded", "Too many new requests",
			"Nothing was done. Wait as long as Retry-After says, and retry with the same key."),
		"too little time": problem(503, 0, soon, "no_time_left", "Too little time left", "Nothing was done. Retry with the same key."),
		"record is corrupt": problem(500, 0, key, "record_corrupt", "The record of this key is corrupt",
			"The request was not carried out again. An operator must look at it."),
		"too large a body": problem(413, 0, key, "request_too_large", "Request body is too large", "Nothing was done. Send a smaller body."),
		"undecodable body": problem(400, 0, key, "request_invalid", "Request can't be decoded", "Nothing was done. Correct the request's encoding."),
	})
}

const pages = "https://github.com/samekey/samekey/blob/main/docs/use/http.md#"

// problem returns an answer in the form of RFC 9457.
func problem(status, runs int, header, code, title, detail string) string {
	return fmt.Sprintf("%d after %d runs\nCache-Control: no-store\nContent-Type: application/problem+json\n%s"+
		`{"type":"%s","title":"%s","status":%d,"detail":"%s","code":"%s"}`, status, runs, header, pages+code, title, status, detail, code)
}
