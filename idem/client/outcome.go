package client

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// ResultHeader is the name of a response header. The transport adds this header if the
// server's status doesn't tell whether the operation was carried out. The header's values
// are [DeletedBefore] and [OutcomeUnknown].
const ResultHeader = "Idempotency-Client"

// Values of [ResultHeader].
const (
	// DeletedBefore marks a 204 that the transport has put in place of the server's
	// 404. The request is a DELETE, and an earlier attempt may have deleted the
	// resource.
	DeletedBefore = "deleted-before"
	// OutcomeUnknown marks an answer that leaves open whether the server has carried
	// out a keyed operation. A replay is never marked. These answers are marked:
	//
	//   - a 409, a 5xx, or a 202 with Retry-After;
	//   - a refusal of the key, because an earlier attempt has used the key;
	//   - a 401, 403, 407, 408, 425 or 429, if an earlier attempt may have been carried
	//     out, or if the caller set the key.
	//
	// Repeat the request only with the same key, which is in Response.Request.Header.
	// Don't repeat the request if the server ignores keys (Idempotency-Status:
	// ignored).
	OutcomeUnknown = "outcome-unknown"
)

// operation.settles reports whether an answer is the operation's final answer: the
// same request can't get a better answer. These answers are not final: a 5xx, an answer
// about the key, and an answer after which the client has to wait, to sign in or to go
// elsewhere. A replay is always final.
func (o *operation) settles(resp *http.Response) bool {
	if isReplay(resp) {
		return true
	}
	if o.aboutKey {
		return false
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusTooEarly, http.StatusTooManyRequests, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return false
	case http.StatusAccepted:
		return resp.Header.Get("Retry-After") == "" // package idem sends Retry-After with a 202 while the operation runs
	}
	return resp.StatusCode < http.StatusInternalServerError
}

// isAboutKey reports whether a refusal is about the request's key. A refusal about the
// key shows that an earlier attempt arrived, but doesn't show the outcome of that
// attempt. isAboutKey is false if the key is invalid or missing. isAboutKey is also
// false for 410, by which package idem reports that the operation was carried out.
func isAboutKey(resp *http.Response, body []byte) bool {
	if isReplay(resp) || resp.StatusCode < http.StatusBadRequest || resp.StatusCode == http.StatusGone {
		return false
	}
	type refusal struct{ Type, Code string }
	var r struct {
		refusal
		Error  refusal   // Stripe
		Errors []refusal // Square
	}
	_ = json.Unmarshal(body, &r) // even after an error, the fields that could be read are used
	return slices.ContainsFunc(append(r.Errors, r.refusal, r.Error), func(r refusal) bool {
		names := strings.ToLower(r.Type + " " + r.Code)
		return strings.Contains(names, "idempoten") && !strings.HasSuffix(names, "_invalid") && !strings.HasSuffix(names, "_missing")
	})
}

func isReplay(resp *http.Response) bool {
	return strings.EqualFold(resp.Header.Get(replayedHeader), "true")
}

// deletedBefore reports whether resp is a 404 to a DELETE, and an earlier attempt may
// have deleted the resource.
func (o *operation) deletedBefore(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNotFound && o.req.Method == http.MethodDelete && o.unknown
}

// noContent turns resp into a 204, and removes its body and the headers that describe the
// body.
func noContent(resp *http.Response) {
	resp.Status, resp.StatusCode = "204 No Content", http.StatusNoContent
	resp.Body, resp.ContentLength, resp.TransferEncoding, resp.Trailer, resp.Uncompressed = http.NoBody, 0, nil, nil, false
	for name := range resp.Header {
		if strings.HasPrefix(name, "Content-") || name == "Etag" || name == "Last-Modified" || name == "Trailer" {
			delete(resp.Header, name)
		}
	}
	resp.Header.Set(ResultHeader, DeletedBefore)
}
