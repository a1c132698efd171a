package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/redact"
)

// Direct makes an adapter for your own events. Use it for functions that are invoked by name,
// synchronously or asynchronously: by the SDK, Step Functions, a schedule, a pipe, or a rule with
// its own input. The parameter key finds the event's idempotency key. Write out only the type
// arguments In and Out; the compiler infers the third:
//
//	pay := lambda.Wrap(engine, lambda.Direct[Order, Receipt](func(o Order) (string, error) { return o.ID, nil }), charge)
//
// The first invocation's result is stored as JSON. Every later invocation with the same
// key and payload gets the same bytes. The engine compares the whole payload, byte for
// byte. If callers may spell equal payloads differently, set
// [idem.Fingerprint.CanonicalJSON]. [Handler.Handle] gets no payload, so the engine
// compares the event's JSON (json.Marshal) instead.
//
// The scope of a key is the function, and the tenant if Lambda isolates tenants. Each
// alias of a function has a separate scope; all versions share one scope.
// [DirectOptions.Scope] replaces the function in the scope. The handler's name, if any,
// is part of the scope ([HandlerOptions.Operation]). An engine may have only one Direct
// handler without a name.
//
// If the function key returns "" and no error, the event has no idempotency key.
// [idem.Options.Key] then decides, as for HTTP: the event is refused, is handled each
// time ([idem.KeyOptional]), or gets a random key ([idem.KeyGenerate]). With a random
// key the handler can have phases. But each later invocation gets another key, so the
// handler runs again. If the function key returns an error, the event is refused in
// every [idem.KeyMode].
//
// # Errors
//
// An error of the handler reaches the caller unchanged. It frees the key, unless a
// phase is committed, a call is in doubt or [idem.Options.Resumable] is set. The
// engine's errors reach the caller too. In Go code, test an error of [Handler.Handle]
// with [errors.Is]. In Lambda, an error of the engine has one of these errorTypes,
// unless the error comes from a phase:
//
//	IdempotencyInFlight          another invocation works on the operation: invoke again, with a delay
//	IdempotencyLeaseLost         another invocation has taken over: invoke again
//	IdempotencyNoTimeLeft        this invocation did nothing for lack of time: invoke again
//	IdempotencyStoreUnavailable  the store doesn't answer: invoke again
//	IdempotencyUnfinished        the operation was begun, and may still be carried out: invoke again
//	IdempotencyQuotaExceeded     nothing was done: the caller is over a limit of idem.Options.Quota: invoke again, with a delay
//	IdempotencyKeyMissing        nothing was done: no key, and idem.KeyRequired is set
//	IdempotencyKeyInvalid        key returned an error, a key that isn't 1 to 255 visible ASCII
//	                             characters, or a new key shorter than idem.Options.MinKey
//	IdempotencyKeyMismatch       nothing was done: the key was used with another payload
//	IdempotencyScopeUnknown      DirectOptions.Scope failed, or the caller is unknown
//	IdempotencyRequestInvalid    nothing was done: the key is new, and the fingerprint can't be made
//	IdempotencyRequestTooLarge   nothing was done: the payload is larger than idem.Options.MaxRequest
//	IdempotencyAnswerNotKept     the operation was done; its result isn't stored whole, or has no JSON form
//	IdempotencyStuck             the operation waits for a person
//	IdempotencyRecordCorrupt     an operator must look at the record
//	IdempotencyIncomparable      the key has a record, but the payloads can't be compared:
//	                             if the fingerprint's scheme or secret has changed, an operator must
//	                             configure the former one
//
// Lambda retries an asynchronous invocation after every error, even if a retry can't
// help. The function's MaximumRetryAttempts allows at most two retries: one after a
// minute, and one two minutes later. Because retries are few, an invocation that finds
// another invocation at work doesn't fail at once. Instead it waits for the other's
// result, or for the end of the other's lease. [DirectOptions.Synchronous] turns this
// wait off. If a process dies, the event needs one retry. If MaximumRetryAttempts is 2,
// a second retry is left for another failure; see docs/use/sources.md. A retry helps
// only after an error for which the list says "invoke again". After the last retry
// Lambda sends the event to the function's failure destination: configure one.
//
// # Keys in the payload
//
// The parameter key may also be a [BodyKey]. A BodyKey reads the payload, including parts for which
// the type In has no field:
//
//	pay := lambda.Wrap(engine, lambda.Direct[Order, Receipt](lambda.JSONKey("/order/id")), charge)
//
// With [JSONRPCKey], [MCPToolKey] and [AppSyncKey], clients choose the keys. Equal keys
// of two clients name one operation, unless the scope distinguishes the clients. So set
// [DirectOptions.Scope]. If all clients may share keys, set [idem.OneScope] on the
// engine instead. If AppSyncKey finds the caller in the event, neither setting is needed.
//
// Direct panics if key is nil.
func Direct[In, Out any, Key func(In) (string, error) | BodyKey](key Key, optFns ...func(*DirectOptions[In])) Adapter[In, Out] {
	var find func(In, *idem.Request) (string, error)
	var shared func([]byte) bool
	switch key := any(key).(type) {
	case func(In) (string, error):
		if key != nil {
			find = func(in In, _ *idem.Request) (string, error) { return keyOf(key(in)) }
		}
	case BodyKey:
		if key.Key != nil {
			find, shared = func(_ In, req *idem.Request) (string, error) { return key.From(req) }, key.shared
		}
	}
	if find == nil {
		panic("lambda: Direct: key is nil") //nolint:forbidigo // a mistake in the program
	}
	var opt DirectOptions[In]
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Scope != nil {
		shared = nil
	}
	return Adapter[In, Out]{
		typed:    true,
		shared:   shared,
		ownScope: opt.Scope != nil,
		Request: func(ctx context.Context, in In) (idem.Request, error) {
			req, err := directRequest(ctx, in, find, opt.Scope)
			req.Asynchronous = !opt.Synchronous && !synchronous(ctx)
			return req, err
		},
		Event:    directEvent[In],
		Response: directResponse[Out],
		Reply:    directReply[Out],
	}
}

