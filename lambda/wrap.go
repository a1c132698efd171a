package lambda

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/idem"
)

// Wrap makes handler h safe to retry, by the contract of [idem.Engine.Serve].
// Its types follow from the adapter; none has to be written out:
//
//	lambda.Wrap(engine, lambda.HTTPAPI, hello)
//
// h gets the event as it came, whatever the adapter read from it. Wrap panics
// if anything is nil; for a second handler with the same name, or without one,
// on an engine with [idem.Options.Resumable], whose abandoned requests would end
// in either; for a second one of [Direct], whose keys would be the first one's, and
// for one without a name whose [DirectOptions] have a Scope: mistakes in the program, best found at cold start. A function with several routes
// has a [Router].
func Wrap[Ev, Re any](e *idem.Engine, a Adapter[Ev, Re], h func(context.Context, Ev) (Re, error), optFns ...func(*HandlerOptions)) *Handler[Ev, Re] {
	var opt HandlerOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	return wrap(e, a, h, opt)
}

// HandlerOptions say by which names a handler is known to the records of its
// requests. Names are stored: whoever changes one declares the former.
type HandlerOptions struct {
	// Name tells the handler from the others of its function. At most 256 bytes.
	// Default: none; in a [Router] the pattern of its route.
	Name string
	// Operation names whose keys the handler's are, for adapters of [Direct]: it is
	// part of their scope, so that equal keys of two handlers are two operations.
	// With another one all earlier keys are new, and what they name is done again: a
	// handler whose Name changes keeps its former one here, and one that had none has
	// [Unnamed]. At most 256 bytes. Default: Name. Adapters for HTTP don't use it:
	// there method and path are part of the fingerprint.
	Operation string
	// Accepts are the handlers that this one was before, whose abandoned requests it
	// completes: of another name, or of another function, where a completer's
	// Functions send such tickets here. An empty Function stands for this one, and
	// an empty Name for a handler without one.
	Accepts []idem.HandlerID
}

// Unnamed is the [HandlerOptions.Operation] of a handler that had no name when its
// first keys were used.
const Unnamed = "-"

// operation is whose keys the handler's are, "" for those of one without a name.
func (o *HandlerOptions) operation() string {
	if o.Operation == Unnamed {
		return ""
	}
	return cmp.Or(o.Operation, o.Name)
}

// checkName refuses names that records can't hold.
func checkName(name string) error {
	const maxName = 256
	if len(name) > maxName {
		return fmt.Errorf("the name %.40q has more than %d bytes", name, maxName)
	}
	return nil
}

func wrap[Ev, Re any](e *idem.Engine, a Adapter[Ev, Re], h func(context.Context, Ev) (Re, error), opt HandlerOptions) *Handler[Ev, Re] {
	switch {
	case e == nil:
		panic("lambda: Wrap: engine is nil") //nolint:forbidigo // a mistake in the program
	case a.Request == nil || a.Response == nil || a.Reply == nil:
		panic("lambda: Wrap: the adapter lacks a function") //nolint:forbidigo // a mistake in the program
	case h == nil:
		panic("lambda: Wrap: handler is nil") //nolint:forbidigo // a mistake in the program
	case a.typed && !e.Keeps(http.StatusOK):
		panic("lambda: Wrap: Options.Stored doesn't keep 200, so no result would ever be kept") //nolint:forbidigo // a mistake in the program
	}
	err := cmp.Or(checkName(opt.Name), checkName(opt.Operation))
	if err == nil {
		err = e.AddHandler(opt.Name)
	}
	if err == nil && a.ownScope && cmp.Or(opt.Operation, opt.Name) == "" {
		err = errors.New("DirectOptions.Scope takes the function out of the keys, so the handler of another one could share them: " +
			"set HandlerOptions.Name, or Operation to lambda.Unnamed where keys are in use already")
	}
	if err == nil && a.typed {
		err = e.AddOperation("Direct", opt.operation())
	}
	if err != nil {
		panic(fmt.Sprintf("lambda: Wrap: %v", err)) //nolint:forbidigo // a mistake in the program
	}
	return &Handler[Ev, Re]{engine: e, adapter: a, fn: h, opt: opt}
}

// Handler is a wrapped handler. It is safe for concurrent use.
type Handler[Ev, Re any] struct {
	engine  *idem.Engine
	adapter Adapter[Ev, Re]
	fn      func(context.Context, Ev) (Re, error)
	opt     HandlerOptions
}

// *Handler is what the runtime starts.
var _ awslambda.Handler = (*Handler[any, any])(nil)

