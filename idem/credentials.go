package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// cookieCredential begins the name of a cookie in [Options.Credentials].
const cookieCredential = "Cookie:"

// presented are the headers by which callers are told apart whom nobody has
// verified. Options.Credentials adds to them.
var presented = []string{"Authorization", "X-Api-Key"}

// credentials is a hash of what r presents, to be compared where nobody has
// verified who is calling. A missing header is not an empty one.
//
// It is keyed by the client's key, which every host sees and no record holds: who
// reads the table has to guess a random key before he can try a credential. A
// key that can be guessed leaves that to the strength of the credential, and to
// Fingerprint.Secrets, which key this hash as they do the fingerprint.
func (e *Engine) credentials(r *Request) (sum [sha256.Size]byte) {
	b := make([]byte, 0, 256)
	for _, name := range slices.Concat(presented, e.opt.Credentials) {
		var values []string
		if cookie, ok := strings.CutPrefix(name, cookieCredential); ok {
			for _, c := range (&http.Request{Header: r.Header}).CookiesNamed(cookie) {
				values = append(values, c.Value)
			}
		} else {
			values = headerValues(r.Header, name)
		}
		if len(values) > 0 { // what isn't presented adds nothing, so the option may grow
			// HTTP APIs join the values of one header; others keep them apart.
			b = appendTagged(appendTagged(b, 'n', strings.ToLower(name)), 'v', strings.Join(values, ","))
		}
	}
	host := r.Host
	if host == "" {
		host = strings.Join(headerValues(r.Header, "Host"), ",")
	}
	// A program may go by either. Neither is a secret: who sends them must also
	// present the credentials.
	b = appendTagged(b, 'o', strings.ToLower(host))
	b = appendTagged(b, 'f', strings.ToLower(strings.Join(headerValues(r.Header, "X-Forwarded-Host"), ",")))
	mac := hmac.New(sha256.New, []byte(r.Key))
	mac.Write(b)
	mac.Sum(sum[:0])
	return sum
}

// compare finds out what of the request is as it was when held was claimed. A
// record without credentials is anybody's who knows the key and the request; an
// attempt without a request of its own may go on with any.
func (a *attempt) compare(held *store.Record) (same state.Same, err error) {
	same.Caller, same.Request = true, true
	if a.anonymous && held.Cred != "" {
		if same.Caller, err = a.opt.Fingerprint.matches(held.Cred, held.Secret, a.cred); err != nil {
			return same, err
		}
	}
	if !a.resumed {
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
