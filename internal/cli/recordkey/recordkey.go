// Package recordkey finds the record of a customer's key, for the commands and the
// page of operators.
package recordkey

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// Customer is a key as its client sent it, and whose it is.
type Customer struct {
	Namespace string // of idem.Options
	Key       string // also with spaces, which only a quoted header can have
	Scope     string // as records have it; "one" or "one:" for callers under idem.OneScope
	Route     string // of the request, with idem.Options.ScopeRoute; else ""
}

// Of returns the partition key of the customer's record. An engine makes it, so that it
// is the one of the handlers. The error is that of a key that no handler accepts.
func Of(ctx context.Context, c Customer) (pk string, err error) {
	req := idem.Request{Key: c.Key, Route: c.Route, Method: "POST"}
	if err := whose(&req, c.Scope); err != nil {
		return "", err
	}
	p := &probe{}
	e := idem.New(p, idem.OneScope, func(o *idem.Options) {
		o.Namespace, o.ScopeRoute, o.MinKey, o.Logger = c.Namespace, c.Route != "", 1, slog.New(slog.DiscardHandler)
	})
	do := e.Do
	if strings.Contains(c.Key, " ") {
		req.Header = http.Header{idem.KeyHeader: {`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Key) + `"`}}
		req.Key, do = "", e.Serve
	}
	_, err = do(ctx, req, func(context.Context) (idem.Response, error) { return idem.Response{}, errProbe })
	if p.pk == "" {
		return "", err
	}
	return p.pk, nil
}

// Exact reports whether c names one record: in a namespace, for a caller with its kind.
func (c Customer) Exact() bool {
	_, _, caller, ok := scope.Parse(c.Scope)
	return c.Namespace != "" && (ok && slices.Contains(kinds, caller.Kind) || isOne(c.Scope))
}

// Find returns the partition key of the customer's record; "" without one. Of a Customer
// that isn't exact it looks in every namespace that can be named (that of c, or none and
// those of what waits for people), for every caller: a scope may be the bare subject of a caller, or ""
// for callers whom nobody verifies. Then it reads what waits: those records have their scopes.
func Find(ctx context.Context, s store.Store, c Customer, waiting iter.Seq2[stream.Entry, error]) (pk string, err error) {
	tried := make(map[string]bool)
	try := func(namespace string) (string, error) {
		if tried[namespace] {
			return "", nil
		}
		tried[namespace] = true
		named := c
		for _, named.Scope = range callers(c.Scope) {
			named.Namespace = namespace
			pk, err := Of(ctx, named)
			if err != nil {
				return "", err
			}
			rec, err := s.Load(ctx, pk)
			if rec != nil && (err == nil || errors.Is(err, store.ErrSealed)) {
				return pk, nil
			}
			if err != nil {
				return "", err
			}
		}
		return "", nil
	}
	if pk, err = try(c.Namespace); pk != "" || err != nil || c.Exact() {
		return pk, err
	}
	for one, err := range waiting {
		namespace := state.Namespace(one.PK)
		switch {
		case errors.Is(err, stream.ErrNoIndex):
			return "", nil
		case err != nil:
			return "", err
		case c.Namespace != "" && namespace != c.Namespace:
			continue
		}
		if pk, err := try(namespace); pk != "" || err != nil {
			return pk, err
		}
		rec, err := s.Load(ctx, one.PK)
		switch {
		case rec != nil && c.IsOf(ctx, rec):
			return one.PK, nil
		case err != nil && !errors.Is(err, store.ErrSealed) && !errors.Is(err, store.ErrCorrupt):
			return "", err
		}
	}
	return "", nil
}

// IsOf reports whether a record is the customer's, by the scope that the record has.
func (c Customer) IsOf(ctx context.Context, rec *store.Record) bool {
	for _, c.Route = range []string{"", rec.Route} {
		c.Namespace, c.Scope = state.Namespace(rec.PK), rec.Scope
		if pk, err := Of(ctx, c); err == nil && pk == rec.PK {
			return true
		}
	}
	return false
}

// kinds are those of callers that can be named.
var kinds = []string{"jwt", "iam", "lambda", scope.Program, scope.Source, scope.One}

func isOne(text string) bool { return text[strings.LastIndexByte(text, '|')+1:] == scope.One }

// callers are the scopes that a text may mean: itself, or of a bare subject one of each kind.
func callers(text string) (scopes []string) {
	operation, tenant, caller, ok := scope.Parse(text)
	switch {
	case isOne(text), ok && slices.Contains(kinds, caller.Kind):
		return []string{text}
	case text == "":
		return []string{scope.One}
	case ok: // a subject with a colon
		caller.Kind += ":" + caller.Subject
	}
	for _, kind := range kinds[:len(kinds)-1] {
		scopes = append(scopes, string(scope.Append(nil, operation, tenant, store.Identity{Kind: kind, Subject: caller.Kind})))
	}
	return scopes
}

// whose makes r a request in the scope text.
func whose(r *idem.Request, text string) error {
	operation, tenant, caller, ok := scope.Parse(text)
	if !ok && isOne(text) {
		operation, tenant, caller, ok = scope.Parse(text + ":")
	}
	if !ok {
		return fmt.Errorf("the scope %q has no kind: a scope is program:NAME for what the program names (Options.Scope), jwt:SUBJECT, iam:SUBJECT or "+
			"lambda:SUBJECT for an authorizer's subject, source:NAME for a queue's or a function's, or one for callers whom nobody verifies", text)
	}
	r.Operation, r.Tenant = operation, tenant
	switch caller.Kind {
	case scope.Program:
		r.Scope = caller.Subject
	case scope.Source:
		r.Source = caller.Subject
	case scope.One:
	default:
		r.Identity = caller
	}
	return nil
}

var errProbe = errors.New("only the key was asked for")

// probe is a store that learns the partition key of a claim, and refuses it.
type probe struct{ pk string }

func (p *probe) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	p.pk = c.Next.PK
	return nil, errProbe
}

func (*probe) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errProbe }
func (*probe) Load(context.Context, string) (*store.Record, error)         { return nil, errProbe }
