package lambda

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/recorder"
)

// WrapHandler is [Wrap] for an [http.Handler]: any router or framework can serve the events of an
// adapter for HTTP, and each keyed request is served once.
//
//	lambda.Start(lambda.WrapHandler(engine, lambda.HTTPAPI, mux))
//
// The engine sees the whole request before h reads it, and the whole answer before the
// client gets it. The request that h gets has the client's path, without a stage. For a
// keyed request, its context ends half a second before the invocation's deadline, so
// that time for the answer remains. If the engine doesn't act on a request, or only
// observes it, the context has the invocation's deadline. [EventOf] finds the event in
// the context. If [idem.Options.Resumable] is set, the handler needs a
// [HandlerOptions.Name], so that the completer can run h without the client.
//
// Answers are buffered, so h can't flush, hijack or send trailers. The engine learns of
// h's failure only from the answer's status, so h must answer with a 5xx after a failed
// phase. A panic that h doesn't recover, including http.ErrAbortHandler, has the effect
// that [Handler.Handle] and [Handler.Invoke] describe. A HEAD is answered without a
// body.
//
// WrapHandler panics in the same cases as Wrap, and for an adapter of [Direct].
func WrapHandler[Ev, Re any](e *idem.Engine, a Adapter[Ev, Re], h http.Handler, optFns ...func(*HandlerOptions)) *Handler[Ev, Re] {
	switch {
	case h == nil:
		panic("lambda: WrapHandler: handler is nil") //nolint:forbidigo // a mistake in the program
	case a.typed:
		panic("lambda: WrapHandler: the adapter has no HTTP requests") //nolint:forbidigo // a mistake in the program
	}
	var opt HandlerOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	read, route := a.Request, opt.Route
	if route == nil {
		route = patternOf(h)
	}
	if read != nil && route != nil {
		a.Request = func(ctx context.Context, ev Ev) (idem.Request, error) {
			req, err := read(ctx, ev)
			if err == nil {
				req.Route = routed(&req, route(httpRequest(ctx, &req, ev)))
			}
			return req, err
		}
	}
	return wrap(e, a, nil, func(req idem.Request, err error) func(context.Context, Ev) (Re, error) {
		return func(ctx context.Context, ev Ev) (re Re, _ error) {
			if err != nil {
				return re, err
			}
			rec := recorder.New(make(http.Header))
			h.ServeHTTP(rec, httpRequest(context.WithValue(ctx, eventKey{}, ev), &req, ev))
			var resp idem.Response
			resp.Status, resp.Header, resp.Body = rec.Answer()
			if req.Method == http.MethodHead {
				resp.Body = nil
			}
			return a.Reply(resp), nil
		}
	}, opt)
}

type eventKey struct{}

// EventOf returns the event of the request that a handler of [WrapHandler] serves. The event has
// data that an http.Request lacks, such as an authorizer's claims. The second result is false
// outside of such a handler, and if the event has another type than Ev. If a completer runs the
// handler, the event is made from the record.
func EventOf[Ev any](ctx context.Context) (Ev, bool) {
	ev, ok := ctx.Value(eventKey{}).(Ev)
	return ev, ok
}

// patternOf returns a function that finds the pattern of a request before h serves the
// request. patternOf returns nil if h can't find patterns as an http.ServeMux can.
func patternOf(h http.Handler) func(*http.Request) string {
	mux, ok := h.(interface {
		Handler(*http.Request) (http.Handler, string)
	})
	if !ok {
		return nil
	}
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
}

// routed makes the request's route from the pattern. If there is no pattern, routed returns the
// gateway's route.
func routed(req *idem.Request, pattern string) string {
	switch {
	case pattern == "":
		return req.Route
	case strings.Contains(pattern, " "):
		return pattern
	}
	return req.Method + " " + pattern
}

// httpRequest returns req as an HTTP server would pass it to a handler.
func httpRequest[Ev any](ctx context.Context, req *idem.Request, ev Ev) *http.Request {
	u := &url.URL{Path: req.Path, RawQuery: req.Query}
	if path, err := url.PathUnescape(req.Path); err == nil {
		u.Path, u.RawPath = path, req.Path
	}
	h := req.Header.Clone()
	if h == nil {
		h = make(http.Header)
	}
	h.Del("Host")
	r := &http.Request{
		Method: req.Method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Host: hostOf(req), RequestURI: u.RequestURI(),
		Body: http.NoBody, ContentLength: int64(len(req.Body)),
	}
	if len(req.Body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(req.Body))
	}
	r.RemoteAddr = remoteAddr(sourceIP(ev, h))
	return r.WithContext(ctx)
}

// hostOf returns the host to which the client sent the request.
func hostOf(req *idem.Request) string { return cmp.Or(req.Header.Get("Host"), req.Host) }

// remoteAddr returns the client's address with a port, as net/http does, or "" if client is empty.
// The port is 0, unless a load balancer has added the client's port
// (routing.http.xff_client_port.enabled).
func remoteAddr(client string) string {
	if _, err := netip.ParseAddrPort(client); err == nil || client == "" {
		return client
	}
	return net.JoinHostPort(client, "0")
}

// sourceIP returns the client's address as the gateway saw it, or "" if the event has
// no address.
func sourceIP(ev any, h http.Header) string {
	switch ev := ev.(type) {
	case events.APIGatewayV2HTTPRequest:
		return ev.RequestContext.HTTP.SourceIP
	case events.APIGatewayProxyRequest:
		return ev.RequestContext.Identity.SourceIP
	case events.LambdaFunctionURLRequest:
		return ev.RequestContext.HTTP.SourceIP
	}
	all := strings.Split(h.Get("X-Forwarded-For"), ",") // a load balancer adds the address at the end
	return strings.TrimSpace(all[len(all)-1])
}
