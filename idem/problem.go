package idem

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Problem describes an answer that the engine gives in place of the handler's answer.
type Problem struct {
	Status     int           // HTTP status
	Code       string        // stable name of the problem, for machines
	Title      string        // short text, the same for every occurrence
	Detail     string        // advice for the client
	RetryAfter time.Duration // 0 = no Retry-After
	Err        error         // the cause, for Options.Problem; not for clients
}

// docs is the URL of the page that explains each Code.
const docs = "https://github.com/samekey/samekey/blob/main/docs/use/http.md#"

// The table problems has the answer for each error of the HTTP contract. If an error
// matches several rows, the first row counts.
var problems = []struct {
	err     error
	problem Problem
}{
	{ErrKeyMissing, Problem{
		Status: 400, Code: "idempotency_key_missing", Title: "Idempotency-Key is missing",
		Detail: "Send a unique key for this operation in the Idempotency-Key header, and the same key with every retry.",
	}},
	{ErrKeyInvalid, Problem{
		Status: 400, Code: "idempotency_key_invalid", Title: "Idempotency-Key is invalid",
		Detail: "Send one key of 1 to 255 visible ASCII characters, for instance a UUID.",
	}},
	{ErrTooLarge, Problem{
		Status: 413, Code: "request_too_large", Title: "Request body is too large",
		Detail: "Nothing was done. Send a smaller body.",
	}},
	{ErrRequest, Problem{
		Status: 400, Code: "request_invalid", Title: "Request can't be decoded",
		Detail: "Nothing was done. Correct the request's encoding.",
	}},
	{ErrMismatch, Problem{
		Status: 422, Code: "idempotency_key_mismatch", Title: "Idempotency-Key is already used",
		Detail: "This key was first used with another request, which may have been carried out in part. Retry that request unchanged, or " +
			"send the new request with a new key.",
	}},
	{ErrKeyUnknown, Problem{
		Status: 404, Code: "idempotency_key_unknown", Title: "Idempotency-Key is unknown",
		Detail: "No request with this key was received, or the request failed and may be sent again, or the key has expired.",
	}},
	{ErrNotKept, Problem{
		Status: 410, Code: "idempotency_answer_not_kept", Title: "The answer was not kept",
		Detail: "The request with this key was carried out, but its answer can't be sent again. The request was not carried out again.",
	}},
	{ErrEncoding, Problem{
		Status: 406, Code: "idempotency_encoding", Title: "The answer is stored in another encoding",
		Detail: "The request with this key was carried out. Retry with the same key and an Accept-Encoding that lists the encoding of the first answer.",
	}},
	{ErrStuck, Problem{
		Status: 409, Code: "idempotency_stuck", Title: "The request is stuck",
		Detail: "The request with this key could not be completed and waits for an operator. Retrying does not help.",
	}},
	{ErrUnfinished, unfinished},
	{ErrInFlight, Problem{
		Status: 409, Code: "idempotency_in_flight", Title: "A request is outstanding for this Idempotency-Key",
		Detail: "The original request is still being processed. Retry with the same key to get its answer.", RetryAfter: time.Second,
	}},
	{ErrLeaseLost, Problem{
		Status: 409, Code: "idempotency_lease_lost", Title: "The request was overtaken",
		Detail: "Another attempt has taken over. Retry with the same key to get its answer.", RetryAfter: time.Second,
	}},
	{ErrConflict, Problem{
		Status: 409, Code: "conflict", Title: "Another request is changing the same data",
		Detail: "The request could not be completed. Retry with the same key.", RetryAfter: time.Second,
	}},
	{ErrNoTime, Problem{
		Status: 503, Code: "no_time_left", Title: "Too little time left",
		Detail: "Nothing was done. Retry with the same key.", RetryAfter: time.Second,
	}},
	{ErrQuota, Problem{
		Status: 429, Code: "quota_exceeded", Title: "Too many new requests",
		Detail: "Nothing was done. Wait as long as Retry-After says, and retry with the same key.", RetryAfter: time.Second,
	}},
	{ErrCorrupt, Problem{
		Status: 500, Code: "record_corrupt", Title: "The record of this key is corrupt",
		Detail: "The request was not carried out again. An operator must look at it.",
	}},
	{ErrIncomparable, Problem{
		Status: 503, Code: "idempotency_incomparable", Title: "The record of this key can't be compared",
		Detail: "The request was not carried out again. Retry with the same key.", RetryAfter: untilDeployed,
	}},
	{ErrScope, Problem{
		Status: 500, Code: "scope_unknown", Title: "The caller can't be identified",
		Detail: "Retrying does not help. An operator must configure how callers are told apart.",
	}},
	{ErrUnprotected, Problem{
		Status: 503, Code: "unprotected", Title: "The request can't be protected",
		Detail: "The service runs without records at the moment, and this request needs one. Retry with the same key.", RetryAfter: time.Second,
	}},
	{ErrUnavailable, Problem{
		Status: 503, Code: "store_unavailable", Title: "The service is temporarily unavailable",
		Detail: "The record of this key could not be read or written. Retry with the same key.", RetryAfter: time.Second,
	}},
}

