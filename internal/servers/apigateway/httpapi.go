package apigateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

const (
	// maxBodyBytes is the largest request body that API Gateway accepts.
	maxBodyBytes = 10 << 20
	// integrationTimeout is how long an HTTP API waits for a function.
	integrationTimeout = 30 * time.Second
)

// Identity is what an authorizer says about a caller. The function gets it in
// requestContext.authorizer. Set one field.
type Identity = events.APIGatewayV2HTTPRequestContextAuthorizerDescription

// JWT returns the identity that a JWT authorizer makes from a token's claims.
func JWT(claims map[string]string, scopes ...string) *Identity {
	return &Identity{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims, Scopes: scopes}}
}

// ErrForbidden is the error with which an authorizer refuses a known caller. The answer
// is 403 instead of 401.
var ErrForbidden = errors.New("forbidden")

// HTTPAPIOptions are the options of [HTTPAPI].
type HTTPAPIOptions struct {
	// Routes are the API's route keys. They are written as in API Gateway: "POST /rides",
	// "GET /rides/{id}", "ANY /{proxy+}" or "$default". The most specific route takes the
	// request. If no route matches, the answer is 404. Default: "$default" alone, which
	// takes every request. [HTTPAPIRoutes] ignores this field.
	Routes []string
	// Authorizer decides on each request that has a route; see [RequestAuthorizer].
	// Default: every request goes through without an identity. [HTTPAPIRoutes] ignores
	// this field.
	Authorizer func(*http.Request) (*Identity, error)
	// AccountID and APIID are passed to the function. Defaults "123456789012" and
	// "local".
	AccountID, APIID string
	// DomainName is passed to the function. Default: the request's Host without the
	// port.
	DomainName string
	// Stage is passed to the function. Clients leave the stage out of the path. In
	// events, every path begins with the stage, unless the stage is "$default". Default
	// "$default".
	Stage string
	// StageVariables are passed to the function. Default none.
	StageVariables map[string]string
	// IntegrationTimeout is how long to wait for the function. The function continues after the
	// timeout. Default 30 s, API Gateway's limit.
	IntegrationTimeout time.Duration
	// Logger gets the reason if the authorizer refuses a request, the invocation fails or
	// the response is malformed. The client doesn't get the reason. Default: discard.
	Logger *slog.Logger
}

// HTTPRoute is the target of a route of [HTTPAPIRoutes].
type HTTPRoute struct {
	// Function serves the requests. Required.
	Function lambdarun.Invoker
	// Authorizer decides on each request: a [RequestAuthorizer] or a
	// [LambdaAuthorizer]. nil lets every request through.
	Authorizer Authorizer
	// Timeout, if positive, replaces IntegrationTimeout.
	Timeout time.Duration
}

// HTTPAPI returns a handler that behaves as an API Gateway HTTP API with a Lambda proxy
// integration and payload format 2.0. The handler makes an event from each request,
// invokes inv and makes an HTTP response from the result. HTTPAPI panics if inv is nil,
// or if a route or the timeout is not valid.
//
// As in HTTP APIs, every path in an event is decoded, even rawPath. A body is passed as
// text if its Content-Type is text/*, application/json, application/xml or
// application/javascript. Any other body, form data included, is passed in base64.
//
// API Gateway's own answers are JSON:
//   - 404 if no route matches,
//   - 401, 403 and 500 if the authorizer refuses or fails,
//   - 413 for a body over 10 MB or an event over Lambda's limit,
//   - 500 if the function fails or its response is malformed,
//   - 503 if the function is throttled or the integration timeout passes.
//
// If the client disconnects, the function continues.
func HTTPAPI(inv lambdarun.Invoker, optFns ...func(*HTTPAPIOptions)) http.Handler {
	opts := newHTTPAPIOptions(optFns)
	if len(opts.Routes) == 0 {
		opts.Routes = []string{defaultRouteKey}
	}
	route := HTTPRoute{Function: inv}
	if opts.Authorizer != nil {
		route.Authorizer = RequestAuthorizer(opts.Authorizer)
	}
	routes := make(map[string]HTTPRoute, len(opts.Routes))
	for _, key := range opts.Routes {
		if _, twice := routes[key]; twice {
			panic(fmt.Sprintf("apigateway: HTTPAPI: route %q appears twice", key)) //nolint:forbidigo // a mistake in the program
		}
		routes[key] = route
	}
	return newHTTPAPI(routes, opts)
}

// HTTPAPIRoutes is like [HTTPAPI], but each route has a function and an authorizer of its
// own. The keys of routes are route keys, such as "POST /rides". If routes is empty, every
// answer is 404. The options Routes and Authorizer are not used.
func HTTPAPIRoutes(routes map[string]HTTPRoute, optFns ...func(*HTTPAPIOptions)) http.Handler {
	return newHTTPAPI(routes, newHTTPAPIOptions(optFns))
}

