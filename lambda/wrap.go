package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
)

// Start passes h to the Lambda runtime, which serves one event after the other, or on
// Managed Instances several events at a time. Start doesn't return. A main package that
// calls Start needs no import of the runtime. h may be any handler of aws-lambda-go.
//
// The options are the runtime's, such as awslambda.WithEnableSIGTERM. The runtime's JSON options
// have no effect on the handlers of this package, which read and write JSON themselves.
func Start(h awslambda.Handler, opts ...awslambda.Option) {
	deepen(0)
	awslambda.StartWithOptions(h, opts...)
}

// deepen makes the stack grow at once to the size that a request needs. Otherwise the first
// request makes the stack grow several times, and each time all frames are copied.
//
//go:noinline
func deepen(i int) byte {
	var room [48 << 10]byte
	return room[i]
}

// Wrap makes handler h safe to retry, by the contract of [idem.Engine.Serve]. The compiler infers
// the type parameters from the adapter:
//
//	lambda.Wrap(engine, lambda.HTTPAPI, hello)
//
// h gets the event unchanged. For a function with several routes use a [Router].
//
// Wrap panics in these cases:
//
//   - e, h or a required function of the adapter is nil;
//   - the handler's name or [HandlerOptions.Operation] has more than 256 bytes, or the
//     name isn't UTF-8;
//   - the engine has [idem.Options.Resumable], and the handler's name is empty or
//     belongs to another handler, so that an abandoned request could reach the wrong
//     handler;
//   - two handlers of [Direct] on an engine have the same Operation (by default the
//     name), so that they would share keys;
//   - two unnamed handlers of [Direct] are on engines with the same namespace and the
//     same store, and the store counts handlers;
//   - a handler of [Direct] is on an engine whose [idem.Options.Stored] refuses status
//     200;
//   - a handler of [Direct] has a [DirectOptions.Scope], and neither a name nor an
//     Operation;
//   - a handler of [Direct] has a [JSONRPCKey] or an [MCPToolKey], and neither a
//     DirectOptions.Scope nor an engine with [idem.OneScope].
//
// In [idem.ModeOff] Wrap accepts equal Operations, any Options.Stored, and these two
// keys without a scope. In [idem.ModeObserve] it accepts these two keys without a scope.
func Wrap[Ev, Re any](e *idem.Engine, a Adapter[Ev, Re], h func(context.Context, Ev) (Re, error), optFns ...func(*HandlerOptions)) *Handler[Ev, Re] {
	var opt HandlerOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	return wrap(e, a, h, nil, opt)
}

// HandlerOptions are the options of a handler, such as its name. If you change the
// name, list the former name in Accepts, because records store the name.
type HandlerOptions struct {
	// Name distinguishes the handler from the function's other handlers, and from handlers that
	// replace it later. Required with [idem.Options.Resumable]. At most 256 bytes. Default: none;
	// in a [Router] the pattern of the route.
	Name string
	// Operation is the handler's name in the scope of its keys, with adapters of
	// [Direct]. So equal keys of two handlers are two operations. If Operation changes,
	// all earlier keys count as new, and their work is done again. So if you change
	// Name, set Operation to the former name, or to [Unnamed] if the handler had no
	// name. At most 256 bytes. Default: Name. Adapters for HTTP ignore Operation,
	// because the fingerprint of an HTTP request contains the method and the path.
	Operation string
	// Accepts lists former names of the handler, each with its function. The handler
	// also completes abandoned requests under these names. In an entry, an empty
	// Function means this function, and an empty Name means a handler without a name.
	// If an entry names another function, the worker must send that function's tickets
	// to this function.
	Accepts []store.HandlerID
	// Route returns the pattern of a request, with or without a method, for scope, logs and
	// metrics. It is called before the handler of [WrapHandler] serves the request. "" means none.
	// Default: the pattern of an [http.ServeMux]; for other handlers the gateway's route.
	Route func(*http.Request) string
}

// Unnamed is the [HandlerOptions.Operation] of a handler that had no name when its first keys
// were used.
const Unnamed = "-"

// HandlerOptions.operation returns the handler's name in the scope of its keys. This
// name is "" if Operation is [Unnamed], or if neither Operation nor Name is set.
func (o *HandlerOptions) operation() string {
	if o.Operation == Unnamed {
		return ""
	}
	return cmp.Or(o.Operation, o.Name)
}

