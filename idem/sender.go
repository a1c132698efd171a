package idem

import (
	"context"
	"net/http"

	"github.com/samekey/samekey/internal/base/scope"
)

// The type verified holds what an adapter has verified about a request.
type verified struct {
	identity Identity
	facts    Facts
	tenant   string
}

type verifiedKey struct{}

// WithSender returns a context that carries r's verified sender: Identity, Facts and
// Tenant. An [Engine.Middleware] or [Engine.StatusHandler] that runs under this context
// uses the sender, since an http.Request contains no verified sender. An empty Identity
// means that nobody has verified the sender. Adapters call WithSender for handlers
// without an engine. An engine gives its handler's context the sender by itself, also
// for a request on which the engine doesn't act.
func WithSender(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, verifiedKey{}, r.sender())
}

func (r *Request) sender() verified { return verified{r.Identity, r.Facts, r.Tenant} }

// hasSender reports whether an adapter has verified anything about r's sender.
func (r *Request) hasSender() bool {
	f := &r.Facts
	return r.Identity != Identity{} || r.Tenant != "" || f.Session != "" || f.APIKey != "" || f.Issuer != "" || f.Certificate != "" || len(f.Claims) > 0
}

// verifiedIn returns what an adapter has verified about the request of ctx.
func verifiedIn(ctx context.Context) verified {
	v, _ := ctx.Value(verifiedKey{}).(verified)
	return v
}

// httpRequest returns r as a Request, with the given body and the sender in r's
// context.
func httpRequest(r *http.Request, body []byte) Request {
	from := verifiedIn(r.Context())
	return Request{
		Method: r.Method, Path: scope.Path(sentPath(r)), Query: r.URL.RawQuery, Route: r.Pattern, Host: r.Host, Header: r.Header, Body: body,
		Identity: from.identity, Facts: from.facts, Tenant: from.tenant,
	}
}
