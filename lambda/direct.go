package lambda

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
)

// Direct adapts events of one's own, for functions that are invoked by their
// name, synchronously or not: by the SDK, Step Functions, a schedule, a pipe, or
// a rule with an input of its own. key finds the key in the event. Only the two
// types have to be written out:
//
//	pay := lambda.Wrap(engine, lambda.Direct[Order, Receipt](func(o Order) (string, error) { return o.ID, nil }), charge)
//
// The first invocation's result is stored as JSON, and every later one with the
// same key and payload gets the same bytes. What must be the same is the whole
// payload, byte for byte ([Handler.Handle], which has none, makes it by
// json.Marshal); where callers may spell it differently, set
// [idem.Fingerprint.CanonicalJSON]. The scope is the function (each alias of it
// for itself, all versions together) and the tenant, where Lambda isolates
// tenants, or what [DirectOptions] says; and the handler's name, if it has one
// ([HandlerOptions.Operation]). One handler of an engine may be without.
//
// An event for which key returns "" and no error has no key. As over HTTP,
// [idem.Options.Key] says what becomes of it: it is refused, it runs each time
// ([idem.KeyOptional]), or it gets a key that nobody else knows
// ([idem.KeyGenerate]), so that handlers with phases run; when Lambda or the caller
// invokes again, they run again. An error of key refuses the event whatever the
// mode.
//
// # Errors
//
// An error of the handler frees the key and is returned as it is. What the
// engine refuses is an error too, which [errors.Is] knows from [Handler.Handle].
// Lambda reports it with one of these as its errorType:
//
//	IdempotencyInFlight          another invocation works on it: invoke again, with a delay
//	IdempotencyLeaseLost         another invocation has taken over: invoke again
//	IdempotencyNoTimeLeft        nothing was done: invoke again
//	IdempotencyStoreUnavailable  what is known of the key can't be read: invoke again
//	IdempotencyKeyMissing        nothing was done: the payload names no key, which idem.KeyRequired demands
//	IdempotencyKeyInvalid        nothing was done: as key says, or not 1 to 255 visible ASCII characters
//	IdempotencyKeyMismatch       nothing was done: the key was used with another payload
//	IdempotencyScopeUnknown      nothing was done: DirectOptions.Scope failed
//	IdempotencyRequestInvalid    nothing was done: the fingerprint can't be made
//	IdempotencyKeyExpired        it was done, and the result is no longer kept
//	IdempotencyAnswerNotKept     it was done, and the result was larger than idem.Options.MaxBody, or has no JSON form
//	IdempotencyStuck             it waits for an operator
//	IdempotencyRecordCorrupt     an operator must look at the record
//	IdempotencySecretMissing     an operator must configure the fingerprint's secret
//
// Asynchronous invocations can't tell Lambda which errors are worth a retry: it
// makes as many as the function's MaximumRetryAttempts for each of them, after
// one minute and then two, which is long enough for the first four to go away,
// and in vain for the rest. Then it hands the event to the failure destination;
// there should be one.
//
// # Keys in the payload
//
// key may also be a [BodyKey], which reads the payload itself, also what In leaves out:
//
//	pay := lambda.Wrap(engine, lambda.Direct[Order, Receipt](lambda.JSONKey("/order/id")), charge)
//
// Direct panics if key is nil.
func Direct[In, Out any, Key func(In) (string, error) | BodyKey](key Key, optFns ...func(*DirectOptions[In])) Adapter[In, Out] {
	var find func(In, *idem.Request) (string, error)
	switch key := any(key).(type) {
	case func(In) (string, error):
		if key != nil {
			find = func(in In, _ *idem.Request) (string, error) { return keyOf(key(in)) }
		}
	case BodyKey:
		if key.Key != nil {
			find = func(_ In, req *idem.Request) (string, error) { return key.From(req) }
		}
	}
	if find == nil {
		panic("lambda: Direct: key is nil") //nolint:forbidigo // a mistake in the program
	}
	var opt DirectOptions[In]
	for _, fn := range optFns {
		fn(&opt)
	}
	ownScope := opt.Scope != nil
	if !ownScope {
		opt.Scope = func(ctx context.Context, _ In) (string, error) { return functionScope(ctx), nil }
	}
	return Adapter[In, Out]{
		typed:    true,
		ownScope: ownScope,
		Request:  func(ctx context.Context, in In) (idem.Request, error) { return directRequest(ctx, in, find, opt.Scope) },
		Event:    directEvent[In],
		Response: directResponse[Out],
		Reply:    directReply[Out],
	}
}

// DirectOptions vary [Direct].
type DirectOptions[In any] struct {
	// Scope says whose key it is: equal keys of two scopes are two operations.
	// It must rest on verified facts; an error refuses the event. It takes the place of
	// the function, so the handler must have a name ([HandlerOptions.Name]), which tells
	// its keys from those of other functions on the table: [Wrap] panics without.
	// Default: the function and the tenant it is invoked for.
	Scope func(ctx context.Context, in In) (string, error)
}

// functionScope is the scope of what is given to this function only, and to it
// for one tenant only where Lambda isolates them.
func functionScope(ctx context.Context) string {
	scope := "function:" + lambdacontext.FunctionName
	if arn := functionARN(ctx); arn != "" {
		scope = arn
	}
	if tenant := tenantOf(ctx); tenant != "" {
		scope = join(tenant, scope)
	}
	return scope
}

func directRequest[In any](ctx context.Context, in In, key func(In, *idem.Request) (string, error), scope func(context.Context, In) (string, error)) (idem.Request, error) {
	req := idem.Request{Route: "direct", Header: jsonHeader()}
	var err error
	if req.Body = payloadFrom(ctx); req.Body == nil {
		if req.Body, err = json.Marshal(in); err != nil {
			return req, &idem.Error{Op: "request", Err: fmt.Errorf("%w: %w", idem.ErrRequest, err)}
		}
	}
	req.Scope, err = scope(ctx, in)
	switch {
	case err != nil:
		return req, &idem.Error{Op: "scope", Err: fmt.Errorf("%w: %w", idem.ErrScope, err)}
	case req.Scope == "":
		return req, &idem.Error{Op: "scope", Err: fmt.Errorf("%w: DirectOptions.Scope returned an empty one", idem.ErrScope)}
	}
	req.Key, err = key(in, &req)
	return req, err
}

func directEvent[In any](req idem.Request) (in In, err error) {
	if err := json.Unmarshal(req.Body, &in); err != nil {
		return in, fmt.Errorf("lambda: %w: the stored payload: %w", idem.ErrCorrupt, err)
	}
	return in, nil
}

func directResponse[Out any](out Out) (idem.Response, error) {
	body, err := encode(out)
	return idem.Response{Header: jsonHeader(), Body: body}, err
}

// directReply is for who calls it: [Handler] reads stored results itself, and
// reports what it can't read.
func directReply[Out any](r idem.Response) Out {
	out, _ := decodeResult[Out](r.Body)
	return out
}

func decodeResult[Out any](body []byte) (out Out, err error) {
	if len(body) == 0 {
		return out, nil // a phase answered without a result
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("lambda: %w: the stored result is no %T: %w", idem.ErrCorrupt, out, err)
	}
	return out, nil
}

type payloadKey struct{}

// withPayload lets an adapter see an event as it came: it may hold more than the
// type it is decoded to can give back.
func withPayload(ctx context.Context, payload []byte) context.Context {
	return context.WithValue(ctx, payloadKey{}, payload)
}

func payloadFrom(ctx context.Context) []byte {
	payload, _ := ctx.Value(payloadKey{}).([]byte)
	return payload
}
