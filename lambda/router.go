package lambda

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
)

// Router serves the routes of a function. Each keyed route has an engine; several
// routes may share an engine. All routes share one adapter for HTTP. The method Invoke
// takes an event of the gateway or an envelope of the completer, and runs the handler
// of the right route:
//
//	router := lambda.NewRouter(lambda.HTTPAPI)
//	router.Keyed("POST /rides", engine, app.create)
//	router.Route("GET /rides/{id}", app.show)
//	lambda.Start(router)
//
// Patterns are those of [http.ServeMux], with methods and wildcards. They match the
// path that the client sent, without a stage. If several patterns match, the most
// specific one is used. [PathValue] returns the value of a wildcard. If no pattern
// matches the path, the router answers 404. If patterns match the path only for other
// methods, it answers 405 with Allow. Router never redirects: neither "/rides/" to
// "/rides", nor "/a//b" to "/a/b".
//
// A keyed route's name is its pattern, unless [HandlerOptions] set another name. Each
// stored request holds the name of its route, by which a completer finds the route. So
// if you change a route's pattern, set Name to the former pattern, or list the former
// name in Accepts.
//
// Add all routes before you use the router. Once all routes are added, the router is
// safe for concurrent use.
type Router[Ev, Re any] struct {
	adapter Adapter[Ev, Re]
	opt     RouterOptions
	mux     *http.ServeMux
	keyed   []*Route[Ev, Re]
	stored  bool // an engine of a keyed route stores requests
}

var _ awslambda.Handler = (*Router[any, any])(nil)

// RouterOptions are the options of [NewRouter].
type RouterOptions struct {
	// CORS contains the origins whose pages may read the router's 404 and 405 answers. For an
	// engine's answers see [idem.Options.CORS]. Default: none.
	CORS idem.CORS
}

// NewRouter returns a router without routes. If no route matches a request's path, the
// router answers 404 with the code "route_not_found". If routes match the path only for
// other methods, it answers 405 with the code "method_not_allowed". [idem.ProblemJSON]
// writes both answers. NewRouter panics if the adapter isn't for HTTP, or lacks
// Request, Response or Reply.
func NewRouter[Ev, Re any](a Adapter[Ev, Re], optFns ...func(*RouterOptions)) *Router[Ev, Re] {
	var opt RouterOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if a.Request == nil || a.Response == nil || a.Reply == nil || a.typed {
		panic("lambda: NewRouter: an adapter for HTTP with all its functions is required") //nolint:forbidigo // a mistake in the program
	}
	return &Router[Ev, Re]{adapter: a, opt: opt, mux: http.NewServeMux()}
}

// Route is a route of a [Router].
type Route[Ev, Re any] struct {
	pattern pattern
	handler *Handler[Ev, Re] // nil: not keyed
	plain   func(context.Context, Ev) (Re, error)
	before  func(context.Context, Ev) (*Re, error)
}

// Route adds a route without keys: h gets the event unchanged, and the answer of h is
// sent unchanged. To add an [EndpointHandler], such as a [StatusHandler], pass its
// method Handle. Route panics if h is nil, or if [http.ServeMux] refuses the pattern by
// itself or together with the other patterns.
func (r *Router[Ev, Re]) Route(pattern string, h func(context.Context, Ev) (Re, error)) {
	if h == nil {
		panic("lambda: Router: handler is nil") //nolint:forbidigo // a mistake in the program
	}
	r.add(pattern, &Route[Ev, Re]{plain: h})
}

// Keyed adds a route and wraps the handler with an engine, as [Wrap] does. Keyed panics
// in all cases in which Wrap panics. It also panics if [http.ServeMux] refuses the
// pattern, or if the route's name is empty. If another route has or accepts the route's
// name, or a name in the route's Accepts, Keyed panics too. Finally, Keyed panics if
// the route's method is not in [idem.Options.Methods], because the engine would not
// protect the route ([idem.Engine.CheckRoute]). But in [idem.ModeOff] every method is
// accepted. If the pattern has no method, the route also gets requests with methods
// that take no keys, and the engine doesn't protect these requests.
func (r *Router[Ev, Re]) Keyed(pattern string, e *idem.Engine, h func(context.Context, Ev) (Re, error), optFns ...func(*HandlerOptions)) *Route[Ev, Re] {
	opt := HandlerOptions{Name: pattern}
	for _, fn := range optFns {
		fn(&opt)
	}
	route := &Route[Ev, Re]{}
	for _, name := range append([]store.HandlerID{{Name: opt.Name}}, opt.Accepts...) {
		if r.named(name) != nil || opt.Name == "" {
			panic(fmt.Sprintf("lambda: Router: the %v is another route's, or has no name", name)) //nolint:forbidigo // a mistake in the program
		}
	}
	route.handler = wrap(e, r.adapter, h, nil, opt)
	r.stored = r.stored || route.handler.stored
	if err := e.CheckRoute(pattern); err != nil {
		panic(fmt.Sprintf("lambda: Router: %v", err)) //nolint:forbidigo // a mistake in the program
	}
	r.add(pattern, route)
	r.keyed = append(r.keyed, route)
	return route
}