// wrap makes a Handler that runs h. If h is nil, a reader (of) makes the handler for
// each event.
func wrap[Ev, Re any](e *idem.Engine, a Adapter[Ev, Re], h func(context.Context, Ev) (Re, error), of reader[Ev, Re], opt HandlerOptions) *Handler[Ev, Re] {
	switch {
	case e == nil:
		panic("lambda: Wrap: engine is nil") //nolint:forbidigo // a mistake in the program
	case a.Request == nil || a.Response == nil || a.Reply == nil:
		panic("lambda: Wrap: the adapter lacks a function") //nolint:forbidigo // a mistake in the program
	case h == nil && of == nil:
		panic("lambda: Wrap: handler is nil") //nolint:forbidigo // a mistake in the program
	case a.typed && !e.Keeps(http.StatusOK):
		panic("lambda: Wrap: Options.Stored doesn't keep 200, so no result would ever be kept") //nolint:forbidigo // a mistake in the program
	}
	err := cmp.Or(checkName(opt.Name), checkName(opt.Operation))
	if err == nil {
		err = e.AddHandler(opt.Name)
	}
	if err == nil && a.shared != nil && a.shared(nil) && !e.OneCaller() {
		err = errors.New("clients choose keys, and nothing tells the clients apart: " + whoseKeys)
	}
	if err == nil && a.ownScope && cmp.Or(opt.Operation, opt.Name) == "" {
		err = errors.New("DirectOptions.Scope removes the function from the keys, so handlers of other functions could share keys: " +
			"set HandlerOptions.Name, or Operation to lambda.Unnamed if keys are already in use")
	}
	operation := opt.operation()
	if err == nil && a.typed {
		err = e.AddOperation("Direct", operation)
	}
	if err != nil {
		panic(fmt.Sprintf("lambda: Wrap: %v", err)) //nolint:forbidigo // a mistake in the program
	}
	return &Handler[Ev, Re]{engine: e, adapter: a, fn: h, of: of, opt: opt, operation: operation, stored: e.StoresRequests()}
}

// whoseKeys is advice for a program in which clients choose the keys, and the scope
// doesn't distinguish the clients.
const whoseKeys = "set DirectOptions.Scope, or use idem.OneScope if all clients may get each other's answers"

func checkName(name string) error {
	const maxName = 256
	if len(name) > maxName {
		return fmt.Errorf("the name %.40q has more than %d bytes", name, maxName)
	}
	return nil
}

// A reader makes the handler for an event. r is the request that was read from the event, and err
// is the error if the event couldn't be read.
type reader[Ev, Re any] func(r idem.Request, err error) func(context.Context, Ev) (Re, error)

// Handler is a wrapped handler. It is safe for concurrent use.
type Handler[Ev, Re any] struct {
	engine  *idem.Engine
	adapter Adapter[Ev, Re]
	fn      func(context.Context, Ev) (Re, error)
	of      reader[Ev, Re] // nil: fn handles all events
	opt     HandlerOptions

	operation string // the handler's name in the scope of its keys
	stored    bool   // the engine stores requests
}

var _ awslambda.Handler = (*Handler[any, any])(nil)

