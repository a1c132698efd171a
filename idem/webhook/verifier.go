package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Event is a delivery with a valid signature of its provider.
type Event struct {
	// ID is the provider's name for the event. All deliveries of the event have the same
	// ID. ID has 1 to 255 visible ASCII characters and is safe to log.
	ID string
	// Sent is the time of this delivery's signature, in whole seconds of the provider's
	// clock. Later deliveries of the same event have later times. The time of the event
	// itself is in the body.
	Sent time.Time
	// Body is the signed body, byte for byte. Body must not be changed.
	Body []byte
}

// Verifier distinguishes a provider's deliveries from other requests. [NewStripe] and
// [NewStandard] make verifiers. A verifier must be safe for concurrent use.
//
// Verify gets the headers and the body as they arrived. Header names may be in upper or
// lower case. Verify returns the event, with an ID that the signature covers. Verify
// must neither change the headers and the body, nor use them after it has returned. If
// the check is impossible at the moment, Verify returns an error that matches
// idem.ErrUnavailable. If the delivery is refused, the error matches an error of this
// package. Any other error counts as ErrMalformed. The error's text must not contain
// any part of a secret or the body.
type Verifier interface {
	Verify(h http.Header, body []byte) (Event, error)
}

// Errors of a refused delivery. A refusal loses no event: nothing was stored, and the
// provider will deliver the event again.
var (
	// ErrNotSigned matches errors from a request without a signature. If the request
	// comes from somebody who has found the URL, no action is needed. If the provider
	// sent the request, either the provider is not configured to sign, or a proxy
	// removes the header.
	ErrNotSigned = errors.New("webhook is not signed")

	// ErrNoValidSignature matches errors from a request without a valid signature. If
	// the provider sent the request, there are two possible causes. Either your secret
	// is wrong: it is old, or it belongs to another endpoint or mode (test or live). Or
	// a proxy changes the body. If somebody else sent the request, the check has
	// stopped a forgery.
	ErrNoValidSignature = errors.New("webhook has no valid signature")

	// ErrTooOld matches errors from a delivery whose valid signature is older than 5
	// minutes. Either a recorded delivery was sent again, or this machine's clock is
	// ahead. A provider's own retry isn't too old, since the provider signs each retry
	// anew.
	ErrTooOld = errors.New("webhook was signed too long ago")

	// ErrTooNew matches errors from a delivery whose valid signature is more than 5
	// minutes in the future. Check this machine's clock.
	ErrTooNew = errors.New("webhook was signed in the future")

	// ErrMalformed matches errors from headers or a body that violate the scheme, such
	// as two timestamps or an event without an id. Check which scheme the provider
	// uses, and whether a proxy adds headers.
	ErrMalformed = errors.New("webhook is malformed")
)

// VerifierOptions are options of [NewStripe] and [NewStandard].
type VerifierOptions struct {
	// MoreSecrets are accepted in addition to the first secret. During a rotation, add
	// the next or the previous secret, because providers sign with both secrets for
	// about a day.
	MoreSecrets []string
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// tolerance is the largest difference between a signature's time and now, in either
// direction. tolerance limits how long an attacker can repeat a recorded delivery.
// While the event's record is kept, a repetition is answered as a duplicate, and does
// no harm.
const tolerance = 5 * time.Minute

// verifier holds the common parts of the schemes.
type verifier struct {
	keys []key
	now  func() time.Time
}

// key checks signatures with a secret. The secret is inside of a func, so that a
// printed verifier doesn't show the secret. An HMAC key hashes message once for any
// number of signatures.
type key struct {
	scheme string
	of     func(message []byte) (matches func(sum []byte) bool)
}

type signature struct {
	scheme string
	sum    []byte
}

// maxSignatures is how many signatures of known schemes a request may have. A rotation
// needs two signatures. The limit bounds the work that a forged request causes.
const maxSignatures = 16

// newVerifier reads options and secrets. Errors don't show secrets.
func newVerifier(name, secret string, parse func(string) (key, error), optFns []func(*VerifierOptions)) (verifier, error) {
	opt := VerifierOptions{Now: time.Now}
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Now == nil {
		return verifier{}, fmt.Errorf("webhook: %s: Now is required", name)
	}
	v := verifier{now: opt.Now}
	for i, s := range append([]string{secret}, opt.MoreSecrets...) {
		k, err := parse(s)
		if err != nil {
			return verifier{}, fmt.Errorf("webhook: %s: secret %d: %w", name, i+1, err)
		}
		v.keys = append(v.keys, k)
	}
	return v, nil
}

// verifier.check verifies the signatures before the time, so that a request without a
// valid signature gets ErrNoValidSignature whatever its time is.
func (v *verifier) check(message []byte, signatures []signature, sent time.Time) error {
	if !v.signed(message, signatures) {
		return ErrNoValidSignature
	}
	switch age := v.now().Sub(sent); {
	case age > tolerance:
		return fmt.Errorf("%w: %v, tolerated are %v", ErrTooOld, age.Round(time.Second), tolerance)
	case age < -tolerance:
		return fmt.Errorf("%w: %v, tolerated are %v", ErrTooNew, -age.Round(time.Second), tolerance)
	}
	return nil
}

func (v *verifier) signed(message []byte, signatures []signature) bool {
	for _, k := range v.keys {
		matches := k.of(message)
		for _, s := range signatures {
			if s.scheme == k.scheme && matches(s.sum) {
				return true
			}
		}
	}
	return false
}

// The function header returns the value of the header called name, or "" if the header
// is missing or empty. If the header occurs twice, header returns an error. The case of
// name is ignored, because a map that was not filled through http.Header has the
// sender's spelling.
func header(h http.Header, name string) (value string, err error) {
	found := false
	for n, values := range h {
		if len(n) != len(name) || !strings.EqualFold(n, name) {
			continue
		}
		for _, v := range values {
			if found {
				return "", fmt.Errorf("%w: more than one %s", ErrMalformed, name)
			}
			value, found = v, true
		}
	}
	return value, nil
}

// parseTime reads a decimal number of seconds since 1970, without a sign or leading
// zeros. Other forms are refused, since programs read them differently.
func parseTime(s string) (time.Time, error) {
	const digits = 12                    // enough for 30,000 years, and far from an overflow
	n, _ := strconv.ParseUint(s, 10, 64) // the error needs no check: after an error n differs from s, so the next line refuses s
	if len(s) > digits || strconv.FormatUint(n, 10) != s {
		return time.Time{}, fmt.Errorf("%w: the timestamp is no decimal number of seconds", ErrMalformed)
	}
	return time.Unix(int64(n), 0), nil
}

// checkID applies package idem's rules for keys to an event's id.
func checkID(id string) error {
	if id == "" || len(id) > 255 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%w: the event's id is not 1 to 255 visible ASCII characters", ErrMalformed)
	}
	return nil
}
