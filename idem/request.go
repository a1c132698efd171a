package idem

import (
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/trace"
)

// Request is a request in a form that is independent of the transport.
type Request struct {
	// Key is the idempotency key. [Engine.Serve] takes it from the header;
	// callers of [Engine.Do] set it.
	Key string

	// Scope is the caller's name, set by a custom adapter: equal keys in two scopes are two
	// operations. Scope takes precedence over [Options.Scope], and Options.Scope over
	// Identity. For Resumable engines see [Options.CallerFromOp].
	Scope string

	// Source names the key's source (a queue, or a function that is invoked by name), if
	// no caller sends the key. Adapters set Source in place of an Identity. A Source never
	// equals a Scope. Source takes precedence over [Options.Scope].
	Source string

	// Operation distinguishes handlers that get equal keys from one source in one scope.
	// Operation becomes part of the scope, however the scope is found; an empty Operation
	// adds nothing. Adapters set Operation after [Engine.AddOperation]. HTTP requests need
	// no Operation, since method and path are part of the fingerprint.
	Operation string

	// Tenant is the invocation's tenant, if AWS Lambda isolates the function's tenants.
	// Tenant is part of every scope: equal keys of two tenants are two operations. The
	// record stores Tenant, and only a function of the same tenant completes the
	// operation. Empty means that there are no tenants.
	Tenant string

	Identity Identity
	// Facts are verified like Identity. Facts name the caller only if [Options.Scope] uses
	// them.
	Facts Facts
	// Snapshot lets an adapter restore the verified identity when the request runs again
	// from its record. Snapshot may hold claims and contexts, never tokens. The engine
	// stores Snapshot unchanged.
	Snapshot []byte
	Method   string
	Path     string      // the path that the client sent, in one spelling, without a stage
	Query    string      // raw, without "?"
	Route    string      // the matched pattern, for people; never a path, which may name a person
	Host     string      // the requested host; "" means the Host in Header
	Header   http.Header // canonical names; nil is fine
	Body     []byte      // decoded bytes

	// Same, unless nil, replaces Body in the fingerprint. Same is the part of the content
	// that doesn't change when an honest client repeats the request. Adapters and
	// [Options.KeyFrom] set Same.
	Same []byte

	// Unread is the reason why the adapter, or [Options.KeyFrom], can't read the content
	// of the request: the content can't be decoded, is too large, or lacks the part for
	// Same. A request with Unread never begins an operation. If the key is known, the
	// request is refused with [ErrIncomparable], and otherwise with Unread. Nil means that
	// the content could be read.
	Unread error

	// Handler names the code that serves the request. The record stores Handler, and only
	// that handler completes the operation ([Engine.Resume]). Adapters set Handler. If
	// Handler.Function is empty, [Options.Function] is used. When a request runs again from
	// its record, Handler comes from the record.
	Handler store.HandlerID
	// ReadFirst says that the source marks the request as a repetition, such as by the
	// receive count of a message. The engine then reads the record before it claims the key.
	// Adapters set ReadFirst.
	ReadFirst bool
	// DeliveryKey means that Key names a delivery and not the work. After the source has
	// given up, the same work may come back under another key, as a new operation with new
	// derived keys. The systems that the first operation called don't know the new keys. So
	// the engine refuses a [Foreign] phase, and refuses jobs in any commit but the last
	// ([ErrDeliveryKey]).
	DeliveryKey bool
	// Redelivered means that the source repeats the request until the request is done. No
	// completer is needed, so an engine with [Options.Resumable] doesn't store the request.
	// [KeyGenerate] makes no key for the request.
	Redelivered bool

	// Asynchronous means that nobody waits for the answer, and that the source repeats the
	// request only a few times, soon after a failure. So if another attempt holds the key,
	// the request waits for the end of that attempt's lease, whatever [Options.InFlight]
	// is. The wait uses the request's own time. If too little time remains after the wait
	// (less than 30 seconds, and less than a tenth of the request's whole time), the
	// request is refused as in flight; the source then retries. Adapters set Asynchronous.
	Asynchronous bool

	// Trace is the trace context that came with a message, for [Options.Tracer]. Adapters
	// set Trace. Default: the trace context in the request's headers.
	Trace trace.Context

	// Answer converts a value of the handler's own response type to a Response, for
	// [Respond] and [Finish]. Adapters set Answer. If Answer is nil, only a [Response] is
	// accepted.
	Answer func(v any) (Response, error)
}

// Identity is a request's sender, verified in front of the handler.
type Identity = store.Identity

// Facts are facts about a request that were verified in front of the handler. A fact may
// name a program, a group of programs, or a person: only the application knows which. A
// function in [Options.Scope] can make a fact the caller; package lambda has such
// functions, named below. Except for Claims, no fact holds a secret.
type Facts struct {
	// Session is the ARN of an IAM session, such as a session of an assumed role. Its
	// scope functions are lambda.RoleScope and lambda.SessionScope.
	Session string
	// APIKey is the id, not the value, of the API key that a usage plan has checked. Its
	// scope function is lambda.APIKeyScope.
	APIKey string
	// Issuer and Certificate are the distinguished names of a client certificate's issuer
	// and subject. Their scope function is lambda.CertificateScope.
	Issuer, Certificate string
	// Claims are the claims of the token that an authorizer has verified (JWT, Cognito),
	// or the context that a Lambda authorizer has returned. They include data that
	// Identity lacks, such as the organisation for which a user acts (lambda.ClaimScope).
	// Claims is nil without an authorizer. Records and logs never contain Claims. The maps
	// may belong to the event: a scope function must not change them.
	Claims map[string]any
}

// response converts an answer of a handler or a phase to a Response.
func (r *Request) response(v any) (Response, error) {
	resp, ok := v.(Response)
	switch {
	case ok:
	case r.Answer == nil:
		return Response{}, fmt.Errorf("%w: a %T is no idem.Response", ErrResult, v)
	default:
		var err error
		if resp, err = r.Answer(v); err != nil {
			return Response{}, fmt.Errorf("%w: %w", ErrResult, err)
		}
	}
	return resp, checkStatus(&resp)
}
