package idem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"

	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/base/recorder"
)

// Middleware makes the handler next safe to retry under net/http, by the same contract as
// [Engine.Serve]. If the engine doesn't act on a request, next gets the request
// unchanged. If such a request carries a key, the answer's header Idempotency-Status says
// that the key was ignored.
//
// For all other requests, the engine buffers request and answer: next reads the whole
// body from memory, and the answer is sent after it is stored. So next can't flush,
// hijack or send trailers: the methods of its http.ResponseController return
// http.ErrNotSupported. If next panics, the panic is logged, and the client gets 500, as
// after an error, or the answer that a phase has already stored. In two cases the panic
// continues instead: if its value is http.ErrAbortHandler, or if this engine doesn't
// protect the request (because of its [Mode], or because an outer wrapper protects it).
// Like an error, a panic frees the key, unless a phase or a job is committed, a call is
// in doubt, or the request is stored ([Options.Resumable]).
//
// next must not keep working after it returns, because the engine stores the answer as soon
// as next returns. So put an http.TimeoutHandler outside of Middleware, never inside.
//
// To find the caller, the engine calls [Options.Scope] with the request's context. So
// identify the caller in a middleware outside of Middleware, and put the caller into the
// context. Without Options.Scope, the caller is the verified sender that an adapter has
// put into the context ([WithSender]). Without both, a keyed request is refused
// ([ErrScope]), unless [OneScope] is set.
func (e *Engine) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case e.core.opt.Mode == ModeOff && e.core.methods[r.Method]:
			req := httpRequest(r, nil)
			e.core.tellsOff(r.Context(), &req)
			middleware{e, next}.pass(w, r)
			return
		case !e.Acts(r.Method, r.Header):
			if e.core.opt.hasKey(r.Header) {
				w.Header().Set(statusHeader, ignored)
			}
			next.ServeHTTP(w, r)
			return
		case e.core.opt.Mode == ModeObserve:
			middleware{e, next}.observe(w, r)
			return
		}
		body, err := e.core.opt.readBody(w, r)
		if err != nil {
			req := httpRequest(r, nil)
			e.core.log.WarnContext(r.Context(), "request refused", "route", req.Route, "error", err)
			write(w, e.Refuse(r.Context(), req, err))
			return
		}
		middleware{e, next}.serve(w, r, body)
	})
}

// middleware is an engine in front of a handler.
type middleware struct {
	engine *Engine
	next   http.Handler
}

// middleware.pass serves a request and makes no record. If the handler begins a phase,
// the phase is refused. The request is then refused too, unless the handler has already
// begun its answer.
func (m middleware) pass(w http.ResponseWriter, r *http.Request) {
	req := httpRequest(r, nil)
	if m.engine.core.opt.hasKey(r.Header) {
		w.Header().Set(statusHeader, ignored)
	}
	ctx, without := withoutRecord(r.Context())
	own := &phaseless{ResponseWriter: w, without: without, refuse: func() {
		write(w, contract{m.engine.core}.problem(ctx, &req, m.engine.core.phaseRefused(ctx, &req)))
	}}
	inner := r.WithContext(ctx)
	defer removeFiles(inner)
	m.next.ServeHTTP(own, inner)
	if !own.begun && without.refused.Load() {
		own.WriteHeader(http.StatusOK)
	}
}

// phaseless replaces a handler's answer if a phase of the handler was refused.
type phaseless struct {
	http.ResponseWriter

	without        *recordless
	refuse         func()
	begun, dropped bool
}

// Unwrap is for [http.ResponseController].
func (p *phaseless) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (p *phaseless) WriteHeader(status int) {
	if !p.begun && p.without.refused.Load() {
		p.begun, p.dropped = true, true
		p.refuse()
	}
	if !p.dropped {
		p.begun = p.begun || status >= http.StatusOK
		p.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (p *phaseless) Write(b []byte) (int, error) {
	if !p.begun {
		p.WriteHeader(http.StatusOK)
	}
	if p.dropped {
		return len(b), nil
	}
	return p.ResponseWriter.Write(b)
}

// middleware.observe serves a request in ModeObserve. If the request has no key or
// can't be read, the handler gets it unchanged, and no record is made.
func (m middleware) observe(w http.ResponseWriter, r *http.Request) {
	if m.engine.core.opt.KeyFrom == nil && !m.engine.core.opt.hasKey(r.Header) {
		m.engine.Observes(r.Context(), httpRequest(r, nil), &Error{Op: "key", Err: ErrKeyMissing})
		m.pass(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, min(m.engine.core.opt.mostRead(), math.MaxInt64-1)+1))
	switch {
	case err != nil:
	case int64(len(body)) > m.engine.core.opt.mostRead():
		err = ErrTooLarge
	default:
		err = readBefore(r, body)
	}
	if err != nil {
		m.engine.Observes(r.Context(), httpRequest(r, nil), err)
		whole := r.WithContext(r.Context())
		whole.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		defer removeFiles(whole)
		m.pass(w, whole)
		return
	}
	m.serve(w, r, body)
}

// middleware.serve answers a request whose body was read.
func (m middleware) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	// If an outer middleware has set a request id, the stored answer gets that id, and each
	// replay gets the id of its own request.
	id, ours := w.Header()[requestID]
	ours = ours && m.engine.core.opt.rules.stripe
	res, _ := m.engine.Serve(r.Context(), httpRequest(r, body), func(ctx context.Context) (Response, error) {
		rec := recorder.New(make(http.Header))
		if ours {
			rec.Header()[requestID] = id
		}
		inner := r.WithContext(ctx)
		inner.Body = io.NopCloser(bytes.NewReader(body))
		defer removeFiles(inner)
		m.next.ServeHTTP(rec, inner)
		var resp Response
		resp.Status, resp.Header, resp.Body = rec.Answer()
		return resp, nil
	})
	if ours && res.Replayed {
		res.Header[requestID] = id
	}
	write(w, res.Response)
}

// removeFiles removes the temporary files of a parsed form. net/http removes such files
// only for the request that it made itself, but r is a copy.
func removeFiles(r *http.Request) {
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll()
	}
}

// mostRead is the size of the largest body that Middleware reads. With Resumable,
// Middleware reads bodies over Options.MaxRequest too. Such a body can't be stored, but
// need not be stored if the request's key has a record.
func (o *Options) mostRead() int64 {
	if o.Resumable {
		return int64(max(o.MaxRequest, defaults.MaxRequest))
	}
	return int64(o.MaxRequest)
}

func (o *Options) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, o.mostRead()))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: at most %d bytes", ErrTooLarge, o.mostRead())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return body, readBefore(r, body)
}

// readBefore returns an error if some or all of the body was read before Middleware. The
// fingerprint would then lack the data that the handler finds in the parsed form.
func readBefore(r *http.Request, body []byte) error {
	parsed := r.PostForm != nil || r.MultipartForm != nil
	if int64(len(body)) < r.ContentLength || len(body) == 0 && parsed {
		return fmt.Errorf("%w: its body was read before Middleware; put Middleware outside of whatever reads it", ErrRequest)
	}
	return nil
}

// write sends r. Values of Vary from an outer middleware are kept. Idempotency-Status from
// an outer engine is removed, since the outer engine left the key to this engine.
func write(w http.ResponseWriter, r Response) {
	delete(w.Header(), statusHeader)
	outer := w.Header()[varyHeader]
	maps.Copy(w.Header(), r.Header)
	if own := r.Header[varyHeader]; len(own) > 0 {
		w.Header()[varyHeader] = varies(own, outer...)
	}
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body) // if this fails, the client is gone: its retry gets the same answer
}
