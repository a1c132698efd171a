package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
)

// policy lets the page load its own scripts and styles, call its own server, and
// nothing else. No text can become markup or a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// TokenHeader has the second half of a session: a page of another origin can't read
// it, and a form or an image can't send it.
const TokenHeader = "X-Samekey-Token" //nolint:gosec // a name, no credential

// guard admits requests of this server's own page only.
//
//   - The Host header names this server by its loopback name: a name that was bound anew
//     to 127.0.0.1 (DNS rebinding) does not.
//   - Origin and Sec-Fetch-Site, where a browser sends them, name the same origin.
//   - Data and changes need the session: a cookie, which scripts can't read, and a token
//     in a header, which other origins can't know. Cookies are shared by all ports of a
//     host, so the cookie alone is nothing.
type guard struct {
	hosts  []string // with the port
	launch string   // in the fragment of the link that is printed
	cookie string
	token  string
	name   string // of the cookie: other servers on this host have other ports
}

func newGuard(port string) *guard {
	g := &guard{launch: rand.Text(), cookie: rand.Text(), token: rand.Text(), name: "samekey-ui-" + port}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		g.hosts = append(g.hosts, net.JoinHostPort(host, port))
	}
	return g
}

// wrap sets the headers of every answer, and refuses foreign hosts and origins.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
			refuse(w, http.StatusMisdirectedRequest, "this server has another name")
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
			refuse(w, http.StatusForbidden, "the request comes from another origin")
			return
		}
		// A link that somebody follows or types comes as a navigation of no site, or of
		// another one: it gets the empty page, and no data.
		site := r.Header.Get("Sec-Fetch-Site")
		if site != "" && site != "same-origin" && (site != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate" || strings.HasPrefix(r.URL.Path, "/api/")) {
			refuse(w, http.StatusForbidden, "the request comes from another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// enter starts a session for the token of the printed link.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Token string `json:"token"`
	}
	if !decode(w, r, &in) {
		return
	}
	if !same(in.Token, g.launch) {
		refuse(w, http.StatusUnauthorized, "this is not the token of the link that samekey printed")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure: the server is on this machine, without TLS
		Name: g.name, Value: g.cookie, Path: "/api/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	reply(w, map[string]string{"token": g.token})
}

// members refuses requests without the session.
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
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}
