package idem

import (
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/trace"
)

// Request is a request in a form that is independent of the transport.
type Request struct {
	// Key is the idempotency key. If Key is empty, [Engine.Serve] finds the key by
	// [Options.KeyFrom] or in the header. A program that calls [Engine.Do] sets Key
	// itself.
	Key string

	// Scope is the caller's name, set by a custom adapter. Equal keys in two scopes are
	// two operations. Scope takes precedence over [Options.Scope], which takes precedence
	// over Identity. If [Options.Resumable] is set, see [Options.CallerFromOp].
	Scope string

	// Source names the key's origin if no caller sends the key: a message's queue, for
	// example, or a function that is invoked by name. Adapters then set Source and no
	// Identity. Source takes precedence over [Options.Scope]. A key of a Source and an
	// equal key of a Scope are always two operations.
	Source string

	// Operation distinguishes the handlers that get equal keys from one source in one
	// scope. Operation becomes part of the scope, whichever field or option gives the
	// scope. An empty Operation adds nothing to the scope. Adapters register an Operation
	// by [Engine.AddOperation] before they set it. HTTP requests need no Operation,
	// because method and path are part of the fingerprint.
	Operation string

	// Tenant is the invocation's tenant, if AWS Lambda isolates the function's tenants.
	// Tenant is part of every scope: equal keys of two tenants are two operations. The
	// record stores Tenant, and only a function of the same tenant completes the operation.
	// An empty Tenant means that the function has no tenants.
	Tenant string

	Identity Identity
	// Facts are verified like Identity. Facts name the caller only if [Options.Scope] uses
	// them.
	Facts Facts
	// Snapshot lets an adapter restore the verified identity when the request runs again
	// from its record. Snapshot may hold the claims of a token or the context of an
	// authorizer, but never a token. The engine stores Snapshot unchanged.
	Snapshot []byte
	Method   string
	Path     string      // the path that the client sent, without the API's stage and with all escapes normalised
	Query    string      // raw, without "?"
	Route    string      // the pattern that the path matched; shown to people, so never the path, which may contain a person's name
	Host     string      // the requested host; "" means the Host in Header
	Header   http.Header // under canonical names; may be nil
	Body     []byte      // decoded bytes

	// Same is the part of the content that doesn't change when an honest client repeats the
	// request. If Same isn't nil, the fingerprint has Same in place of Body. Adapters and
	// [Options.KeyFrom] set Same.
	Same []byte

	// Unread is the reason why the adapter, or [Options.KeyFrom], can't read the content:
	// the content can't be decoded, is too large, or lacks the part for the field Same.
	// Unread is nil if the content could be read. A request with Unread never begins an
	// operation. The request is refused with [ErrIncomparable] if its key has a record,
	// and otherwise with Unread.
	Unread error

	// Handler names the code that serves the request. The record stores Handler, and only
	// that handler completes the operation ([Engine.Resume]). Adapters set Handler. If
	// Handler.Function is empty, [Options.Function] is used. When a request runs again from
	// its record, Handler comes from the record.
	Handler store.HandlerID
	// ReadFirst says that the source marks the request as a repetition, for example by a
	// message's receive count above one. The engine then reads the record before it claims
	// the key. Adapters set ReadFirst.
	ReadFirst bool
	// DeliveryKey means that Key names a delivery and not the work. After the source
	// has given up, the same work may come back under another key. It is then a new
	// operation with new derived keys, so other systems would carry out the same calls
	// again. Therefore the engine refuses [Foreign] phases, and refuses jobs in every
	// commit except the last ([ErrDeliveryKey]). It refuses neither if the record was
	// claimed without DeliveryKey.
	DeliveryKey bool
	// Redelivered means that the source repeats the request until the request is done. So
	// the operation needs no completer, and an engine with [Options.Resumable] doesn't
	// store the request. [KeyGenerate] makes no key for the request, because each
	// repetition would get another key.
	Redelivered bool

	// Asynchronous means that nobody waits for the answer, and that the source repeats the
	// request only a few times, soon after a failure. While another attempt holds the key,
	// such a repetition would come too early. So the request waits for the end of that
	// attempt's lease, whatever [Options.InFlight] is. The wait takes up a part of the
	// request's own time.
	//
	// After the wait, the request may have to run the handler itself. It is refused as in
	// flight if too little time is left: less than 30 seconds, and less than a tenth of
	// the time that was left before the wait. The source then retries. Adapters set
	// Asynchronous.
	Asynchronous bool

	// Trace is the trace context of the request, for [Options.Tracer]. Adapters set
	// Trace if the context came with a message. Default: the trace context in the
	// request's headers; none if Redelivered is set.
	Trace trace.Context

	// Answer converts a value of the handler's own response type to a Response, for
	// [Respond] and [Finish]. Adapters set Answer. If Answer is nil, only a [Response] is
	// accepted.
	Answer func(v any) (Response, error)
}

// Identity is a request's sender. An authorizer or IAM verified the sender before the
// handler got the request.
type Identity = store.Identity

// Facts hold what was verified about a request before the handler got it, besides the
// Identity. A fact may name a program, a group of programs, or a person: only the
// application knows which. To take the caller from a fact, set [Options.Scope] to a
// function that does so. Package lambda has such functions; they are named below.
// Claims may hold secrets; the other facts hold none.
type Facts struct {
	// Session is the ARN of an IAM session, such as a session of an assumed role.
	// lambda.RoleScope and lambda.SessionScope take the caller from Session.
	Session string
	// APIKey is the id, not the value, of the API key that a usage plan has checked.
	// lambda.APIKeyScope takes the caller from APIKey.
	APIKey string
	// Issuer and Certificate are the distinguished names of a client certificate's issuer
	// and subject. lambda.CertificateScope takes the caller from them.
	Issuer, Certificate string
	// Claims are the claims of the token that an authorizer has verified (JWT, Cognito),
	// or the context that a Lambda authorizer has returned. Claims is nil without an
	// authorizer. Claims include data that Identity lacks, such as the organisation for
	// which a user acts. lambda.ClaimScope takes the caller from a claim.
	//
	// The engine itself never writes Claims to a record or a log. But if
	// [Options.Resumable] is set, an adapter may put Claims into Snapshot, without tokens,
	// and the record stores Snapshot. A scope function must not change Claims or the maps
	// in it, because they may belong to the event.
	Claims map[string]any
}

// Request.response converts an answer of a handler or a phase to a Response.
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