// Handle returns the answer to an event, for tests and for nesting. If another
// wrapper's handler calls Handle with that wrapper's request and key, Handle just runs
// its own handler. With that key and another request, Handle refuses the request
// ([idem.ErrMismatch]).
//
// If the engine doesn't act on a request (its method uses no keys, an optional key is
// missing, or the [idem.Mode] lets the request run unprotected), the handler's answer
// and error are returned unchanged. But if such a request has a key header, the answer
// says that the key was ignored. The adapter converts this answer and all others: the
// meaning is the same, but the form may differ (header names in canonical case, text no
// longer in base64).
//
// With an adapter for HTTP, Handle returns an error in two cases only: the engine
// doesn't act on the request and the handler fails, or ev isn't the adapter's kind of
// event ([ErrEvent]; the handler doesn't run). With an adapter of [Direct], Handle
// returns the error of the handler or of the engine.
//
// If the handler panics, Handle first releases the lease. Outside of Lambda and with an
// adapter for HTTP, Handle then answers 500, as after an error, unless the engine
// doesn't act on the request or the panic's value is [http.ErrAbortHandler]. Otherwise
// the panic continues. In Lambda it ends the process; see [Handler.Invoke].
func (h *Handler[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	if h.adapter.typed {
		return h.handleTyped(ctx, ev)
	}
	req, err := h.adapter.request(ctx, ev, h.stored)
	return h.serve(ctx, ev, req, err)
}

// Invoke is Handle for the runtime: payload and result are JSON. If the payload isn't the adapter's
// kind of event, or has a field of the wrong JSON type, the error names the kind of the payload.
// With an adapter of [Direct], the first result and all replays are the same stored bytes.
//
// If the handler panics in Lambda, Invoke with an adapter for HTTP answers the client
// with 500 "retry with the same key" and ends the process. Lambda counts this as an
// error of the invocation (Runtime.ExitError) and starts a new process. But if the
// engine doesn't act on the request, or the panic's value is [http.ErrAbortHandler], the
// client gets the gateway's own 5xx.
//
// The payload may also be a completer's envelope, which names an operation. The handler
// then completes the operation with the request from the record, and the result is the
// outcome. Clients can't send an envelope through a gateway. A principal that may
// invoke the function can send envelopes, but can't invent a caller or a request,
// because an envelope holds neither.
func (h *Handler[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	switch t, ok, err := envelope.ParseTicket(payload); {
	case err != nil:
		return nil, err
	case ok:
		return completed(ctx, t, h.resume), nil
	}
	if !h.adapter.typed {
		return invoke(ctx, payload, h.Handle)
	}
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	return h.invokeTyped(ctx, payload, ev)
}

// invoke runs an invocation for the runtime. The function handle answers the event. If the payload
// isn't the kind of event that handle expects, the error names the payload's kind. In Lambda, if
// the handler panics, invoke posts the answer before the panic continues.
func invoke[Ev, Re any](ctx context.Context, payload []byte, handle func(context.Context, Ev) (Re, error)) (out []byte, err error) {
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	var c crash
	re, err := handle(context.WithValue(ctx, crashKey{}, &c), ev)
	switch {
	case errors.Is(err, ErrEvent):
		err = fmt.Errorf("%w; the payload is %s", err, kind(payload))
	case err == nil:
		out, err = encode(re)
	}
	if c.value != nil && runtimeAPI() != "" { // tests and other servers have no runtime API
		c.ends(ctx, out, err)
	}
	return out, err
}

// reqErr is the error if the request couldn't be read from ev.
func (h *Handler[Ev, Re]) serve(ctx context.Context, ev Ev, req idem.Request, reqErr error) (Re, error) {
	var own Re
	serve := h.engine.Serve
	switch {
	case errors.Is(reqErr, ErrEvent):
		return own, reqErr
	case reqErr != nil && (!h.engine.Acts(req.Method, req.Header) || h.engine.Observes(ctx, req, reqErr)):
		serve = h.engine.Pass // the engine doesn't act on this request, or only observes it, so the request needn't be readable
	case reqErr != nil:
		return h.adapter.Reply(h.engine.Refuse(ctx, req, reqErr)), nil
	}
	if req.Answer == nil {
		req.Answer = h.adapter.answer
	}
	req.Handler.Name = h.opt.Name
	fn := h.fn
	if h.of != nil {
		fn = h.of(req, reqErr)
	}
	var ownErr error
	res, err := serve(ctx, req, func(ctx context.Context) (idem.Response, error) {
		if own, ownErr = fn(ctx, ev); ownErr != nil {
			return idem.Response{}, ownErr
		}
		return h.adapter.Response(own)
	})
	if res.Panic != nil {
		crashed(ctx, res.Panic)
	}
	switch {
	case res.Passed && ownErr == nil: // the handler's own answer, even if adapter.Response failed
		return own, nil
	case err != nil:
		return own, err
	default:
		return h.adapter.Reply(res.Response), nil
	}
}

// completed returns the answer to a completer's ticket: the outcome of the function resume. The
// outcome doesn't contain the client's answer, which is in the record.
func completed(ctx context.Context, t jobs.Ticket, resume func(context.Context, jobs.Ticket) error) []byte {
	return envelope.EncodeOutcome(envelope.OutcomeOf(resume(ctx, t)))
}

// Handler.resume completes the operation of ticket t: the handler gets an event made
// from the stored request.
func (h *Handler[Ev, Re]) resume(ctx context.Context, t jobs.Ticket) error {
	if h.adapter.Event == nil {
		return errNoInverse
	}
	return resume(ctx, h.engine, t, h.names(), h.runStored)
}

var errNoInverse = errors.New("lambda: the adapter has no Event function: its requests can't be run again from their records")

// resume completes the operation of ticket t. If run panics, this attempt has failed.
// The process needn't end, because the engine has released the record and no client
// waits.
func resume(ctx context.Context, e *idem.Engine, t jobs.Ticket, names []store.HandlerID, run func(context.Context, *idem.Request) (idem.Response, error)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	_, err = e.Resume(ctx, t, run, func(o *idem.ResumeOptions) { o.Handlers, o.Tenant = names, tenantOf(ctx) })
	return err
}

// Handler.names returns the names that records of this handler may have: its own and
// the accepted ones.
func (h *Handler[Ev, Re]) names() []store.HandlerID {
	return append([]store.HandlerID{{Name: h.opt.Name}}, h.opt.Accepts...)
}

// runStored runs the handler with an event made from a stored request.
func (h *Handler[Ev, Re]) runStored(ctx context.Context, req *idem.Request) (idem.Response, error) {
	req.Answer = h.adapter.answer
	ev, err := h.adapter.Event(*req)
	if err != nil {
		return idem.Response{}, fmt.Errorf("the stored request: %w", err)
	}
	// A client's retry may have moved the operation to this handler from a handler of
	// another kind of event. The stored request then has a snapshot that this adapter
	// can't read, so the event may have another caller, or no caller.
	made, err := h.adapter.request(ctx, ev, false)
	if !h.adapter.typed && (err != nil || made.Identity != req.Identity) {
		return idem.Response{}, fmt.Errorf("the stored request: %w: the event made of it has another caller", errors.Join(idem.ErrCorrupt, err))
	}
	fn := h.fn
	if h.of != nil {
		fn = h.of(made, nil)
	}
	own, err := fn(ctx, ev)
	if err != nil {
		return idem.Response{}, err
	}
	if h.adapter.typed {
		return h.neutral(own), nil
	}
	return h.adapter.Response(own)
}
