package idem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/scope"
)

// layout is the first part of every partition key, so that records of another
// layout version are never mistaken for ours.
const layout = "v1"

// Whose a key is. Every keyed request has a caller, and nobody is guessed.

// callerOf returns the caller of r: the caller whom the program names, or else the
// identity that was verified in front of the handler, or else all callers as one.
func (e *Engine) callerOf(ctx context.Context, r *Request) (store.Identity, error) {
	id := r.Identity
	switch {
	case r.Scope != "":
		return store.Identity{Kind: scope.Program, Subject: r.Scope}, nil
	case r.Source != "":
		return store.Identity{Kind: scope.Source, Subject: r.Source}, nil
	case e.opt.Scope != nil:
		text, err := e.opt.Scope(ctx, r)
		switch {
		case err != nil:
			return store.Identity{}, fmt.Errorf("%w: %w", ErrScope, err)
		case text == "":
			return store.Identity{}, fmt.Errorf("%w: Options.Scope returned an empty one", ErrScope)
		}
		return store.Identity{Kind: scope.Program, Subject: text}, nil
	case id == store.Identity{} && e.opt.oneScope:
		return store.Identity{Kind: scope.One}, nil
	}
	if id.Subject != "" && !scope.Reserved(id.Kind) {
		return id, nil
	}
	why := nobody(r)
	e.log.ErrorContext(ctx, "a keyed request has no caller: it is refused", "route", r.Route, "why", why)
	return store.Identity{}, fmt.Errorf("%w: %s", ErrScope, why)
}

// nobody returns why r's verified identity is no caller, with the cures.
func nobody(r *Request) string {
	switch id := r.Identity; {
	case r.Facts.Session != "" && id.Subject == "":
		return "the caller is a session of a role: whoever assumes the role chooses the session's name, and other callers may share the role; " +
			"set Options.Scope to lambda.RoleScope (all sessions of a role are one caller, for services) or to lambda.SessionScope (each " +
			"session's name is a caller, for people)"
	case id.Kind == "" && id.Subject == "":
		return "nobody has verified the caller; add an authorizer, set Options.Scope (lambda.APIKeyScope and lambda.CertificateScope are " +
			"scopes for API keys and client certificates), or use idem.OneScope if the route is public"
	case id.Subject == "":
		return "the " + id.Kind + " authorizer names no subject; set Options.Scope"
	default:
		return fmt.Sprintf("no adapter may use the kind %q in Request.Identity", id.Kind)
	}
}

// OneScope treats all callers that nobody verifies as one caller, for public routes:
//
//	idem.New(store, idem.OneScope)
//
// Those callers see each other's answers if they know the key and the request, so
// their keys must be random: without [Options.MinKey] at least 22 characters. Only
// with [Options.StatusURL] is there a status resource for them, since it needs the
// key alone. Callers with a verified identity stay apart, and so do tenants.
// OneScope has no effect beside [Options.Scope].
func OneScope(o *Options) { o.oneScope = true }

// minRandomKey is the length of a key with 128 random bits in base64: the least for
// callers who share a scope.
const minRandomKey = 22

// completable refuses a request whose caller the program found, and that a completer
// would run for a caller that its handler doesn't know.
func (e *Engine) completable(r *Request, caller store.Identity) error {
	if caller.Kind != scope.Program || !e.opt.Resumable || e.opt.CallerFromOp || r.Redelivered {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrScope, callerFromOp)
}

const callerFromOp = "Resumable with a scope that the program finds: a completer has no client's request to find it in; " +
	"let the handlers take the caller from Op.Caller, and set Options.CallerFromOp"

// partitionKey appends the record's key. The key has a fixed length, is evenly
// distributed and hides the client's key. Length prefixes keep a key from
// reaching into another scope.
func (e *Engine) partitionKey(b, text []byte, r *Request, more ...string) []byte {
	buf := appendPart(make([]byte, 0, 256), text)
	buf = appendPart(buf, r.Key)
	if e.opt.ScopeRoute {
		buf = appendPart(buf, operationRoute(r))
	}
	for _, part := range more {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	return base64.RawURLEncoding.AppendEncode(append(b, e.prefix...), sum[:])
}

func appendPart[T string | []byte](buf []byte, part T) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(part)))
	return append(buf, part...)
}