func newHTTPAPIOptions(optFns []func(*HTTPAPIOptions)) HTTPAPIOptions {
	opts := HTTPAPIOptions{
		AccountID:          ids.AccountID,
		APIID:              "local",
		Stage:              defaultRouteKey,
		IntegrationTimeout: integrationTimeout,
		Logger:             slog.New(slog.DiscardHandler),
	}
	for _, fn := range optFns {
		fn(&opts)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}

func newHTTPAPI(targets map[string]HTTPRoute, opts HTTPAPIOptions) *httpAPI {
	if opts.IntegrationTimeout <= 0 {
		panic("apigateway: HTTPAPI: the integration timeout is not positive") //nolint:forbidigo // a mistake in the program
	}
	for key, target := range targets {
		if target.Function == nil {
			panic("apigateway: HTTPAPI: nil Invoker for " + key) //nolint:forbidigo // a mistake in the program
		}
	}
	routes, err := newRouteTable(slices.Sorted(maps.Keys(targets)))
	if err != nil {
		panic("apigateway: HTTPAPI: " + err.Error()) //nolint:forbidigo // a mistake in the program
	}
	return &httpAPI{
		targets: targets, opts: opts, routes: routes,
		now: time.Now, newID: ids.Gateway, newTraceID: ids.Trace,
	}
}

type httpAPI struct {
	targets map[string]HTTPRoute
	opts    HTTPAPIOptions
	routes  routeTable

	// Replaced in tests.
	now        func() time.Time
	newID      func() string
	newTraceID func() string
}

func (a *httpAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := a.newID()
	w.Header().Set("Apigw-Requestid", requestID)
	log := a.opts.Logger.With("request_id", requestID, "method", r.Method, "path", r.URL.Path)

	path := decodePath(r.URL.EscapedPath())
	routeKey, params, ok := a.routes.find(r.Method, path)
	if !ok {
		writeMessage(w, http.StatusNotFound, "Not Found")
		return
	}
	target := a.targets[routeKey]
	if a.opts.Stage != defaultRouteKey {
		path = "/" + a.opts.Stage + path
	}
	event := a.event(r, requestID, routeKey, path, params)
	if target.Authorizer != nil {
		identity, err := target.Authorizer.authorize(r, a, &event)
		if err != nil {
			log.InfoContext(r.Context(), "refused by the authorizer", "error", err)
			writeRefusal(w, err)
			return
		}
		event.RequestContext.Authorizer = identity
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			writeMessage(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		} else {
			writeMessage(w, http.StatusBadRequest, "Bad Request")
		}
		return
	}
	event.setBody(r.Header.Get("Content-Type"), body)
	payload, err := json.Marshal(event)
	if err != nil {
		// can't happen: what the authorizer said is JSON already, and the rest of the
		// event consists of strings, numbers and maps of strings
		log.ErrorContext(r.Context(), "event is not JSON", "error", err)
		writeMessage(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}

	// If ctx ends, Invoke returns and the function continues.
	ctx, cancel := context.WithTimeout(r.Context(), orElse(target.Timeout, a.opts.IntegrationTimeout))
	defer cancel()
	result, err := target.Function.Invoke(ctx, payload)
	if err != nil {
		a.writeInvokeError(ctx, w, r, log, err)
		return
	}
	resp, err := parseHTTPAPIResponse(result)
	if err != nil {
		log.ErrorContext(ctx, "malformed response", "error", err)
		writeMessage(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	if resp.multiValue {
		log.WarnContext(ctx, "multiValueHeaders is no part of payload format 2.0: API Gateway may drop it")
	}
	resp.write(w)
}

// writeRefusal answers a request that an authorizer refused.
func writeRefusal(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrForbidden):
		writeMessage(w, http.StatusForbidden, "Forbidden")
	case errors.Is(err, errAuthorizer):
		writeMessage(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		writeMessage(w, http.StatusUnauthorized, "Unauthorized")
	}
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

func (a *httpAPI) writeInvokeError(ctx context.Context, w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	switch {
	case r.Context().Err() != nil:
		log.InfoContext(ctx, "client went away")
		return
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded):
		log.WarnContext(ctx, "integration timeout")
		writeMessage(w, http.StatusServiceUnavailable, "Service Unavailable")
	case errors.Is(err, lambdarun.ErrThrottled):
		log.WarnContext(ctx, "throttled")
		writeMessage(w, http.StatusServiceUnavailable, "Service Unavailable")
	case errors.Is(err, lambdarun.ErrRequestTooLarge):
		writeMessage(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	default:
		log.ErrorContext(ctx, "invocation failed", "error", err)
		writeMessage(w, http.StatusInternalServerError, "Internal Server Error")
	}
}

// writeMessage writes an answer that API Gateway itself gives.
func writeMessage(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"message":"`+message+`"}`)
}
