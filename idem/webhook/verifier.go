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
// neither keeps nor changes headers or body. Verify's error matches an error of this
// package, or idem.ErrUnavailable if the check is impossible at the moment. Any other error
// counts as ErrMalformed. The error's text must not contain any part of a secret or the
// body.
type Verifier interface {
	Verify(h http.Header, body []byte) (Event, error)
}

// Errors of a refused delivery. A refusal loses no event: nothing was stored, and the
// provider will deliver the event again.
var (
	// ErrNotSigned matches errors from a request without a signature. If the request comes
	// from somebody who has found the URL, no action is needed. Otherwise a proxy in front
	// removes the header, or the provider is not configured to sign.
	ErrNotSigned = errors.New("webhook is not signed")

	// ErrNoValidSignature matches errors from a request without a valid signature. If the
	// provider sent the request, there are two possible causes: your secret is old, or for
	// another endpoint or mode (test or live); or a proxy in front changes the body. If
	// somebody else sent it, the check has stopped a forgery.
	ErrNoValidSignature = errors.New("webhook has no valid signature")

	// ErrTooOld matches errors from a delivery whose valid signature is older than 5
	// minutes: a recorded delivery was sent again, or this machine's clock is ahead. A
	// provider's own retry isn't too old, since the provider signs it anew.
	ErrTooOld = errors.New("webhook was signed too long ago")

	// ErrTooNew matches errors from a delivery whose valid signature is more than 5
	// minutes in the future. Check this machine's clock.
	ErrTooNew = errors.New("webhook was signed in the future")

	// ErrMalformed matches errors from headers or a body that violate the scheme,
	// such as two timestamps or an event without an id. Check the scheme: the
	// provider may use another scheme, or a proxy may add headers.
	ErrMalformed = errors.New("webhook is malformed")
)

// VerifierOptions are options of [NewStripe] and [NewStandard].
type VerifierOptions struct {
	// MoreSecrets are accepted in addition to the first secret. During a rotation, add the
	// next or the previous secret: providers sign with both secrets for about a day.
	MoreSecrets []string
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// tolerance is the largest difference between a signature's time and now, in either
// direction. It limits how long an attacker can repeat a captured delivery. While the
// event is on record, the repeated delivery is harmless: it is answered as a duplicate.
const tolerance = 5 * time.Minute

// verifier holds the common parts of the schemes.
type verifier struct {
	keys []key
	now  func() time.Time
}

// key checks signatures with a secret. The secret is inside of a func, so that a printed
// verifier doesn't show the secret. [key.of] hashes message once for any number of
// signatures.
type key struct {
	scheme string
	of     func(message []byte) (matches func(sum []byte) bool)
}

type signature struct {
	scheme string
	sum    []byte
}

// maxSignatures is how many signatures of known schemes a request may have. A
// rotation needs two; the limit bounds the work for a forged request.
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

// check verifies the signatures first, and the time only if a signature is valid: a
// request without a valid signature isn't a delivery, whatever its time.
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

// The function header returns the value of the header called name, or "" if the header is
// missing or empty. Two headers with this name are an error. The case of names is
// ignored, since maps that were not filled through http.Header keep the sender's
// spelling.
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
	n, _ := strconv.ParseUint(s, 10, 64) // the next line finds an error too, since n then differs from s
	if len(s) > digits || strconv.FormatUint(n, 10) != s {
		return time.Time{}, fmt.Errorf("%w: the timestamp is no decimal number of seconds", ErrMalformed)
	}
	return time.Unix(int64(n), 0), nil
}

// checkID checks an id by package idem's rules for keys.
func checkID(id string) error {
	if id == "" || len(id) > 255 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%w: the event's id is not 1 to 255 visible ASCII characters", ErrMalformed)
	}
	return nil
}
