package apigateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// restTimeout is AWS's default for how long a REST API waits for a function.
const restTimeout = 29 * time.Second

// RESTRoute is the target of a route of [RESTAPI].
type RESTRoute struct {
	// Function serves the requests. Required.
	Function lambdarun.Invoker
	// Authorizer decides on each request; nil lets every request through.
	Authorizer *RESTAuthorizer
	// Timeout, if positive, replaces [RESTAPIOptions.IntegrationTimeout] for this
	// route.
	Timeout time.Duration
}

// RESTAPIOptions are the options of [RESTAPI].
type RESTAPIOptions struct {
	// AccountID and APIID are passed to the function. Defaults "123456789012" and
	// "local".
	AccountID, APIID string
	// DomainName is passed to the function. Default: the request's Host without the
	// port.
	DomainName string
	// Stage is passed to the function. The paths that clients request don't start with
	// the stage. Default "Prod".
	Stage string
	// StageVariables are passed to the function. Default none.
	StageVariables map[string]string
	// BinaryMediaTypes are the media types of bodies that are not text, such as
	// "image/png", "image/*" or "*/*". Default none: every body is text.
	BinaryMediaTypes []string
	// IntegrationTimeout is how long to wait for the function. The function continues after the
	// timeout. Default 29 s.
	IntegrationTimeout time.Duration
	// Logger gets the reason if the authorizer refuses a request, the invocation fails or
	// the response is malformed. Default: discard.
	Logger *slog.Logger
}