// unreadDetail is the advice for a request that is refused before its record was read. It
// doesn't say that nothing was done, since an earlier attempt may have done the work.
const unreadDetail = "The request was refused, and the record of its key was not read: an earlier attempt may have been carried out."

// untilDeployed is the Retry-After if the program can't compare a record, because it
// doesn't know the record's scheme or secret. Only a deployment helps, so earlier
// retries are of no use.
const untilDeployed = 5 * time.Minute

// unfinished is the answer for a request that was begun. It doesn't say what was done,
// since the work may be done in part, and may go on.
var unfinished = Problem{
	Status: 503, Code: "idempotency_unfinished", Title: "The request is not finished",
	Detail: "The request was begun, and may still be carried out. Retry with the same key to get its answer.", RetryAfter: time.Second,
}

// failed is the answer for errors that match no row of the table problems, such as the
// handler's own.
var failed = Problem{
	Status: 500, Code: "internal_error", Title: "Internal error",
	Detail: "The request could not be completed. Retry with the same key until it succeeds.",
}

// problemOf finds the answer for err.
func problemOf(err error) Problem {
	p := failed
	for _, row := range problems {
		if errors.Is(err, row.err) {
			p = row.problem
			break
		}
	}
	p.Err = err
	if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter > 0 && p.RetryAfter > 0 {
		p.RetryAfter = e.RetryAfter
	}
	return p
}

// problemIn finds the answer for an error that a handler returns. It looks only for
// those errors of phases that are listed here, because a phase's error may also wrap an
// error that is not about this request, such as the ErrMismatch of a nested operation.
// For ErrNoTime the answer must not say that nothing was done, because a phase runs
// after the operation has begun.
func problemIn(err error) Problem {
	ours, _ := errors.AsType[*Error](err)
	switch {
	case ours == nil || !ours.phase:
		return failed
	case errors.Is(err, ErrNoTime):
		return unfinished
	}
	for _, told := range []error{ErrStuck, ErrLeaseLost, ErrConflict, ErrUnprotected, ErrUnavailable} {
		if errors.Is(err, told) {
			return problemOf(err)
		}
	}
	return failed
}

// ProblemJSON returns p as an answer in the form of RFC 9457. The member code, an
// extension of the form, holds p.Code.
func ProblemJSON(p Problem) Response {
	return problemResponse(p, "application/problem+json", struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{docs + p.Code, p.Title, p.Status, p.Detail, p.Code})
}

func problemResponse(p Problem, contentType string, body any) Response {
	b, err := json.Marshal(body)
	if err != nil {
		b = nil // unreachable: each body is a struct of strings and ints
	}
	h := http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-store"}}
	if p.RetryAfter > 0 {
		h["Retry-After"] = []string{wholeSeconds(p.RetryAfter)}
	}
	return Response{Status: p.Status, Header: h, Body: b}
}

func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
