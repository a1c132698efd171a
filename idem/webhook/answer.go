package webhook

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/samekey/samekey/idem"
)

// refusal is an answer that makes the provider try again.
type refusal struct {
	status int
	code   string // stable, explained in docs/use/webhooks.md
	detail string
	retry  time.Duration // if 0, the answer has no Retry-After, since providers have their own schedules
}

// The table refusals has the answer for each error. answerOf uses the first match. The
// table has no 2xx, which would end the retries, and no 410, after which some providers
// disable the endpoint.
var refusals = []struct {
	err error
	refusal
}{
	{errNotRecorded, refusal{http.StatusServiceUnavailable, "not_recorded", "The event could not be recorded. Send it again.", time.Second}}, // first, since it wraps any error
	{errMethod, refusal{http.StatusMethodNotAllowed, "method_not_allowed", "Webhooks are sent by POST.", 0}},
	{idem.ErrTooLarge, refusal{http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than this endpoint takes.", 0}},
	{ErrNotSigned, refusal{http.StatusBadRequest, "not_signed", "The signature's header is missing.", 0}},
	{ErrNoValidSignature, refusal{http.StatusBadRequest, "no_valid_signature", "No signature fits this endpoint's secret and the body.", 0}},
	{ErrTooOld, refusal{http.StatusBadRequest, "too_old", "The signature was made too long ago.", 0}},
	{ErrTooNew, refusal{http.StatusBadRequest, "too_new", "The signature's time is in the future.", 0}},
	{ErrMalformed, refusal{http.StatusBadRequest, "malformed", "The delivery breaks the rules of its scheme.", 0}},

	{idem.ErrStuck, refusal{http.StatusConflict, "stuck", "The event waits for an operator.", 0}},
	{idem.ErrInFlight, refusal{http.StatusConflict, "in_flight", "Another delivery of the event is being handled.", time.Second}},
	{idem.ErrNoTime, refusal{http.StatusServiceUnavailable, "no_time_left", "Too little time was left to handle the event. Send it again.", time.Second}},
	{idem.ErrUnfinished, refusal{http.StatusServiceUnavailable, "unfinished", "The outcome of a call is not known yet. Send the event again.", time.Second}},
	{idem.ErrQuota, refusal{http.StatusTooManyRequests, "quota_exceeded", "Nothing was done. Send it again later.", time.Second}},
	{idem.ErrUnavailable, refusal{http.StatusServiceUnavailable, "store_unavailable", "The record of the event could not be read. Send it again.", time.Second}},
}

// failed is the answer for all errors that aren't in the table refusals, and for all
// errors of the handler.
var failed = refusal{http.StatusInternalServerError, "internal_error", "The event could not be handled. Send it again.", 0}

func answerOf(err error) refusal {
	if _, own := errors.AsType[*handlerError](err); own {
		return failed // even if the handler's error wraps an error of the table refusals
	}
	for _, row := range refusals {
		if errors.Is(err, row.err) {
			return row.refusal
		}
	}
	return failed
}

// docs is the URL of the page that explains each code.
const docs = "https://github.com/samekey/samekey/blob/main/docs/use/webhooks.md#"

// answer returns a problem (RFC 9457) for err. The answer contains nothing that
// helps to forge a signature.
func answer(err error) idem.Response {
	r := answerOf(err)
	body, _ := json.Marshal(struct { // strings and an int: Marshal can't fail
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{docs + r.code, http.StatusText(r.status), r.status, r.detail, r.code})
	h := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}
	if e, ok := errors.AsType[*idem.Error](err); ok && r.retry > 0 {
		r.retry = max(r.retry, e.RetryAfter)
	}
	if r.retry > 0 {
		h["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(r.retry.Seconds())))}
	}
	if r.status == http.StatusMethodNotAllowed {
		h["Allow"] = []string{http.MethodPost}
	}
	return idem.Response{Status: r.status, Header: h, Body: body}
}

// The function handled returns the answer for an event that is recorded as handled.
func handled(replayed bool) idem.Response {
	h := http.Header{"Cache-Control": {"no-store"}}
	if replayed {
		h[idem.ReplayedHeader] = []string{"true"}
	}
	return idem.Response{Status: http.StatusOK, Header: h}
}
