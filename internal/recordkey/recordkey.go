// Package recordkey finds the record of a customer's key, for the commands and the
// page of operators.
package recordkey

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Customer is a key as its client sent it, and whose it is.
type Customer struct {
	Namespace string // of idem.Options
	Key       string // also with spaces, which only a quoted header can have
	Scope     string // "none" or "" for callers without a verified identity
	Route     string // of the request, with idem.Options.ScopeRoute; else ""
}

// Of returns the partition key of the customer's record. An engine makes it, so that it
// is the one of the handlers. The error is that of a key that no handler accepts.
func Of(ctx context.Context, c Customer) (pk string, err error) {
	p := &probe{}
	e := idem.New(p, func(o *idem.Options) {
		o.Namespace, o.ScopeRoute, o.Logger = c.Namespace, c.Route != "", slog.New(slog.DiscardHandler)
	})
	req := idem.Request{Key: c.Key, Scope: c.Scope, Route: c.Route, Method: "POST"}
	if c.Scope == "none" {
		req.Scope = ""
	}
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

var errProbe = errors.New("only the key was asked for")

// probe is a store that learns the partition key of a claim, and refuses it.
type probe struct{ pk string }

func (p *probe) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	p.pk = c.Next.PK
	return nil, errProbe
}

func (*probe) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errProbe }
func (*probe) Load(context.Context, string) (*store.Record, error)         { return nil, errProbe }
