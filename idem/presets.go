package idem

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Stripe sets the contract of Stripe's API v2: keys on POST and DELETE, kept for 30
// days; after a server error (5xx), a retry runs the handler again; errors have
// Stripe's shape. A DELETE without a key goes to the handler as if there were no
// engine, since some of Stripe's clients send a DELETE without a key on paths that
// begin with /v1/.
func Stripe(o *Options) {
	o.Retention = 30 * 24 * time.Hour
	o.Methods = []string{http.MethodPost, http.MethodDelete}
	o.Stored = storedBy(false, http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests)
	o.Problem, o.rules = stripeJSON, rules{stripe: true, optional: []string{http.MethodDelete}}
}

// StripeV1 sets the contract of Stripe's API v1: optional keys on POST, kept for 24
// hours. If the handler answers with a server error (5xx), the answer is stored and
// replayed, unless a phase has failed. If the handler returns an error or panics, no
// answer is stored, and the key is freed as [Engine.Do] describes.
func StripeV1(o *Options) {
	o.Retention = 24 * time.Hour
	o.Methods = []string{http.MethodPost}
	o.Key = KeyOptional
	o.Stored = storedBy(true, http.StatusBadRequest, http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests)
	o.Problem, o.rules = stripeJSON, rules{stripe: true}
}

// IETF sets the contract of draft-ietf-httpapi-idempotency-key-header: quoted keys on
// POST and PATCH. IETF stores and replays every answer below 500, success or error. The
// exceptions are 409, 425, 429, and answers that ask for the same request with other
// credentials or headers, or over another connection (see [DefaultStored]).
func IETF(o *Options) {
	o.Methods = []string{http.MethodPost, http.MethodPatch}
	o.rules.quoted = true
	o.Stored = storedBy(false, http.StatusUnauthorized, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests)
	o.Problem = ProblemJSON
}

// ACP sets the contract of the Agentic Commerce Protocol: required keys on POST, kept
// for 24 hours; errors in ACP's flat shape; and the request's Request-Id in the
// answers. If you set another Retention, it must be at least 24 hours. The same key on
// another path is another operation.
//
// A retry must have the same query, and a body with the same JSON value. White space,
// the order of members and the escapes in a string make no difference. Numbers are
// compared by their exact values, so 1.0 equals 1. A null differs from an absent
// member. ACP accepts an empty body. It refuses these bodies (ErrRequest): a body that
// isn't JSON in UTF-8; a body of more than 1 MiB or 200 levels; a body with two members
// of the same name (ignoring case), which two parsers may read differently; and a body
// with half of a surrogate pair.
func ACP(o *Options) {
	commerce(o, func(r *Request) ([]byte, error) { return exactJSON(r.Body) }, "acp")
	o.Retention = 24 * time.Hour
	o.Problem = acpJSON
	o.rules.requestID = true
}

// UCP sets the contract of the Universal Commerce Protocol: required keys of at least 22
// characters on POST and PUT, kept for 48 hours. If you set another Retention, it must be
// at least 24 hours. The same key on another path is another operation. A retry must have
// the same query and the same bytes in the body, which are compared by their SHA-256. If
// the query or the body differs, the answer is 409. New refuses [ModeOpen] and [ModeOff].
func UCP(o *Options) {
	commerce(o, func(r *Request) ([]byte, error) { return r.Body, nil }, "ucp")
	o.Retention = 48 * time.Hour
	o.Methods = append(o.Methods, http.MethodPut)
	o.MinKey = minRandomKey
	o.Problem = ucpJSON
}

// commerce sets the rules that ACP and UCP share. The parameter body is a function that
// returns the form in which a request's body is compared. The parameter scheme is the
// fingerprint's name.
func commerce(o *Options, body func(*Request) ([]byte, error), scheme string) {
	o.Methods = []string{http.MethodPost}
	o.Key = KeyRequired
	o.Stored = storedBy(false, http.StatusUnauthorized, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests)
	o.Fingerprint.FuncName = scheme
	o.Fingerprint.Func = func(r *Request) ([]byte, error) {
		// Under the preset, the scope has the method and the path already. The fingerprint
		// needs them for an engine without the preset that has this fingerprint in
		// Fingerprint.Known.
		same := appendTagged(appendTagged(nil, 'm', r.Method), 'p', r.Path)
		if query := canonicalQuery(r.Query); query != "" {
			same = appendTagged(same, 'q', query)
		}
		if r.Same != nil {
			return appendTagged(same, 's', string(r.Same)), nil
		}
		if len(r.Body) == 0 { // such as the body of a cancellation
			return appendTagged(same, 'e', ""), nil
		}
		form, err := body(r)
		return append(append(same, 'b'), form...), err
	}
	o.rules = rules{path: true, failClosed: true, retention: 24 * time.Hour}
}

// The type rules holds those rules of a preset that no option sets.
type rules struct {
	path       bool          // method and path, as the client sent them, are part of the scope
	requestID  bool          // answers echo the request's Request-Id
	stripe     bool          // stored answers have Stripe's headers, and keep the handler's Request-Id
	failClosed bool          // ModeOpen and ModeOff are refused, since a keyed request must get 503 without the store
	quoted     bool          // the key of a new operation must be quoted; a known key needs no quotes
	optional   []string      // methods for which a request without a key passes to the handler
	retention  time.Duration // the least Retention
}

// rules.exposes lists the preset's headers that a page in a browser may read (CORS).
func (r *rules) exposes() []string {
	switch {
	case r.stripe:
		return []string{stripeShouldRetry, requestID}
	case r.requestID:
		return []string{requestID}
	}
	return nil
}

// rules.validate returns an error for options that contradict a rule.
func (r *rules) validate(o *Options) error {
	switch {
	case o.Retention < r.retention:
		return fmt.Errorf("Options.Retention %v: at least %v under this preset", o.Retention, r.retention)
	case r.failClosed && (o.Mode == ModeOpen || o.Mode == ModeOff):
		return fmt.Errorf("Mode %v: the preset's contract wants 503 without the store", o.Mode)
	case r.path && o.StatusURL != "":
		return errors.New("StatusURL: under this preset an operation's path is part of its key, and its status has another one")
	}
	return nil
}

// OneScope gives all unverified callers one scope, for public routes:
//
//	idem.New(store, idem.OneScope)
//
// A caller in this scope sees another caller's answer if it knows the other's key and
// request. So the keys must be random, with at least 22 characters, unless
// [Options.MinKey] sets another minimum. These callers have a status resource only if
// [Options.StatusURL] is set, since anybody who knows a key then sees the key's answer
// there. Each caller with a verified identity keeps a separate scope, and so does each
// tenant. OneScope changes no scope if [Options.Scope] is set. If [Options.Resumable]
// is set, the handlers must not look for a token in the request, since a completer's
// request has none: see [Options.CallerFromOp].
func OneScope(o *Options) { o.oneScope = true }
