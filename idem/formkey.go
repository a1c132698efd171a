package idem

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/base/defaults"
)

// FormKey returns a function for [Options.KeyFrom] that finds the key in a field of an
// HTML form (urlencoded or multipart). Use FormKey for pages whose forms may be
// submitted twice, and put a fresh value into a hidden field each time the page is
// made.
//
// A browser makes a new boundary for each submission of a multipart form. A second
// submission is still the same request, since the fingerprint ignores the boundary.
//
// The returned function's error is [ErrKeyMissing] if the request has no form or the
// form lacks the field, [ErrKeyInvalid] if the field occurs more than once, and
// [ErrRequest] if the form can't be decoded.
func FormKey(field string) func(*Request) (string, error) {
	return func(r *Request) (string, error) {
		var contentType string
		if v := headerValues(r.Header, "Content-Type"); len(v) > 0 {
			contentType = v[0]
		}
		kind, params, err := mime.ParseMediaType(contentType)
		if err != nil { // a form with a malformed parameter is still a form
			kind, _, _ = strings.Cut(strings.ToLower(contentType), ";")
			kind = strings.TrimSpace(kind)
		}
		var values []string
		switch kind {
		case "application/x-www-form-urlencoded":
			form, err := url.ParseQuery(string(r.Body))
			if err != nil {
				return "", fmt.Errorf("%w: the form can't be decoded", ErrRequest) // don't wrap err, which quotes the form
			}
			values = form[field]
		case "multipart/form-data":
			if values, err = partsNamed(field, r.Body, params["boundary"]); err != nil {
				return "", err
			}
		}
		switch len(values) {
		case 0:
			return "", ErrKeyMissing
		case 1:
			return values[0], nil
		}
		return "", fmt.Errorf("%w: the form has the field %d times", ErrKeyInvalid, len(values))
	}
}

// formParts returns the content of a multipart form: the header and the body of each
// part, with their lengths. formParts leaves out the boundary, which differs in each
// submission. ok is false if the body is no multipart form.
func formParts(contentType string, body []byte) (form []byte, ok bool) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, false
	}
	form = make([]byte, 0, len(body))
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF { //nolint:errorlint // as documented
			return form, true
		}
		if err != nil {
			return nil, false
		}
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			for _, v := range part.Header[name] {
				form = appendTagged(appendTagged(form, 'n', name), 'v', v)
			}
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, false
		}
		form = appendTagged(form, 'c', string(content))
	}
}

// partsNamed returns the values of a field in a multipart body. A value that is too
// long for a key is cut to one byte more than the longest allowed key, so that the key
// is still refused.
func partsNamed(field string, body []byte, boundary string) (values []string, err error) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // as documented
			return values, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: the form can't be decoded", ErrRequest) // don't wrap err, which may quote the form
		}
		if part.FormName() != field || part.FileName() != "" {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(part, defaults.MaxKey+1))
		if err != nil {
			return nil, fmt.Errorf("%w: the form can't be decoded", ErrRequest)
		}
		values = append(values, string(b))
	}
}
