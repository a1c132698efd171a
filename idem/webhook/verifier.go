package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Event is a delivery that its provider has signed.
type Event struct {
	// ID is the provider's name for the event, the same in every delivery of it.
	// It has 1 to 255 visible ASCII characters and is safe to log.
	ID string
	// Sent is when this delivery was signed, in whole seconds of the provider's
	// clock. Later deliveries of the same event have later ones; when the event
	// happened is in the body.
	Sent time.Time
	// Body is what was signed, byte for byte. It must not be changed.
	Body []byte
}

// Verifier tells a provider's deliveries from everybody else's. [*Stripe] and
// [*Standard] are verifiers; implementations must be safe for concurrent use.
//
// Verify looks at the headers and the body as they came, whatever the case of
// the headers' names, and returns the event, with an ID that the signature
// vouches for. It keeps and changes neither. An error matches one of this
// package's, or idem.ErrUnavailable where it can't tell at the moment; any other
// counts as ErrMalformed. Its text has nothing of secrets or body in it.
type Verifier interface {
	Verify(h http.Header, body []byte) (Event, error)
}

// Why a delivery is refused. None is the fault of the event: nothing was stored,
// and the provider will deliver it again.
var (
	// ErrNotSigned matches errors from a request without a signature. Somebody
	// else has found the URL, and nothing is to be done; or a proxy in front
	// removes the header, or the provider has not been told to sign.
	ErrNotSigned = errors.New("webhook is not signed")

	// ErrNoValidSignature matches errors from a request of which no signature is
	// good. If it comes from the provider, the secret is another endpoint's (each
	// has its own, and so do test and live mode) or was rotated, or something in
	// front changes the body. If it doesn't, the signature has done its work.
	ErrNoValidSignature = errors.New("webhook has no valid signature")

	// ErrTooOld matches errors from a delivery with a good signature that was made
	// longer ago than the tolerance: somebody sends a recorded one again, or this
	// clock is ahead. The provider's own retries are signed afresh.
	ErrTooOld = errors.New("webhook was signed too long ago")

	// ErrTooNew matches errors from a delivery with a good signature from further
	// in the future than the tolerance. Look at this machine's clock.
	ErrTooNew = errors.New("webhook was signed in the future")

	// ErrMalformed matches errors from headers or a body that aren't what the
	// scheme demands, such as two timestamps or an event without an id. Verify the
	// scheme: a provider of another one is configured, or a proxy adds headers.
	ErrMalformed = errors.New("webhook is malformed")
)

// DefaultTolerance is how far the time of a signature may be from now.
const DefaultTolerance = 5 * time.Minute

// VerifierOptions vary [NewStripe] and [NewStandard].
type VerifierOptions struct {
	// MoreSecrets are accepted as well: the next one or the last one while a
	// secret is being rotated. Providers sign with both for a day or so.
	MoreSecrets []string
	// Tolerance is how far the time of a signature may be from now, either way.
	// It bounds for how long a recorded delivery can be sent again; that is
	// answered as a duplicate anyway, for as long as the event is on record.
	// Default: DefaultTolerance.
	Tolerance time.Duration
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// verifier is what the schemes have in common.
type verifier struct {
	keys      []key
	tolerance time.Duration
	now       func() time.Time
}

// key is a secret, as the test that signatures have to pass. It is a func so
// that a verifier that is printed shows none. message is hashed once, however
// many signatures a request has.
type key struct {
	scheme string
	of     func(message []byte) (matches func(sum []byte) bool)
}

// signature is one of a request's signatures, decoded.
type signature struct {
	scheme string
	sum    []byte
}

// maxSignatures is how many signatures of known schemes a request may have.
// Rotation takes two; what somebody makes us compute must have a limit.
const maxSignatures = 16

// newVerifier reads options and secrets. Errors don't show the latter.
func newVerifier(name, secret string, parse func(string) (key, error), optFns []func(*VerifierOptions)) (verifier, error) {
	opt := VerifierOptions{Tolerance: DefaultTolerance, Now: time.Now}
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Tolerance <= 0 || opt.Now == nil {
		return verifier{}, fmt.Errorf("webhook: %s: Tolerance %v, above zero, and Now are required", name, opt.Tolerance)
	}
	v := verifier{tolerance: opt.Tolerance, now: opt.Now}
	for i, s := range append([]string{secret}, opt.MoreSecrets...) {
		k, err := parse(s)
		if err != nil {
			return verifier{}, fmt.Errorf("webhook: %s: secret %d: %w", name, i+1, err)
		}
		v.keys = append(v.keys, k)
	}
	return v, nil
}

// check judges a message and its signatures. The time comes last: a request that
// nobody has signed is no delivery, whatever time it names.
func (v *verifier) check(message []byte, signatures []signature, sent time.Time) error {
	if !v.signed(message, signatures) {
		return ErrNoValidSignature
	}
	switch age := v.now().Sub(sent); {
	case age > v.tolerance:
		return fmt.Errorf("%w: %v, tolerated are %v", ErrTooOld, age.Round(time.Second), v.tolerance)
	case age < -v.tolerance:
		return fmt.Errorf("%w: %v, tolerated are %v", ErrTooNew, -age.Round(time.Second), v.tolerance)
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

// header finds a header whatever its case: maps that were not filled through
// http.Header keep the spelling of the sender. found is false where it is not
// there or empty; two of them are malformed.
func header(h http.Header, name string) (value string, found bool, err error) {
	for n, values := range h {
		if len(n) != len(name) || !strings.EqualFold(n, name) {
			continue
		}
		for _, v := range values {
			if found {
				return "", false, fmt.Errorf("%w: more than one %s", ErrMalformed, name)
			}
			value, found = v, true
		}
	}
	return value, value != "", nil
}

// parseTime reads seconds since 1970 in their one decimal form. Others are the
// same number to some programs and another to the rest.
func parseTime(s string) (time.Time, error) {
	const digits = 12 // good for 30,000 years, and far from any overflow
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > digits || strconv.FormatUint(n, 10) != s {
		return time.Time{}, fmt.Errorf("%w: the timestamp is no decimal number of seconds", ErrMalformed)
	}
	return time.Unix(int64(n), 0), nil
}

// checkID holds an id to what keys of package idem may be.
func checkID(id string) error {
	if id == "" || len(id) > 255 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%w: the event's id is not 1 to 255 visible ASCII characters", ErrMalformed)
	}
	return nil
}
