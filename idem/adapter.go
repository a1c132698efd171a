package idem

import (
	"fmt"
	"net/http"
	"strings"
)

// What adapters and routers ask of an engine, besides Serve.

// CheckRoute returns an error for a pattern whose requests this engine would not
// protect: its method is none of [Options.Methods]. Patterns are those of [http.ServeMux]. A
// pattern without a method is fine: requests with other methods pass. An engine in
// [ModeOff] protects nothing and takes every pattern. CheckRoute is for routers, at
// cold start.
func (e *Engine) CheckRoute(pattern string) error {
	if e.core.opt.Mode == ModeOff {
		return nil
	}
	method, _ := splitPattern(pattern)
	if method != "" && !e.core.methods[method] {
		return fmt.Errorf("idem: the route %q is keyed, but the engine takes keys on %s only: add %s to Options.Methods",
			pattern, strings.Join(e.core.opt.Methods, ", "), method)
	}
	return nil
}

// Acts reports whether the engine acts on a request with this method and these
// headers. Other requests can pass without being read; [Engine.Serve] passes them,
// and marks the answers to those that carry a key.
func (e *Engine) Acts(method string, h http.Header) bool {
	return e.core.opt.Mode != ModeOff && e.core.methods[method] && (e.core.opt.hasKey(h) || e.core.opt.KeyFrom != nil || !e.core.opt.keyOptional(method))
}
