package idem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

// This file finds the caller of a key. The engine guesses no caller: a keyed request
// without a caller is refused.

type scopeFunc = func(ctx context.Context, r *Request) (string, error)

// scoping decides who is the caller of a key.
type scoping struct {
	scope scopeFunc
	one   bool // all unverified callers share a scope
	all   bool // all callers share a scope
	path  bool // method and path are part of the scope, as the client sent them
}

var errNobody = fmt.Errorf("%w: nobody names the caller", ErrScope)

// callerless is the error for a request for which [Options.Scope] finds no caller.
type callerless struct{ error }

func (c callerless) Unwrap() error { return c.error }

// callerOf returns the caller of r: the name from r.Scope, r.Source or Options.Scope if
// there is one, and otherwise the verified identity. If callers share a scope, callerOf
// returns one caller that stands for all of them.
//
// callerOf refuses a name that isn't UTF-8, because a later attempt would read another
// name from the record. It also refuses a name with U+FFFD, because two callers could
// have the same such name: an event's decoder replaces each half of a surrogate pair by
// U+FFFD.
func (by *scoping) callerOf(ctx context.Context, r *Request) (store.Identity, error) {
	id, err := by.namedCaller(ctx, r)
	if err == nil && (!utf8.ValidString(id.Subject) || strings.ContainsRune(id.Subject, utf8.RuneError)) {
		err = fmt.Errorf("%w: the caller's name is not Unicode, or has U+FFFD in place of what is not", ErrScope)
	}
	return id, err
}

func (by *scoping) namedCaller(ctx context.Context, r *Request) (store.Identity, error) {
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

// nobody(r) returns the reason why r's verified identity isn't a caller, and what to do
// about it.
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

// refusesNobody returns the error with which r is refused after callerOf returned err. If
// err is errNobody, refusesNobody logs why the request has no caller, and adds the reason
// to the error.
func (e *core) refusesNobody(ctx context.Context, r *Request, err error) error {
	if errors.Is(err, errNobody) {
		why := nobody(r)
		e.log.ErrorContext(ctx, "a keyed request has no caller: it is refused", "route", r.Route, "why", why)
		err = fmt.Errorf("%w: %s", ErrScope, why)
	}
	return &Error{Op: "scope", Err: err}
}

// minRandomKey is the length of a key with 128 random bits in base64. If callers share a
// scope, their keys must by default have at least this length.
const minRandomKey = 22
