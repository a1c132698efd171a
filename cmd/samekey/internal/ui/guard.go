package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/samekey/samekey/internal/base/loopback"
)

// Under this policy, the page loads only its own scripts and styles, and calls only its own
// server. The browser refuses to turn a text into markup or a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// TokenHeader is the header with a session's token. Pages of other origins can't read the
// token, and forms and images can't send the header.
const TokenHeader = "X-Samekey-Token" //nolint:gosec // a name, no credential

// guard admits only requests from this server's own page. A request for data or a
// change needs the session's cookie and the session's token. Scripts can't read the
// cookie. Other origins can't know the token, which is in the header TokenHeader. The
// cookie alone proves nothing, because browsers send it to all ports of the host.
type guard struct {
	local  loopback.Guard
	launch string // the token in the fragment of the printed link
	cookie string
	token  string
	name   string // name of the cookie; it contains the port, so that servers on this host don't overwrite each other's cookies
}

func newGuard(addr net.Addr) *guard {
	_, port, _ := net.SplitHostPort(addr.String())
	return &guard{
		launch: rand.Text(), cookie: rand.Text(), token: rand.Text(), name: "samekey-ui-" + port,
		local: loopback.Guard{
			Refuse: func(w http.ResponseWriter, no loopback.Refusal) { refuse(w, no.Status, no.Why) },
			Page:   func(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, "/api/") },
		}.For("http://" + addr.String()),
	}
}

// guard.wrap sets the headers of every answer, and refuses requests with a foreign host
// or origin.
func (g *guard) wrap(next http.Handler) http.Handler {
	next = g.local.Wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// guard.enter starts a session, if the request has the printed link's token.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if !decode(w, r, &in) {
		return
	}
	if !same(in.Token, g.launch) {
		refuse(w, http.StatusUnauthorized, "wrong token: open the link that samekey printed")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure: the server is on this machine, without TLS
		Name: g.name, Value: g.cookie, Path: "/api/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	reply(w, map[string]string{"token": g.token})
}

// guard.members returns a handler that calls next for requests of the session, and
// refuses all other requests.
func (g *guard) members(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(g.name)
		if err != nil || !same(cookie.Value, g.cookie) || !same(r.Header.Get(TokenHeader), g.token) {
			refuse(w, http.StatusUnauthorized, "no session: open the link that samekey printed")
			return
		}
		next(w, r)
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}
