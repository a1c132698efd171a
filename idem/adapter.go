package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Adapters and routers call the methods of Engine in this file, and Engine.Serve.

// CheckRoute returns an error if pattern names a method that isn't in
// [Options.Methods], because the engine would not protect the route's requests. pattern
// has the syntax of [http.ServeMux]. CheckRoute accepts a pattern without a method, but
// the engine then protects only requests with a method in Options.Methods. In [ModeOff]
// CheckRoute accepts every pattern. Routers call CheckRoute at cold start.
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

// Acts reports whether the engine handles a request with this method and these headers.
// [Engine.Serve] passes any other request to the handler without protection, so an
// adapter needn't read that request. If a passed request has a key header, the answer
// says that the key was ignored, unless another engine inside of the handler acted on
// the request.
func (e *Engine) Acts(method string, h http.Header) bool {
	return e.core.opt.Mode != ModeOff && e.core.methods[method] && (e.core.opt.hasKey(h) || e.core.opt.KeyFrom != nil || !e.core.opt.keyOptional(method))
}

// Refuse answers a request that can't be decoded or is too large to be read. If the
// request's key has a record, the client gets the answer for [ErrIncomparable];
// otherwise, the answer for err. If the record can't be looked for, the client gets the
// answer for the reason: the key is invalid, nobody is the caller, or the store is
// unavailable. Refuse wraps err with [ErrRequest] unless err is one of this package's
// errors. Adapters call Refuse.
func (e *Engine) Refuse(ctx context.Context, r Request, err error) Response {
	if problemOf(err).Code == failed.Code {
		err = errors.Join(ErrRequest, err)
	}
	r.Unread = err
	res, _ := e.Serve(ctx, r, func(ctx context.Context) (Response, error) { // Serve calls this function only if the engine doesn't act on the request, or if ctx already belongs to the key's operation
		e.core.refuses(ctx, &r, err)
		return contract{e.core}.render(&r, problemOf(err)), nil
	})
	return res.Response
}

// OneCaller reports whether all unverified callers share one scope ([OneScope]). OneCaller
// also returns true in [ModeOff] and [ModeObserve]. An adapter calls OneCaller if clients
// choose the keys and the event names no caller. If OneCaller returns false, the adapter
// refuses such requests.
func (e *Engine) OneCaller() bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Mode == ModeObserve || e.core.opt.oneScope
}

// Keeps reports whether the engine would store an empty answer with this status
// ([Options.Stored]). In [ModeOff] Keeps returns true. An adapter whose answers have no
// status calls Keeps with 200, because Options.Stored gets these answers with the
// status 200.
func (e *Engine) Keeps(status int) bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Stored(Response{Status: status})
}

// StoresRequests returns [Options.Resumable]. If false, adapters needn't set
// [Request.Snapshot].
func (e *Engine) StoresRequests() bool { return e.core.opt.Resumable }

// Observes reports whether the engine only observes ([ModeObserve]). In that mode Observes
// also reports the request r to [Hooks].Observed, with err, the reason why the adapter
// can't read r. If Observes returns true, the adapter still runs the handler.
func (e *Engine) Observes(ctx context.Context, r Request, err error) bool {
	if e.core.opt.Mode != ModeObserve {
		return false
	}
	e.core.observed(ctx, &r, err)
	return true
}
