// Package loopback distinguishes requests of this machine's programs from requests
// that a browser sends for a page of another origin.
package loopback

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Refusal is the reason to refuse a request, and the answer's status. The zero value is no refusal.
type Refusal struct {
	Status int
	Why    string
}

// Guard protects a server on 127.0.0.1. Programs on this machine and pages of the server's own
// origin reach the server; requests that a browser sends for pages of other origins are refused. A
// request must keep these rules:
//
//   - The Host header must hold a loopback name of the server. After DNS rebinding, Host holds
//     the name of another site.
//   - If Origin and Sec-Fetch-Site are present, they must name the server's own origin. Browsers
//     send these headers, programs don't.
type Guard struct {
	// Refuse writes the answer to a refused request. Required.
	Refuse func(http.ResponseWriter, Refusal)
	// Page reports whether other origins may link to the requested resource. If so, the resource
	// must hold no data, and a request for it must change nothing. Without Page, other origins
	// may link to nothing.
	Page func(*http.Request) bool

	hosts []string // with the port
}

// For returns a copy of g that guards the server with the URL base, such as http://127.0.0.1:3000.
func (g Guard) For(base string) Guard {
	if u, err := url.Parse(base); err == nil && u.Port() != "" {
		for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
			g.hosts = append(g.hosts, net.JoinHostPort(host, u.Port()))
		}
	}
	return g // if g has no hosts, it refuses all requests
}

// Wrap returns a handler that refuses what g refuses, and passes all other requests to next.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if no := g.check(r); no.Status != 0 {
			g.Refuse(w, no)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g Guard) check(r *http.Request) Refusal {
	site := r.Header.Get("Sec-Fetch-Site")
	switch origins := r.Header.Values("Origin"); {
	case !slices.Contains(g.hosts, strings.ToLower(r.Host)):
		return Refusal{http.StatusMisdirectedRequest, "this server has another name"}
	case len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+r.Host:
		return Refusal{http.StatusForbidden, "the request comes from another origin"}
	case site == "" || site == "same-origin":
		return Refusal{}
	// a browser sends the site "none" for an address that a person typed, and the mode "navigate" for a link that a person followed
	case g.Page != nil && g.Page(r) && (site == "none" || r.Header.Get("Sec-Fetch-Mode") == "navigate"):
		return Refusal{}
	}
	return Refusal{http.StatusForbidden, "the request comes from another site"}
}
