package idem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// layout is the first part of every partition key, so that records of another
// layout version are never mistaken for ours.
const layout = "v1"

// scopeOf returns the scope of r: its caller and its operation.
func (e *Engine) scopeOf(ctx context.Context, r *Request) (scope string, anonymous bool, err error) {
	scope, anonymous, err = e.whose(ctx, r)
	if err == nil && r.Operation != "" {
		scope = "operation:" + escapeFirst.Replace(r.Operation) + "|" + scope
	}
	return scope, anonymous, err
}

// whose returns the caller part of the scope. Unverified callers share a scope;
// anonymous means that their credentials distinguish them.
func (e *Engine) whose(ctx context.Context, r *Request) (scope string, anonymous bool, err error) {
	switch {
	case r.Scope != "":
		return r.Scope, false, nil
	case e.opt.Scope != nil:
		scope, err := e.opt.Scope(ctx, r)
		switch {
		case err != nil:
			return "", false, fmt.Errorf("%w: %w", ErrScope, err)
		case scope == "":
			return "", false, fmt.Errorf("%w: Options.Scope returned an empty one", ErrScope)
		}
		return scope, false, nil
	case r.Identity.Kind != "" && r.Identity.Subject == "":
		return "", false, fmt.Errorf("%w: the %s authorizer names no subject; set Options.Scope", ErrScope, r.Identity.Kind)
	case r.Identity.Subject != "":
		return tenantScope(r, r.Identity.Kind+":"+r.Identity.Subject), false, nil
	case e.opt.oneScope:
		return tenantScope(r, ""), false, nil
	}
	e.unscoped.Do(func() {
		e.log.WarnContext(ctx, "requests carry no verified identity: callers are told apart by what they present, and refused once "+
			"that has changed; set Options.Scope, or idem.OneScope", "route", r.Route)
	})
	return tenantScope(r, ""), true, nil
}

// escapeFirst ensures that the first "|" of a scope ends its first part.
var escapeFirst = strings.NewReplacer("%", "%25", "|", "%7C")

// tenantScope puts scope below the request's tenant.
func tenantScope(r *Request, scope string) string {
	if r.Tenant == "" {
		return scope
	}
	return "tenant:" + escapeFirst.Replace(r.Tenant) + "|" + scope
}

// partitionKey appends the record's key. The key has a fixed length, is evenly
// distributed and hides the client's key. Length prefixes keep a key from
// reaching into another scope.
func (e *Engine) partitionKey(b []byte, scope string, r *Request, more ...string) []byte {
	buf := appendPart(make([]byte, 0, 256), scope)
	buf = appendPart(buf, r.Key)
	if e.opt.ScopeRoute {
		buf = appendPart(buf, r.Route)
	}
	for _, part := range more {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	return base64.RawURLEncoding.AppendEncode(append(b, e.prefix...), sum[:])
}

func appendPart(buf []byte, part string) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(part)))
	return append(buf, part...)
}

// OneScope treats all unverified callers as one caller, for public routes and for
// routes that check credentials which change between retries. Those callers see
// each other's answers if they know the key and the request. Callers with a
// verified identity stay apart, and so do tenants.
//
//	idem.New(store, idem.OneScope)
//
// OneScope changes no key: records claimed without OneScope are found with it.
func OneScope(o *Options) { o.oneScope = true }