// RESTAPI returns a handler that behaves as an API Gateway REST API with Lambda proxy
// integrations (payload format 1.0). The keys of the map routes are route keys, such as
// "POST /rides" or "ANY /{proxy+}". RESTAPI panics if a route or the timeout is not valid.
//
// Header names in events have Go's canonical case. If the server was passed to
// [KeepHeaderCase], they have the client's case.
//
// A request body is in base64 if its Content-Type matches one of BinaryMediaTypes.
// RESTAPI decodes a response body in base64 only if the first media type of the
// request's Accept header matches one of BinaryMediaTypes. Other clients get the
// base64.
//
// API Gateway's own answers are JSON:
//   - 403 if no route matches,
//   - 401, 403 and 500 if the authorizer refuses or fails,
//   - 413 for a body over 10 MB or an event over Lambda's limit,
//   - 500 if the function is throttled,
//   - 502 if the function fails or its response is malformed,
//   - 504 if the integration timeout passes.
//
// If the client disconnects, the function continues.
func RESTAPI(routes map[string]RESTRoute, optFns ...func(*RESTAPIOptions)) http.Handler {
	opts := RESTAPIOptions{
		AccountID: ids.AccountID, APIID: "local", Stage: "Prod",
		IntegrationTimeout: restTimeout,
		Logger:             slog.New(slog.DiscardHandler),
	}
	for _, fn := range optFns {
		fn(&opts)
	}
	if opts.IntegrationTimeout <= 0 {
		panic("apigateway: RESTAPI: the integration timeout is not positive") //nolint:forbidigo // a mistake in the program
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	for key, route := range routes {
		if route.Function == nil {
			panic("apigateway: RESTAPI: nil Invoker for " + key) //nolint:forbidigo // a mistake in the program
		}
	}
	table, err := newRouteTable(slices.Sorted(maps.Keys(routes)))
	if err == nil && table.fallback {
		err = errors.New("a REST API has no $default route")
	}
	if err != nil {
		panic("apigateway: RESTAPI: " + err.Error()) //nolint:forbidigo // a mistake in the program
	}
	return &restAPI{
		routes: routes, opts: opts, table: table,
		now: time.Now, newID: ids.UUID, newExtendedID: ids.Gateway, newTraceID: ids.Trace,
	}
}

type restAPI struct {
	routes map[string]RESTRoute
	opts   RESTAPIOptions
	table  routeTable

	// Replaced in tests.
	now           func() time.Time
	newID         func() string
	newExtendedID func() string
	newTraceID    func() string
}

func (a *restAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID, extendedID := a.newID(), a.newExtendedID()
	w.Header()["x-amzn-RequestId"] = []string{requestID}
	w.Header()["x-amz-apigw-id"] = []string{extendedID}
	log := a.opts.Logger.With("request_id", requestID, "method", r.Method, "path", r.URL.Path)

	key, params, ok := a.table.findSegments(r.Method, pathSegments(r.URL.EscapedPath()))
	if !ok {
		writeREST(w, http.StatusForbidden, "MissingAuthenticationTokenException", `{"message":"Missing Authentication Token"}`)
		return
	}
	route := a.routes[key]
	event := a.event(r, key, params, requestID, extendedID)
	if route.Authorizer != nil {
		identity, err := route.Authorizer.authorize(r, &a.opts, event)
		if err != nil {
			log.InfoContext(r.Context(), "refused by the authorizer", "error", err)
			writeRESTRefusal(w, err)
			return
		}
		event.RequestContext.Authorizer = identity
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			writeREST(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", `{"message":"Request Too Long"}`)
		} else {
			writeREST(w, http.StatusBadRequest, "BadRequestException", `{"message":"Bad Request"}`)
		}
		return
	}
	event.setBody(body, a.isBinary(r.Header.Get("Content-Type")))
	payload, err := json.Marshal(event)
	if err != nil { // can't happen: event consists of strings, numbers and maps of strings
		log.ErrorContext(r.Context(), "event is not JSON", "error", err)
		writeIntegrationError(w, http.StatusInternalServerError)
		return
	}

	// If ctx ends, Invoke returns and the function continues.
	ctx, cancel := context.WithTimeout(r.Context(), orElse(route.Timeout, a.opts.IntegrationTimeout))
	defer cancel()
	result, err := route.Function.Invoke(ctx, payload)
	if err != nil {
		a.writeInvokeError(ctx, w, r, log, err)
		return
	}
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	resp, err := parseRESTResponse(result, a.isBinary(accept))
	if err != nil {
		log.ErrorContext(ctx, "malformed response", "error", err)
		writeIntegrationError(w, http.StatusBadGateway)
		return
	}
	resp.header["X-Amzn-Trace-Id"] = []string{event.Headers["X-Amzn-Trace-Id"]}
	resp.write(w)
}

func (a *restAPI) writeInvokeError(ctx context.Context, w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	switch {
	case r.Context().Err() != nil:
		log.InfoContext(ctx, "client went away")
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded):
		log.WarnContext(ctx, "integration timeout")
		writeREST(w, http.StatusGatewayTimeout, "InternalServerErrorException", `{"message": "Endpoint request timed out"}`)
	case errors.Is(err, lambdarun.ErrThrottled):
		log.WarnContext(ctx, "throttled")
		writeIntegrationError(w, http.StatusInternalServerError)
	case errors.Is(err, lambdarun.ErrRequestTooLarge):
		writeREST(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", `{"message":"Request Too Long"}`)
	default:
		log.ErrorContext(ctx, "invocation failed", "error", err)
		writeIntegrationError(w, http.StatusBadGateway)
	}
}

// isBinary reports whether a media type matches one of BinaryMediaTypes. If */* is one of
// them, every body is binary, even a body without a type.
func (a *restAPI) isBinary(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	return slices.ContainsFunc(a.opts.BinaryMediaTypes, func(pattern string) bool {
		return pattern == "*/*" || wildcard(strings.ToLower(pattern), mediaType)
	})
}

func writeRESTRefusal(w http.ResponseWriter, err error) {
	switch {
	case explicitDeny(err):
		writeREST(w, http.StatusForbidden, "AccessDeniedException", `{"Message":"User is not authorized to access this resource with an explicit deny"}`)
	case errors.Is(err, ErrForbidden):
		writeREST(w, http.StatusForbidden, "AccessDeniedException", `{"Message":"User is not authorized to access this resource"}`)
	case errors.Is(err, errAuthorizer):
		writeREST(w, http.StatusInternalServerError, "AuthorizerConfigurationException", `{"message":null}`)
	default:
		writeREST(w, http.StatusUnauthorized, "UnauthorizedException", `{"message":"Unauthorized"}`)
	}
}

func writeIntegrationError(w http.ResponseWriter, status int) {
	writeREST(w, status, "InternalServerErrorException", `{"message": "Internal server error"}`)
}

// writeREST writes an answer that API Gateway itself gives.
func writeREST(w http.ResponseWriter, status int, errorType, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header()["x-amzn-ErrorType"] = []string{errorType}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// pathSegments splits a path at its slashes, and then decodes each segment, so that an
// escaped slash doesn't split a segment.
func pathSegments(escaped string) []string {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, s := range segments {
		if decoded, err := url.PathUnescape(s); err == nil {
			segments[i] = decoded
		}
	}
	return segments
}
