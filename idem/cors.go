package idem

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CORS lists the origins, besides the API's, whose pages may read the engine's own
// answers: refusals, the 202 for an operation in flight, and the answer for a failed
// handler. The engine adds CORS headers to these answers. Without the headers, the page
// sees a lost connection, and may then repeat the request with a new key.
//
//	idem.New(store, func(o *idem.Options) {
//		o.CORS = idem.CORS{Origins: []string{"https://shop.example"}, Credentials: true}
//	})
//
// The handler sets the CORS headers of its own answers; the engine adds none, even to a
// replay. The handler or the gateway answers preflights (OPTIONS). Leave CORS empty if
// every answer gets the headers elsewhere: in a middleware outside of
// [Engine.Middleware], or by the CORS settings of an HTTP API or a function URL.
//
// The zero CORS adds nothing.
type CORS struct {
	// Origins are the origins whose pages may read the answers. Write an origin as browsers
	// send it, such as "https://shop.example" or "http://localhost:3000". A list with "*"
	// as its only element means all origins; there are no other patterns.
	Origins []string
	// Credentials lets pages read answers to requests with cookies or with the browser's
	// HTTP authentication. New refuses Credentials with the origin "*".
	Credentials bool
	// Expose is a list of more response headers that pages may read, such as headers that
	// Options.Problem adds. Pages can read the engine's own headers without Expose.
	Expose []string
}

// Headers of CORS.
const (
	originHeader     = "Origin"
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	exposeHeaders    = "Access-Control-Expose-Headers"
	varyHeader       = "Vary"
	anyOrigin        = "*"
)

// exposed lists the engine's headers that a browser hides from pages, unless the
// answer's CORS headers list them.
var exposed = []string{expiresHeader, KeyHeader, statusHeader, ReplayedHeader, "Location", "Retry-After"}

// Allow adds CORS headers to resp, so that pages of the listed origins can read resp.
// The parameter request contains the headers of the request that resp answers. Allow
// copies resp's header map, and removes or replaces the CORS headers that resp already
// has. Allow extends Vary, unless all origins are listed ("*"). If c lists no origins,
// Allow changes nothing. The engine calls Allow for its own answers. Call Allow for
// answers that neither the engine nor a handler makes, such as a router's.
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
		h[varyHeader] = varies(h[varyHeader], originHeader) // even if the request has no origin: without Vary, a cache could give this answer to requests from any origin
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

// varies returns the list values of the header Vary, with each missing name of the list
// more added.
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

// CORS.validate returns an error for settings that can't work or would allow too much.
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

// validOrigin reports whether a browser could send exactly this origin. "null" is not
// valid: browsers send "null" for any sandboxed page, so it identifies no origin.
func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || origin != u.Scheme+"://"+u.Host || u.Hostname() == "" {
		return false
	}
	defaultPort := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin == strings.ToLower(origin) && !strings.ContainsAny(origin, "*, ") &&
		!strings.HasSuffix(u.Host, ":") && (u.Port() == "" || u.Port() != defaultPort)
}