// DirectOptions are the options of [Direct].
type DirectOptions[In any] struct {
	// Scope returns the owner of the key: equal keys of two owners are two operations.
	// Derive the owner from verified facts only. If Scope returns an error, the event
	// is refused. By default the function is the owner. If you set Scope, also set
	// [HandlerOptions.Name] or [HandlerOptions.Operation], otherwise [Wrap] panics. The
	// name separates the handler's keys from other functions' keys on the table. If
	// [idem.Options.Resumable] is set, also set [idem.Options.CallerFromOp], otherwise
	// the engine refuses the event.
	Scope func(ctx context.Context, in In) (string, error)

	// Synchronous says that all callers wait for the result, as the SDK
	// (RequestResponse), Step Functions, AppSync and pipes do. With Synchronous, an
	// invocation that finds another invocation at work on the operation is refused at
	// once (IdempotencyInFlight), unless [idem.Options.InFlight] is
	// [idem.InFlightWait]; its caller tries again. Without Synchronous, the invocation
	// waits for the other's result, or for the end of the other's lease, because Lambda
	// drops an asynchronous event after two retries. Set Synchronous yourself, because
	// Lambda doesn't tell a function how it was invoked. Without this option, only an
	// invocation with a ClientContext is known to be synchronous.
	Synchronous bool
}

// synchronous reports whether an invocation is known to be synchronous: Lambda passes a client
// context only to synchronous invocations.
func synchronous(ctx context.Context) bool {
	lc, ok := lambdacontext.FromContext(ctx)
	return ok && (len(lc.ClientContext.Custom)+len(lc.ClientContext.Env) > 0 || lc.ClientContext.Client != lambdacontext.ClientApplication{})
}

func directRequest[In any](ctx context.Context, in In, key func(In, *idem.Request) (string, error), scope func(context.Context, In) (string, error)) (idem.Request, error) {
	req := idem.Request{Route: "direct", Header: jsonHeader()}
	if job, ok := any(in).(JobEvent); ok {
		req.Trace = job.trace()
	}
	var err error
	if req.Body = payloadFrom(ctx); req.Body == nil {
		if req.Body, err = json.Marshal(in); err != nil {
			return req, &idem.Error{Op: "request", Err: fmt.Errorf("%w: %w", idem.ErrRequest, err)}
		}
	}
	if scope == nil {
		req.Source = functionScope(ctx)
		req.Key, err = key(in, &req)
		return req, err
	}
	req.Scope, err = scope(ctx, in)
	switch {
	case err != nil:
		return req, &idem.Error{Op: "scope", Err: fmt.Errorf("%w: %w", idem.ErrScope, err)}
	case req.Scope == "":
		return req, &idem.Error{Op: "scope", Err: fmt.Errorf("%w: DirectOptions.Scope returned an empty scope", idem.ErrScope)}
	}
	req.Key, err = key(in, &req)
	return req, err
}

func directEvent[In any](req idem.Request) (in In, err error) {
	if err := json.Unmarshal(req.Body, &in); err != nil {
		return in, fmt.Errorf("lambda: %w: the stored payload: %w", idem.ErrCorrupt, redact.Decoding(err))
	}
	return in, nil
}