// Handle is the wrapped handler as a function, for tests and for nesting. A
// wrapper in a wrapper is transparent for the same key.
//
// A request the engine has nothing to do with (another method, an optional key
// that isn't there) gets the handler's own answer and error, untouched. Any
// other answer has gone through the adapter: it says the same, but may say it
// otherwise (header names in canonical case, a body that is text no longer in
// base64).
//
// The error is nil unless the request passed, [idem.Options.PassErrors] is set,
// or ev is of another kind than the adapter's ([ErrEvent]; the handler did not
// run). With an adapter of [Direct]'s it is the handler's own, or what the engine
// refuses.
//
// A panic of the handler is answered with 500, as an error is; with an adapter of
// [Direct]'s, or PassErrors, it goes on once its key is free. In a Lambda function
// it goes on too, so that the process ends: there only Invoke can answer first.
func (h *Handler[Ev, Re]) Handle(ctx context.Context, ev Ev) (Re, error) {
	if h.adapter.typed {
		return h.handleTyped(ctx, ev)
	}
	req, err := h.adapter.request(ctx, ev)
	return h.serve(ctx, ev, req, err)
}

// Invoke is Handle for the runtime: payload and result are JSON. A payload that
// isn't the adapter's kind of event is an error that says what came instead; a
// field of the wrong JSON type makes it one too. With an adapter of [Direct]'s
// the result is the stored bytes, the first time and later.
//
// A panic of the handler ends the process, after its client was answered with 500
// "retry with the same key". Lambda takes that for an error of the invocation
// (Runtime.ExitError), and starts a fresh process.
//
// A completer's envelope ([EncodeResume]) is no event: the operation it names is
// brought to an end with the request its record holds, and the result is an
// [Outcome]. No gateway lets a client make one, and it says nothing of who asks
// for what, so whoever may invoke the function can't invent that either.
func (h *Handler[Ev, Re]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if t, ok, err := ParseResume(payload); ok || err != nil {
		return h.resume(ctx, t, err)
	}
	ev, err := decode[Ev](payload)
	if err != nil {
		return nil, err
	}
	if h.adapter.typed {
		return h.invokeTyped(ctx, payload, ev)
	}
	req, err := h.adapter.request(ctx, ev)
	if errors.Is(err, ErrEvent) {
		return nil, fmt.Errorf("%w; the payload is %s", err, kind(payload))
	}
	return invoked(ctx, func(ctx context.Context) ([]byte, error) {
		re, err := h.serve(ctx, ev, req, err)
		if err != nil {
			return nil, err
		}
		return encode(re)
	})
}

// serve answers the request that ev was read as, or could not be read as.
func (h *Handler[Ev, Re]) serve(ctx context.Context, ev Ev, req idem.Request, reqErr error) (Re, error) {
	var own Re
	switch {
	case errors.Is(reqErr, ErrEvent):
		return own, reqErr
	case reqErr != nil && (!h.engine.Acts(req.Method, req.Header) || h.engine.Observes(ctx, req, reqErr)):
		return h.fn(ctx, ev) // unreadable to us only, and none of our business
	case reqErr != nil:
		return h.adapter.Reply(h.engine.Refuse(ctx, req, reqErr)), nil
	}
	if req.Answer == nil {
		req.Answer = h.answer
	}
	req.Handler.Name = h.opt.Name
	var ownErr error
	res, err := h.engine.Serve(ctx, req, func(ctx context.Context) (idem.Response, error) {
		if own, ownErr = h.fn(ctx, ev); ownErr != nil {
			return idem.Response{}, ownErr
		}
		return h.adapter.Response(own)
	})
	crashed(ctx, res.Panic)
	switch {
	case res.Passed && ownErr == nil: // even where Response could make nothing of it
		return own, nil
	case err != nil:
		return own, err
	default:
		return h.adapter.Reply(res.Response), nil
	}
}

// answer makes a Response of what a phase answers.
func (h *Handler[Ev, Re]) answer(v any) (idem.Response, error) {
	re, ok := v.(Re)
	if !ok {
		return idem.Response{}, fmt.Errorf("a %T is no %T", v, re)
	}
	return h.adapter.Response(re)
}

// decode reads an event. Types of aws-lambda-go that decode themselves panic on
// some of what isn't theirs.
func decode[Ev any](payload []byte) (ev Ev, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("lambda: %w: it can't be decoded; the payload is %s", ErrEvent, kind(payload))
		}
	}()
	if err := json.Unmarshal(payload, &ev); err != nil {
		return ev, fmt.Errorf("lambda: %w: %w; the payload is %s", ErrEvent, err, kind(payload))
	}
	return ev, nil
}

// encode marshals without HTML escapes, as the runtime does for plain handlers:
// they would cost six bytes for one, out of the 6 MB of a response.
func encode(re any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(re); err != nil {
		return nil, fmt.Errorf("lambda: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
