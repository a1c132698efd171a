// Package recordkey finds the record of a customer's key, for the commands and the
// page of operators.
package recordkey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
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

// whose makes r a request in the scope text.
func whose(r *idem.Request, text string) error {
	operation, tenant, caller, ok := scope.Parse(text)
	if last := text[strings.LastIndexByte(text, '|')+1:]; !ok && last == scope.One {
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