// Before sets the route's check, and returns the route. The check runs before the
// engine reads the key. If check returns an answer, the client gets this answer, and
// the key remains unused. Use Before for requests that the handler can't serve, such as
// malformed requests or requests without a user. If check returns nil, the engine
// serves the request: it runs the handler or replays the stored answer. If a request is
// run again from its record, check doesn't run, because the request has passed the
// check already.
func (t *Route[Ev, Re]) Before(check func(context.Context, Ev) (*Re, error)) *Route[Ev, Re] {
	t.before = check
	return t
}

func (r *Router[Ev, Re]) add(text string, t *Route[Ev, Re]) {
	t.pattern = parsePattern(text)
	r.mux.Handle(text, &target{t})
}

// Router.named returns the route that has or accepts exactly this name, or nil.
func (r *Router[Ev, Re]) named(id store.HandlerID) *Route[Ev, Re] {
	i := slices.IndexFunc(r.keyed, func(t *Route[Ev, Re]) bool { return slices.Contains(t.handler.names(), id) })
	if i < 0 {
		return nil
	}
	return r.keyed[i]
}

// Handle returns the answer to an event, for tests and for routers around this router.
// For a keyed route, Handle returns the error of the check ([Route.Before]), or the
// error of [Handler.Handle]. For another route, Handle returns the handler's error. If
// ev isn't the adapter's kind of event, the error matches [ErrEvent].
func (r *Router[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	var none Re
	req, err := r.adapter.request(ctx, ev, r.stored)
	if errors.Is(err, ErrEvent) {
		return none, err
	}
	found := match(r.mux, &req)
	if found.target == nil {
		resp := found.refusal()
		r.opt.CORS.Allow(&resp, req.Header)
		return r.adapter.Reply(resp), nil
	}
	t, _ := found.target.route.(*Route[Ev, Re])
	ctx = withPath(ctx, found.request)
	if t.handler == nil {
		return t.plain(idem.WithSender(ctx, &req), ev)
	}
	if t.before != nil {
		if re, err := t.before(ctx, ev); re != nil || err != nil {
			if re == nil {
				re = &none
			}
			return *re, err
		}
	}
	req.Route = t.pattern.route(req.Method)
	return t.handler.serve(ctx, ev, req, err)
}

// Invoke is Handle for the runtime: payload and result are JSON. If the payload is a
// completer's envelope, Invoke completes an operation with the handler that the
// operation's record names.
func (r *Router[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	switch t, ok, err := envelope.ParseTicket(payload); {
	case err != nil:
		return nil, err
	case ok:
		return completed(ctx, t, r.resume), nil
	}
	return invoke(ctx, payload, r.Handle)
}

// Router.resume completes the operation of ticket t. The ticket doesn't say which
// engine the operation belongs to. So resume tries the ticket with one engine after the
// other. An engine doesn't change the operation of another engine.
func (r *Router[Ev, Re]) resume(ctx context.Context, t jobs.Ticket) error {
	if r.adapter.Event == nil {
		return errNoInverse
	}
	result := error(&idem.Error{Op: "resume", Err: fmt.Errorf("%w: the function has no keyed routes", jobs.ErrNotMine)})
	asked := make(map[*idem.Engine]bool)
	for _, route := range r.keyed {
		e := route.handler.engine
		if asked[e] {
			continue
		}
		asked[e] = true
		switch err := resume(ctx, e, t, r.names(e), r.runStored); {
		case errors.Is(err, jobs.ErrNotMine):
			result = err // the operation exists, and may belong to another engine
		case !errors.Is(err, jobs.ErrMoved):
			return err
		case len(asked) == 1:
			result = err // the operation may be in another engine's table: the next engine is asked
		}
	}
	return result
}

func (r *Router[Ev, Re]) names(e *idem.Engine) (all []store.HandlerID) {
	for _, route := range r.keyed {
		if route.handler.engine == e {
			all = append(all, route.handler.names()...)
		}
	}
	return all
}

// runStored runs the handler that a stored request names.
func (r *Router[Ev, Re]) runStored(ctx context.Context, req *idem.Request) (idem.Response, error) {
	t := r.named(req.Handler)
	if t == nil {
		t = r.named(store.HandlerID{Name: req.Handler.Name}) // the record's HandlerID has a function, but the HandlerID of a route's current name has none
	}
	if t == nil {
		return idem.Response{}, fmt.Errorf("there is no route of the %v", req.Handler) // not reached: the engine takes only records with the routes' names
	}
	ctx, err := t.pattern.values(ctx, req)
	if err != nil {
		return idem.Response{}, err
	}
	return t.handler.runStored(ctx, req)
}
