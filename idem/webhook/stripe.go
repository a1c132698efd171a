package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// StripeHeader is the header that carries Stripe's signatures.
const StripeHeader = "Stripe-Signature"

type stripe struct{ verifier }

var _ Verifier = (*stripe)(nil)

// NewStripe returns a verifier for Stripe, and for other providers whose signatures
// have this form:
//
//	Stripe-Signature: t=1492774577,v1=5257a869e7ec…,v1=…,v0=…
//
// Each v1 is the HMAC-SHA256 of "t.body", in hex. The event's ID is the value of "id"
// in the body.
//
// The parameter secret is an endpoint's signing secret, including the prefix whsec_.
// NewStripe returns an error if a secret is empty, has fewer than 8 characters, or has
// white space, such as the line break at the end of a file.
func NewStripe(secret string, optFns ...func(*VerifierOptions)) (Verifier, error) {
	v, err := newVerifier("NewStripe", secret, func(s string) (key, error) {
		switch {
		case s == "":
			return key{}, errors.New("it is empty")
		case len(s) < 8:
			return key{}, errors.New("it is too short: it was cut off, and can be guessed")
		case strings.ContainsAny(s, " \t\r\n"):
			return key{}, errors.New("it has white space in it")
		}
		return hmacKey([]byte(s)), nil
	}, optFns)
	if err != nil {
		return nil, err
	}
	return &stripe{v}, nil
}

// v1 is the name of HMAC-SHA256 in Stripe's signatures and in those of Standard Webhooks.
const v1 = "v1"

func hmacKey(secret []byte) key {
	return key{scheme: v1, of: func(message []byte) func([]byte) bool {
		mac := hmac.New(sha256.New, secret)
		mac.Write(message)
		want := mac.Sum(nil)
		return func(sum []byte) bool { return hmac.Equal(want, sum) }
	}}
}

// Verify implements [Verifier]. One valid signature is enough; signatures of
// schemes other than v1 are ignored.
func (s *stripe) Verify(h http.Header, body []byte) (Event, error) {
	value, err := header(h, StripeHeader)
	switch {
	case err != nil:
		return Event{}, err
	case value == "":
		return Event{}, fmt.Errorf("%w: no %s", ErrNotSigned, StripeHeader)
	}
	t, signatures, err := parseStripe(value)
	if err != nil {
		return Event{}, err
	}
	sent, err := parseTime(t)
	if err != nil {
		return Event{}, err
	}
	if err := s.check(slices.Concat([]byte(t+"."), body), signatures, sent); err != nil {
		return Event{}, err
	}
	id, err := stripeID(body)
	if err != nil {
		return Event{}, err
	}
	return Event{ID: id, Sent: sent, Body: body}, nil
}

// parseStripe splits the value of a Stripe-Signature. It skips signatures that are no
// SHA-256 in hex, because they can't be valid.
func parseStripe(value string) (t string, signatures []signature, err error) {
	for part := range strings.SplitSeq(value, ",") {
		name, val, ok := strings.Cut(part, "=")
		switch {
		case !ok, (name == "t" || name == v1) && strings.Contains(val, "="): // a time or a signature in hex has no "="
			return "", nil, fmt.Errorf("%w: a part of %s is no pair", ErrMalformed, StripeHeader)
		case name == "t" && t != "":
			return "", nil, fmt.Errorf("%w: %s has two timestamps", ErrMalformed, StripeHeader)
		case name == "t":
			if t = val; t == "" {
				return "", nil, fmt.Errorf("%w: %s has an empty timestamp", ErrMalformed, StripeHeader)
			}
		case name == v1 && len(signatures) == maxSignatures:
			return "", nil, fmt.Errorf("%w: more than %d signatures", ErrMalformed, maxSignatures)
		case name == v1:
			if sum, err := hex.DecodeString(val); err == nil && len(sum) == sha256.Size {
				signatures = append(signatures, signature{v1, sum})
			}
		}
	}
	if t == "" {
		return "", nil, fmt.Errorf("%w: %s has no timestamp", ErrMalformed, StripeHeader)
	}
	return t, signatures, nil
}

// stripeID returns the id of a verified event. It decodes the body into a map, because
// encoding/json would ignore the case of member names for a struct.
func stripeID(body []byte) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return "", fmt.Errorf("%w: the body is no JSON object", ErrMalformed) // err is left out: it would quote the body
	}
	var id string
	if err := json.Unmarshal(members["id"], &id); err != nil {
		return "", fmt.Errorf("%w: the body's id is no string", ErrMalformed)
	}
	return id, checkID(id)
}
