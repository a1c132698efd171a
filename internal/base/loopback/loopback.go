// Package loopback protects a server on 127.0.0.1 from requests that a browser sends
// for pages of other origins.
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

// Guard protects a server on 127.0.0.1. Programs on this machine and pages of the
// server's own origin reach the server. Requests that a browser sends for pages of
// other origins are refused. A request must keep these rules:
//
//   - The Host header must hold one of the server's loopback names. (After DNS
//     rebinding, Host holds the name of another site.)
//   - If Origin is present, it must be the server's own origin.
//   - If Sec-Fetch-Site is present, it must be "same-origin". Page makes exceptions.
//
// Browsers send Origin and Sec-Fetch-Site; programs don't.
type Guard struct {
	// Refuse writes the answer to a refused request. Required.
	Refuse func(http.ResponseWriter, Refusal)
	// Page reports whether a person may open the requested resource: by its address, or
	// by a link on a page of another origin. Such a resource must hold no data, and a
	// request for it must change nothing. If Page is nil, a person can open no resource
	// in these ways.
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
	// A browser sends the site "none" if a person typed the address, and the mode
	// "navigate" if a person followed a link.
	case g.Page != nil && g.Page(r) && (site == "none" || r.Header.Get("Sec-Fetch-Mode") == "navigate"):
		return Refusal{}
	}
	return Refusal{http.StatusForbidden, "the request comes from another site"}
}
