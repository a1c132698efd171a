package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// What adapters and routers ask of an engine, besides Serve.

// CheckRoute returns an error for a pattern ([http.ServeMux]) with a method that isn't in
// [Options.Methods]: this engine would not protect such requests. A pattern without a
// method is fine: requests with other methods pass. An engine in [ModeOff] protects nothing
// and takes every pattern. CheckRoute is for routers, at cold start.
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

// Refuse answers a request that could not be decoded or is too large to be read. If the
// request's key is known, Refuse answers with [ErrIncomparable], otherwise with err. Refuse
// wraps err with [ErrRequest] unless err is one of this package's errors. Refuse is for
// adapters.
func (e *Engine) Refuse(ctx context.Context, r Request, err error) Response {
	if problemOf(err).Code == failed.Code {
		err = errors.Join(ErrRequest, err)
	}
	r.Unread = err
	res, _ := e.Serve(ctx, r, func(ctx context.Context) (Response, error) { // the engine doesn't act, or it has the key already
		e.core.refuses(ctx, &r, err)
		return contract{e.core}.answers(&r, problemOf(err)), nil
	})
	return res.Response
}

// OneCaller reports whether all unverified callers are one caller ([OneScope]), or the
// engine takes no part in requests. OneCaller is for adapters whose clients choose keys.
func (e *Engine) OneCaller() bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Mode == ModeObserve || e.core.opt.oneScope
}

// Keeps reports whether an empty answer with this status is stored ([Options.Stored]).
// Keeps is for adapters whose answers have no status of their own.
func (e *Engine) Keeps(status int) bool {
	return e.core.opt.Mode == ModeOff || e.core.opt.Stored(Response{Status: status})
}

// StoresRequests returns [Options.Resumable]. StoresRequests is for adapters: an engine
// that stores no requests needs no [Request.Snapshot].
func (e *Engine) StoresRequests() bool { return e.core.opt.Resumable }

// Observes reports whether the engine only observes ([ModeObserve]). If so, Observes passes
// r and err, the reason why r can't be read, to the hook; the caller still runs the
// handler. Observes is for adapters.
func (e *Engine) Observes(ctx context.Context, r Request, err error) bool {
	if e.core.opt.Mode != ModeObserve {
		return false
	}
	e.core.observed(ctx, &r, err)
	return true
}
