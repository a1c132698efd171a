package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

// layout is the first part of every partition key, so that records of another
// layout version are never mistaken for ours.
const layout = "v1"

// Whose a key is. Every keyed request has a caller, and nobody is guessed.

// naming finds the name of a key's record.
type naming struct {
	prefix  string   // of every record's key
	claims  scoping  // under which keys are claimed
	besides *scoping // the other one while the scope of keys changes; nil without Options.Former
}

// scopeFunc is [Options.Scope].
type scopeFunc = func(ctx context.Context, r *Request) (string, error)

// scoping decides whose a key is.
type scoping struct {
	scope scopeFunc
	one   bool // callers whom nobody verifies are one
	all   bool // all callers are one
	route bool // the route is part of the scope
	path  bool // method and path are, as the client sent them
}

// errNobody is the error for a request that has no caller.
var errNobody = fmt.Errorf("%w: nobody names the caller", ErrScope)

// callerless is the error for a request that has no caller by [Options.Scope].
type callerless struct{ error }

func (c callerless) Unwrap() error { return c.error }

// callerOf returns the caller of r: the caller whom the program names, or else the
// identity that was verified in front of the handler, or else all callers as one.
func (by *scoping) callerOf(ctx context.Context, r *Request) (store.Identity, error) {
	id := r.Identity
	switch {
	case r.Scope != "":
		return store.Identity{Kind: scope.Program, Subject: r.Scope}, nil
	case r.Source != "":
		return store.Identity{Kind: scope.Source, Subject: r.Source}, nil
	case by.scope != nil:
		text, err := by.scope(ctx, r)
		switch {
		case errors.Is(err, ErrScope):
			return store.Identity{}, callerless{err}
		case err != nil:
			return store.Identity{}, fmt.Errorf("%w: %w", ErrScope, err)
		case text == "":
			return store.Identity{}, callerless{fmt.Errorf("%w: Options.Scope returned an empty one", ErrScope)}
		}
		return store.Identity{Kind: scope.Program, Subject: text}, nil
	case by.all || by.one && id == store.Identity{}:
		return store.Identity{Kind: scope.One}, nil
	}
	if id.Subject != "" && !scope.Reserved(id.Kind) {
		return id, nil
	}
	return store.Identity{}, errNobody
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

// minRandomKey is the length of a key with 128 random bits in base64: the least for
// callers who share a scope.
const minRandomKey = 22

// While the scope of keys changes, a key has two places: two records, of which one at
// most is live. Both are only if the request of one is somebody else's, who has the same
// key in the larger of the two scopes.

// side is one of the two places of a key.
type side struct {
	pk, scope string
	whose     store.Identity
}

// side returns the place of r's key under a scoping with this caller.
func (n *naming) side(r *Request, by *scoping, caller store.Identity) *side {
	text := scope.Append(nil, r.Operation, r.Tenant, caller)
	return &side{pk: string(n.partitionKey(nil, text, r, by)), scope: string(text), whose: caller}
}

// sideOf returns the place of r's key beside pk; nil if there is no other.
func (n *naming) sideOf(ctx context.Context, r *Request, by *scoping, pk string) (*side, error) {
	caller, err := by.callerOf(ctx, r)
	if _, none := errors.AsType[callerless](err); none || errors.Is(err, errNobody) {
		return nil, nil //nolint:nilnil // a program refuses such a request: it has made no record
	}
	if err != nil {
		return nil, &Error{Op: "scope", Err: err}
	}
	s := n.side(r, by, caller)
	if s.pk == pk {
		return nil, nil //nolint:nilnil // the change doesn't concern this request
	}
	return s, nil
}
