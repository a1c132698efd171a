package idem

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CORS says which pages of other origins may read the answers that the engine gives
// in place of the handler: its refusals, its 202, and its words for a handler that
// failed. A browser that isn't told so reports a lost connection, and a page that
// takes it for one sends a new key.
//
//	idem.New(store, func(o *idem.Options) {
//		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}, Credentials: true}
//	})
//
// The handler's answers, first and replayed, carry the handler's headers, and
// preflights (OPTIONS) are the handler's to answer, or the gateway's. Where something
// before the engine adds the headers to every answer, there is nothing to set: a
// middleware outside of [Engine.Middleware], or the CORS settings of an HTTP API or
// of a function URL.
//
// The zero CORS adds nothing.
type CORS struct {
	// Origins are those that may read: as a browser sends them, such as
	// "https://shop.example" or "http://localhost:3000". No patterns, but for "*" by
	// itself: all.
	Origins []string
	// Credentials lets pages read what was asked for with cookies, or with
	// HTTP authentication of the browser's. Not with the origin "*".
	Credentials bool
	// Expose are headers that pages may read besides the engine's own, for those
	// that Options.Problem adds.
	Expose []string
}

// The headers of CORS.
const (
	originHeader     = "Origin"
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	exposeHeaders    = "Access-Control-Expose-Headers"
	varyHeader       = "Vary"
	anyOrigin        = "*"
)

// exposed are the headers of the engine's own that a browser would keep from pages.
var exposed = []string{ExpiresHeader, KeyHeader, StatusHeader, ReplayedHeader, "Location", "Retry-After"}

// Allow adds to resp what lets a page read it, by the header of the request that it
// answers. It replaces what resp has of these headers, except that it adds to Vary;
// a header map that others hold is not changed. The engine does it for its own
// answers; it is for what else answers in place of a handler, such as a router.
func (c *CORS) Allow(resp *Response, request http.Header) {
	if len(c.Origins) == 0 {
		return
	}
	h := resp.Header.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	resp.Header = h
	for _, name := range []string{allowOrigin, allowCredentials, exposeHeaders} {
		delete(h, name)
	}
	origin := anyOrigin
	if c.Origins[0] != anyOrigin {
		h[varyHeader] = varies(h[varyHeader], originHeader) // also where there is none, or a cache would give that to everybody
		sent := headerValues(request, originHeader)
		if len(sent) != 1 || !slices.Contains(c.Origins, sent[0]) {
			return
		}
		origin = sent[0]
	}
	h[allowOrigin] = []string{origin}
	if c.Credentials {
		h[allowCredentials] = []string{"true"}
	}
	h[exposeHeaders] = []string{strings.Join(slices.Concat(exposed, c.Expose), ", ")}
}

// varies is the values of Vary with more of them, each name once.
func varies(values []string, more ...string) []string {
	var listed []string
	for value := range strings.SplitSeq(strings.Join(values, ","), ",") {
		listed = append(listed, strings.ToLower(strings.TrimSpace(value)))
	}
	all := slices.Clone(values)
	for _, value := range more {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(listed, strings.ToLower(name)) && !slices.Contains(listed, "*") {
				all, listed = append(all, name), append(listed, strings.ToLower(name))
			}
		}
	}
	return all
}

// validate says what of c can't work, or would open more than it says.
func (c *CORS) validate() error {
	var errs []error
	for _, origin := range c.Origins {
		switch {
		case origin == anyOrigin && len(c.Origins) > 1:
			errs = append(errs, errors.New(`CORS: the origin "*" is all of them: it stands by itself`))
		case origin == anyOrigin && c.Credentials:
			errs = append(errs, errors.New(`CORS: Credentials with the origin "*": browsers refuse it; list the origins`))
		case origin != anyOrigin && !validOrigin(origin):
			errs = append(errs, fmt.Errorf(`CORS: the origin %q: want it as browsers send it, "https://shop.example" or with a port other `+
				`than the scheme's`, origin))
		}
	}
	for _, name := range c.Expose {
		if !validName(name) || name == "*" {
			errs = append(errs, fmt.Errorf("CORS: Expose %q: not a header's name", name))
		}
	}
	if len(c.Origins) == 0 && (c.Credentials || len(c.Expose) > 0) {
		errs = append(errs, errors.New("CORS: Credentials and Expose mean nothing without Origins"))
	}
	return errors.Join(errs...)
}

// validOrigin reports whether a browser could send this very origin. "null" it does
// send, for any page in a sandbox: that is nobody's origin.
func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || origin != u.Scheme+"://"+u.Host || u.Hostname() == "" {
		return false
	}
	defaultPort := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin == strings.ToLower(origin) && !strings.ContainsAny(origin, "*, ") &&
		!strings.HasSuffix(u.Host, ":") && (u.Port() == "" || u.Port() != defaultPort)
}
