package lambda

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/samekey/samekey/idem"
)

// requestBody returns the bytes that the client sent.
func requestBody(body string, isBase64 bool) ([]byte, error) {
	b, err := decoded(body, isBase64)
	if err != nil {
		return nil, fmt.Errorf("%w: body is not base64: %w", idem.ErrRequest, err)
	}
	return b, nil
}

// response is a handler's answer. Without a status it is 200. A body that isn't
// the base64 it is said to be is taken as it stands: the effect has happened, so
// an error here would only make the client repeat it.
func response(status int, h http.Header, body string, isBase64 bool) (idem.Response, error) {
	b, err := decoded(body, isBase64)
	if err != nil {
		b = []byte(body)
	}
	if status == 0 {
		status = http.StatusOK
	}
	return idem.Response{Status: status, Header: h, Body: b}, nil
}

func decoded(body string, isBase64 bool) ([]byte, error) {
	switch {
	case body == "":
		return nil, nil
	case isBase64:
		return base64.StdEncoding.DecodeString(body)
	}
	return []byte(body), nil
}

// textBody returns a body as an event carries it. JSON strings hold text only:
// anything else would not come out as it went in.
func textBody(b []byte) (body string, isBase64 bool) {
	if utf8.Valid(b) && !inflates(b) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

// inflates reports whether b has so many control characters, at six bytes each
// in JSON, that base64 is shorter. It matters only for bodies that could then
// exceed what an invocation may return: 1 MB to a load balancer, 6 MB to others.
func inflates(b []byte) bool {
	const small = 128 << 10 // fits even if all of it are control characters
	if len(b) <= small {
		return false
	}
	n := 0
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			n++
		}
	}
	return n > len(b)/15 // 5·n bytes more, against a third more
}
