package check

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Template is the request that an examination sends again and again. URL is required.
// Body is required unless NoBody is set. The other fields are optional. A check that
// needs a field is left out if the field is empty.
type Template struct {
	URL    string      // an http or https URL without a user name
	Method string      // "" is POST
	Header http.Header // sent with every request except the CORS preflight; its values are never shown
	Body   []byte      // the body of a request that succeeds; empty only with NoBody
	NoBody bool        // the request has no body

	OtherBody   []byte      // the body of another request that succeeds
	RefusedBody []byte      // a body that the API refuses with a 4xx
	OtherPath   string      // the path of another route that accepts keys and Body
	OtherMethod string      // another method of the same path
	OtherCaller http.Header // another caller's credentials; they replace those in Header
	Origin      string      // the origin of a page that may call the API
	KeyOptional bool        // the API's documentation allows requests without a key
	Checkout    Checkout    // only for an examination by a commerce contract
}

// Template.prepared validates t, and returns t with defaults for empty fields.
func (t Template) prepared(contract string) (Template, *url.URL, error) {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return t, nil, errors.New("invalid URL") // url.Parse's error contains the URL, so it is not shown
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return t, nil, errors.New("the URL must begin with http:// or https:// and have a host")
	case u.User != nil:
		return t, nil, errors.New("the URL contains credentials: send them with --header-env")
	case len(t.Body) == 0 && !t.NoBody:
		return t, nil, errors.New("no body: give --body, --body-file or --no-body")
	case len(t.OtherBody) > 0 && bytes.Equal(t.OtherBody, t.Body):
		return t, nil, errors.New("--other-body is the same as --body")
	case t.OtherPath != "" && !strings.HasPrefix(t.OtherPath, "/"):
		return t, nil, errors.New("--other-path must begin with /")
	}
	u.Fragment = ""
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	t.Method, t.OtherMethod = strings.ToUpper(t.Method), strings.ToUpper(t.OtherMethod)
	for _, m := range []string{t.Method, t.OtherMethod} {
		if _, err := http.NewRequest(m, "http://host", http.NoBody); err != nil { //nolint:noctx // never sent
			return t, nil, fmt.Errorf("%q is not a method", m)
		}
	}
	if t.OtherMethod == t.Method {
		return t, nil, errors.New("--other-method is the same as --method")
	}
	t.Header = t.Header.Clone()
	if t.Header == nil {
		t.Header = make(http.Header)
	}
	if _, has := t.Header[keyHeader]; has {
		return t, nil, errors.New("don't give the header Idempotency-Key: samekey check sends its own keys")
	}
	if !t.NoBody && t.Header.Get("Content-Type") == "" {
		t.Header.Set("Content-Type", "application/json")
	}
	if isCommerce(contract) {
		if err := t.commerce(contract); err != nil {
			return t, nil, err
		}
	}
	return t, u, nil
}

// place returns a URL without the query, which may be secret.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Template.secrets returns the values that must not be shown, even if the API repeats
// them.
func (t *Template) secrets(u *url.URL) (all []string) {
	for _, h := range []http.Header{t.Header, t.OtherCaller} {
		for name, values := range h {
			if name == "Content-Type" || name == "Accept" {
				continue
			}
			for _, v := range values {
				all = append(all, v)
				if _, credentials, ok := strings.Cut(v, " "); ok { // Bearer …
					all = append(all, credentials)
				}
			}
		}
	}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	return all
}
