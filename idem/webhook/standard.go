package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Headers of the Standard Webhooks specification.
const (
	standardID        = "Webhook-Id"
	standardTimestamp = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"
)

type standard struct{ verifier }

var _ Verifier = (*standard)(nil)

// NewStandard returns a verifier for the Standard Webhooks specification 1.0:
//
//	webhook-id: msg_2KWPBgLlAfxdpx2AI54pPJ85f4W
//	webhook-timestamp: 1674087231
//	webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4= v1a,…
//
// A signature after "v1," is made with HMAC-SHA256, and a signature after "v1a," with
// Ed25519. Each signature signs "id.timestamp.body", and is in base64. The event's ID
// is the webhook-id. The verifier refuses an id that contains a full stop, because the
// signed text doesn't show where such an id ends: an attacker could send a recorded
// delivery again with another id.
//
// The parameter secret is an endpoint's secret or a provider's public key. An
// endpoint's secret is the base64 of at least 24 bytes, with or without the prefix
// whsec_. A provider's public key is whpk_, followed by base64. NewStandard returns an
// error for any other secret. VerifierOptions.MoreSecrets may contain secrets and
// public keys.
func NewStandard(secret string, optFns ...func(*VerifierOptions)) (Verifier, error) {
	v, err := newVerifier("NewStandard", secret, standardKey, optFns)
	if err != nil {
		return nil, err
	}
	return &standard{v}, nil
}

// v1a is the name of Ed25519 in a Webhook-Signature.
const v1a = "v1a"

// minSecret is the least length of a secret, in bytes: a shorter secret was cut off or
// can be guessed.
const minSecret = 24

func standardKey(s string) (key, error) {
	kind, rest, prefixed := strings.Cut(s, "_")
	if !prefixed {
		kind, rest = "whsec", s
	}
	if kind != "whsec" && kind != "whpk" {
		return key{}, errors.New("its prefix is neither whsec_ nor whpk_")
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
	switch public := kind == "whpk"; {
	case err != nil:
		return key{}, errors.New("it is not base64 after the prefix")
	case public && len(b) != ed25519.PublicKeySize:
		return key{}, fmt.Errorf("a public key has %d bytes, this has %d", ed25519.PublicKeySize, len(b))
	case public:
		return key{scheme: v1a, of: func(message []byte) func([]byte) bool {
			return func(sum []byte) bool { return ed25519.Verify(b, message, sum) }
		}}, nil
	case len(b) < minSecret:
		return key{}, fmt.Errorf("a secret has at least %d bytes, this has %d", minSecret, len(b))
	}
	return hmacKey(b), nil
}

// Verify implements [Verifier]. One valid signature is enough; signatures of
// unknown schemes are ignored.
func (s *standard) Verify(h http.Header, body []byte) (Event, error) {
	value, err := header(h, standardSignature)
	switch {
	case err != nil:
		return Event{}, err
	case value == "":
		return Event{}, fmt.Errorf("%w: no %s", ErrNotSigned, standardSignature)
	}
	id, err := header(h, standardID)
	if err != nil {
		return Event{}, err
	}
	if err = checkID(id); err == nil && strings.Contains(id, ".") {
		err = fmt.Errorf("%w: %s has a full stop in it", ErrMalformed, standardID)
	}
	if err != nil {
		return Event{}, err
	}
	t, err := header(h, standardTimestamp)
	if err != nil {
		return Event{}, err
	}
	sent, err := parseTime(t)
	if err != nil {
		return Event{}, err
	}
	signatures, err := parseStandard(value)
	if err != nil {
		return Event{}, err
	}
	if err := s.check(slices.Concat([]byte(id+"."+t+"."), body), signatures, sent); err != nil {
		return Event{}, err
	}
	return Event{ID: id, Sent: sent, Body: body}, nil
}

// parseStandard splits the value of a Webhook-Signature. It skips signatures that are
// not base64, because they can't be valid.
func parseStandard(value string) (signatures []signature, err error) {
	for part := range strings.FieldsSeq(value) {
		scheme, val, _ := strings.Cut(part, ",")
		if scheme != v1 && scheme != v1a {
			continue
		}
		if len(signatures) == maxSignatures {
			return nil, fmt.Errorf("%w: more than %d signatures", ErrMalformed, maxSignatures)
		}
		if sum, err := base64.StdEncoding.DecodeString(val); err == nil {
			signatures = append(signatures, signature{scheme, sum})
		}
	}
	return signatures, nil
}