func directResponse[Out any](out Out) (idem.Response, error) {
	body, err := encode(out)
	return idem.Response{Header: jsonHeader(), Body: body}, err
}

// directReply decodes a stored result for [Adapter.Reply]. [Handler] doesn't call directReply:
// Handler decodes stored results itself, and reports results that it can't decode.
func directReply[Out any](r idem.Response) Out {
	out, _ := decodeResult[Out](r.Body)
	return out
}

func decodeResult[Out any](body []byte) (out Out, err error) {
	if len(body) == 0 {
		return out, nil // a phase answered without a result
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("lambda: %w: the stored result is no %T: %w", idem.ErrCorrupt, out, redact.Decoding(err))
	}
	return out, nil
}

type payloadKey struct{}

// withPayload passes the event's bytes to an adapter, since decoding may lose data.
func withPayload(ctx context.Context, payload []byte) context.Context {
	return context.WithValue(ctx, payloadKey{}, payload)
}

func payloadFrom(ctx context.Context) []byte {
	payload, _ := ctx.Value(payloadKey{}).([]byte)
	return payload
}

// handleTyped is Handle for adapters whose answers are values and errors instead of
// HTTP.
func (h *Handler[Ev, Re]) handleTyped(ctx context.Context, ev Ev) (Re, error) {
	req, reqErr := h.adapter.request(ctx, ev, h.stored)
	res, own, err := h.do(ctx, ev, req, reqErr)
	if o, ok := err.(*ownError); ok { //nolint:errorlint // as do returns it
		return own, o.err
	}
	if err != nil {
		return own, err
	}
	// Return the stored result to the first invocation too, because a phase may have
	// answered instead of the handler.
	re, err := decodeResult[Re](res.Body)
	if err != nil && !res.Replayed {
		return own, nil // JSON can't decode a Re, but the work is done
	}
	return re, err
}

// invokeTyped is Invoke for typed adapters. The first result and its replays are the same bytes.
func (h *Handler[Ev, Re]) invokeTyped(ctx context.Context, payload []byte, ev Ev) ([]byte, error) {
	req, reqErr := h.adapter.request(withPayload(ctx, payload), ev, h.stored)
	res, _, err := h.do(ctx, ev, req, reqErr)
	if own, ok := err.(*ownError); ok { //nolint:errorlint // its text and type are the handler's, also where it is another engine's
		return nil, own.err
	}
	switch {
	case err != nil:
		return nil, reported(err)
	case len(res.Body) == 0:
		return []byte("null"), nil // a phase answered without a result
	}
	return res.Body, nil
}

// Handler.do carries out a request. own is the handler's result if the handler ran. Handler.do
// returns an error of the handler as an *ownError.
func (h *Handler[Ev, Re]) do(ctx context.Context, ev Ev, req idem.Request, reqErr error) (res idem.Result, own Re, err error) {
	if errors.Is(reqErr, ErrEvent) {
		return res, own, reqErr
	}
	if reqErr == nil && h.adapter.shared != nil && h.adapter.shared(req.Body) && !h.engine.OneCaller() {
		reqErr = nobody("AppSync knows no caller: " + whoseKeys)
	}
	if reqErr != nil {
		req.Key = unreadable
	}
	if req.Answer == nil {
		req.Answer = h.adapter.answer
	}
	req.Handler.Name, req.Operation = h.opt.Name, h.operation
	ran := false
	res, err = h.engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		ran = true
		var err error
		if own, err = h.fn(ctx, ev); err != nil {
			return idem.Response{}, &ownError{err}
		}
		return h.neutral(own), nil
	})
	if o, ok := errors.AsType[*ownError](err); ok {
		return res, own, o
	}
	if strings.HasPrefix(string(res.Body), noForm) {
		err = &idem.Error{Op: "result", Err: fmt.Errorf("%w: %s", idem.ErrNotKept, res.Body[len(noForm):])}
	}
	if err != nil {
		own = *new(Re) // don't return the handler's own result: it isn't the stored one
	}
	if err != nil && reqErr != nil && !ran {
		err = reqErr
	}
	return res, own, engineError(err)
}

// Handler.neutral returns a handler's own result in its stored form. If a result has no
// JSON form, the operation is stored as done without the result, because an error would
// only make the caller repeat the work.
func (h *Handler[Ev, Re]) neutral(own Re) idem.Response {
	resp, err := h.adapter.Response(own)
	if err != nil {
		return idem.Response{Body: []byte(noForm + err.Error())}
	}
	return resp
}

// noForm is the first byte that is stored for a result that JSON can't hold. No valid JSON begins
// with noForm.
const noForm = "\x00"
