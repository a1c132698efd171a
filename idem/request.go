package idem

import (
	"context"
	"net/http"

	"github.com/samekey/samekey/idem/store"
)

// Request is one request in a form that no transport shows through.
type Request struct {
	// Key is the idempotency key. [Engine.Serve] takes it from the header;
	// callers of [Engine.Do] set it.
	Key string

	// Scope separates tenants: equal keys of two scopes are two operations.
	// Empty means that [Options.Scope], else Tenant and Identity decide.
	Scope string

	// Operation tells apart what several handlers of one source do with equal keys
	// of one scope: it becomes part of the scope, whatever that is made of. Empty
	// adds nothing. Adapters set it, after [Engine.AddOperation]. HTTP needs none,
	// since method and path are part of the fingerprint.
	Operation string

	// Tenant is for whom a function runs that AWS Lambda isolates by tenant, as
	// the invocation says it. It is part of the default scope: equal keys of two
	// tenants are two operations. The record keeps it, so that nobody completes the
	// operation for another. Empty means that there are no tenants.
	Tenant string

	Identity Identity
	// Snapshot is what an adapter needs to put the verified identity back where
	// the handler reads it, when the request is run again from its record: claims
	// and contexts, never tokens. The engine stores it as it is.
	Snapshot []byte
	Method   string
	Path     string      // as the client sent it, without a stage
	Query    string      // raw, without "?"
	Route    string      // the pattern that matched, for people and [Options.ScopeRoute]
	Host     string      // that the client asked for; "" is the Host in Header
	Header   http.Header // canonical names; nil is fine
	Body     []byte      // decoded bytes

	// Same, unless it is nil, is compared in place of Body: what an adapter knows to
	// be the same each time the request is honestly repeated.
	Same []byte

	// Handler names the code that serves the request: the record keeps it, and
	// nobody else completes it ([Engine.Resume]). Adapters set it; its Function may
	// be left empty, for [Options.Function]. Of a request that is run again from its
	// record it is what the record says.
	Handler store.HandlerID
	// ReadFirst looks before it claims, for this request as [Options.ReadFirst]
	// does for all.
	ReadFirst bool
	// DeliveryKey says that Key names a delivery and not the work: whoever brings the
	// request back once its source has given up, brings it with another key. That is
	// a new operation, with new derived keys, of which the systems that the first one
	// has called know nothing. So a [Foreign] phase is refused, and a commit that
	// stages jobs and isn't the last ([ErrDeliveryKey]).
	DeliveryKey bool
	// Redelivered says that the request's source brings it again until it is
	// done, so nobody else has to complete it: [Options.Resumable] doesn't store it,
	// and [KeyGenerate] makes no key for it.
	Redelivered bool

	// Answer makes a Response of the handler's own response type, for [Respond]
	// and [Finish]. Adapters set it; nil takes a [Response] only.
	Answer func(v any) (Response, error)
}

// Identity is who sent a request, as verified by what stands before the handler.
type Identity = store.Identity

// ScopeFunc finds the scope of a request. It must rest on verified facts only:
// a scope that clients can choose hands them other tenants' answers.
// An error or an empty scope refuses the request ([ErrScope]) before anything is
// stored, since a caller it can't name may be anybody.
type ScopeFunc func(ctx context.Context, r *Request) (string, error)
