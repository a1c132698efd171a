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

	// Scope is the caller as the program names the caller, in an adapter of its own: equal
	// keys in two scopes are two operations. Scope takes precedence over [Options.Scope],
	// and Options.Scope over Identity. See [Options.CallerFromOp] for Resumable engines.
	Scope string

	// Source names the source of events to which a key belongs, if no caller sends the key:
	// a queue, or a function that is invoked by name. Adapters set Source in place of an
	// Identity. A Source never equals a Scope. Source takes precedence over [Options.Scope].
	Source string

	// Operation distinguishes handlers of one source that get equal keys in one
	// scope. Operation becomes part of the scope, however the scope is found. Empty
	// adds nothing. Adapters set Operation, after [Engine.AddOperation]. HTTP needs
	// none, since method and path are part of the fingerprint.
	Operation string

	// Tenant is the tenant for which AWS Lambda isolates the function, as given by
	// the invocation. Tenant is part of every scope: equal keys of two tenants are two
	// operations. The record stores Tenant, so that no other tenant's
	// function completes the operation. Empty means that there are no tenants.
	Tenant string

	Identity Identity
	// Facts are verified like Identity, but name the caller only if [Options.Scope] chooses
	// them.
	Facts Facts
	// Snapshot lets an adapter restore the verified identity for the handler when
	// the request runs again from its record: claims and contexts, never tokens. The
	// engine stores Snapshot unchanged.
	Snapshot []byte
	Method   string
	Path     string      // as the client sent the path, in one spelling, without a stage
	Query    string      // raw, without "?"
	Route    string      // the matched pattern, for people; never a path, which may name a person
	Host     string      // the requested host; "" means the Host in Header
	Header   http.Header // canonical names; nil is fine
	Body     []byte      // decoded bytes

	// Same, unless nil, replaces Body in the fingerprint: it has the content that stays the
	// same when the request is honestly repeated, as the adapter knows.
	Same []byte

	// Unread is the reason why the adapter, or [Options.KeyFrom], can't read the content of
	// the request: it is not decodable, too large, or lacks what Same takes from it. Such a
	// request begins nothing. It is refused by [ErrIncomparable] if its key is known, and
	// otherwise by Unread. nil: the content is read.
	Unread error

	// Handler names the code that serves the request. The record stores Handler, and
	// only that handler completes the operation ([Engine.Resume]). Adapters set
	// Handler; an empty Function means [Options.Function]. When a request runs again
	// from its record, Handler comes from the record.
	Handler store.HandlerID
	// ReadFirst says that the source marks the request as a repetition, as the receive count
	// of a message does: the engine then reads the record before it claims the key. Adapters
	// set ReadFirst.
	ReadFirst bool
	// DeliveryKey means that Key names a delivery and not the work. After the source has
	// given up, the same work may come back under another key. That is a new operation with
	// new derived keys, which the systems called by the first operation don't know. So the
	// engine refuses a [Foreign] phase, and refuses jobs in any commit but the last
	// ([ErrDeliveryKey]).
	DeliveryKey bool
	// Redelivered means that the source repeats the request until the request is
	// done, so no completer is needed: [Options.Resumable] doesn't store the
	// request, and [KeyGenerate] makes no key.
	Redelivered bool

	// Asynchronous means that nobody waits for the answer, and that the source repeats the
	// request only a few times, soon after a failure. So while another attempt holds the
	// key, the request waits for the end of that attempt's lease, whatever
	// [Options.InFlight] is. The wait uses the request's own time. If the time left then is
	// less than a tenth of that time and less than 30 seconds, the request is refused as in
	// flight: the next retry comes later. Adapters set Asynchronous.
	Asynchronous bool

	// Trace is the trace context that came with a message, for [Options.Tracer]. Adapters
	// set Trace. Default: the trace context in the request's headers.
	Trace trace.Context

	// Answer converts a value of the handler's own response type to a Response, for
	// [Respond] and [Finish]. Adapters set Answer. If nil, only a [Response] is
	// accepted.
	Answer func(v any) (Response, error)
}

// Identity is a request's sender, as verified in front of the handler.
type Identity = store.Identity

// Facts are verified facts about a request, from in front of the handler. A fact may name a
// program, one of several programs, or a person: only the program knows. A function in
// [Options.Scope] makes one of them the caller, such as those of package lambda. All but
// Claims hold no secrets.
type Facts struct {
	// Session is the ARN of an IAM session, such as that of an assumed role:
	// lambda.RoleScope, lambda.SessionScope.
	Session string
	// APIKey is the id, not the value, of the API key that a usage plan has checked:
	// lambda.APIKeyScope.
	APIKey string
	// Issuer and Certificate are the distinguished names of a client certificate's
	// issuer and subject: lambda.CertificateScope.
	Issuer, Certificate string
	// Claims are the claims of the token that an authorizer has verified (JWT, Cognito), or
	// the context that a Lambda authorizer has returned. They have data that Identity leaves
	// out, such as the organisation for which a user acts (lambda.ClaimScope). nil without
	// an authorizer. No record and no log has Claims. The maps may be those of the event: a
	// scope function must not change them.
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
