package lambda

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/samekey/samekey/idem"
)

// A snapshot ([idem.Request.Snapshot]) is the part of an event that its neutral
// request doesn't have and a handler that runs again must find: who was
// verified, by the source's own word, and what the source found out about the
// route. It is JSON in the event's own form, so to put it back is to decode it.
//
// It has no credentials: neither tokens nor API keys, access keys or
// certificates. What an authorizer has put into its context is there as it is.

// take returns the snapshot s, nil if there is nothing in it.
func take(method string, s any) ([]byte, error) {
	if method == http.MethodGet || method == http.MethodHead {
		return nil, nil // never stored, since no key acts on them
	}
	b, err := json.Marshal(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: what is verified has no JSON form: %w", idem.ErrRequest, err)
	case string(b) == "{}":
		return nil, nil
	}
	return b, nil
}

// restore puts a snapshot back into ev. Without one the event has nobody's
// identity.
func restore(snapshot []byte, ev any) error {
	if len(snapshot) == 0 {
		return nil
	}
	if err := json.Unmarshal(snapshot, ev); err != nil {
		return fmt.Errorf("lambda: %w: the stored snapshot: %w", idem.ErrCorrupt, err)
	}
	return nil
}

// certSnapshot is who a client's certificate says it is, for mutual TLS.
type certSnapshot struct {
	IssuerDN     string   `json:"issuerDN,omitempty"`
	SerialNumber string   `json:"serialNumber,omitempty"`
	SubjectDN    string   `json:"subjectDN,omitempty"`
	Validity     validity `json:"validity,omitzero"`
}

type validity struct {
	NotAfter  string `json:"notAfter,omitempty"`
	NotBefore string `json:"notBefore,omitempty"`
}

// unlike is s where it isn't what the neutral request says anyway.
func unlike(s, neutral string) string {
	if s == neutral {
		return ""
	}
	return s
}

// eventBody is the inverse of requestBody. was says that the body came in base64.
func eventBody(b []byte, was bool) (body string, isBase64 bool) {
	if !was && utf8.Valid(b) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}
