package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// cookieCredential is the prefix of a cookie in [Options.Credentials].
const cookieCredential = "Cookie:"

// presented are the headers that distinguish unverified callers.
// Options.Credentials adds to them.
var presented = []string{"Authorization", "X-Api-Key"}

// credentials returns a hash of r's credentials, to compare unverified callers. A
// missing header differs from an empty header.
//
// The hash is keyed with the client's key, which every host sees and no record
// contains: a reader of the table has to guess a random key before testing a
// credential. If the key is easy to guess, protection rests on the strength of
// the credential and on Fingerprint.Secrets, which key this hash like the
// fingerprint.
func (e *Engine) credentials(r *Request) (sum [sha256.Size]byte) {
	b := make([]byte, 0, 256)
	for _, name := range e.presented {
		var values []string
		if cookie, ok := strings.CutPrefix(name, cookieCredential); ok {
			for _, c := range (&http.Request{Header: r.Header}).CookiesNamed(cookie) {
				values = append(values, c.Value)
			}
		} else {
			values = headerValues(r.Header, name)
		}
		if len(values) > 0 { // missing values add nothing, so names may be added to the option
			// HTTP APIs join the values of one header; others keep them apart.
			b = appendTagged(appendTagged(b, 'n', strings.ToLower(name)), 'v', strings.Join(values, ","))
		}
	}
	host := r.Host
	if host == "" {
		host = strings.Join(headerValues(r.Header, "Host"), ",")
	}
	// A program may use either host header. Neither is a secret: a sender must also
	// present the credentials.
	b = appendTagged(b, 'o', strings.ToLower(host))
	b = appendTagged(b, 'f', strings.ToLower(strings.Join(headerValues(r.Header, "X-Forwarded-Host"), ",")))
	mac := hmac.New(sha256.New, []byte(r.Key))
	mac.Write(b)
	mac.Sum(sum[:0])
	return sum
}

// compare compares the request with the request that claimed held. A record
// without credentials is open to any caller who knows the key and the request. An
// attempt without a request of its own may continue with any request.
func (a *attempt) compare(held *store.Record) (same state.Same, err error) {
	same.Caller, same.Request = true, true
	if a.anonymous && held.Cred != "" {
		if same.Caller, err = a.opt.Fingerprint.matches(held.Cred, held.Secret, a.cred); err != nil {
			return same, err
		}
	}
	switch {
	case a.resumed:
	case held.Secret == a.secret:
		same.Request = hmac.Equal([]byte(held.Fingerprint), []byte(a.print))
	default:
		same.Request, err = a.opt.Fingerprint.matches(held.Fingerprint, held.Secret, a.digest)
	}
	return same, err
}

func validCredential(name string) error {
	cookie, isCookie := strings.CutPrefix(name, cookieCredential)
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case isCookie && validName(cookie) || !isCookie && validName(name) && canonical != "Cookie" && canonical != KeyHeader:
		return nil
	case canonical == "Cookie":
		return fmt.Errorf("%q: name the cookie, as \"Cookie:NAME\": others change between honest retries", name)
	}
	return fmt.Errorf("%q is neither a header nor \"Cookie:NAME\"", name)
}
