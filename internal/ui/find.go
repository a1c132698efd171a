package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// Find implements [Source]. A record that isn't in the list is found by its key only: the
// server looks for other names in the list before it asks.
func (t *Table) Find(ctx context.Context, s Search) ([]string, error) {
	pk := s.Any
	if s.Key != "" {
		var err error
		if pk, err = keyOf(ctx, s); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	if strings.Count(pk, "#") != 2 { // no record has such a key
		return nil, nil
	}
	_, ok, err := t.Row(ctx, pk)
	if !ok || err != nil {
		return nil, err
	}
	return []string{pk}, nil
}

var errProbe = errors.New("only the record's key is wanted")

// probe notes the record that an engine asks for.
type probe struct{ pk string }

func (p *probe) Claim(_ context.Context, c store.Claim) (*store.Record, error) {
	p.pk = c.Next.PK
	return nil, errProbe
}

func (*probe) Commit(context.Context, store.Commit) (*store.Record, error) { return nil, errProbe }
func (*probe) Load(context.Context, string) (*store.Record, error)         { return nil, errProbe }

// keyOf is the record's key of a customer's key. The engine itself makes it.
func keyOf(ctx context.Context, s Search) (string, error) {
	p := &probe{}
	engine := idem.New(p, func(o *idem.Options) { o.Namespace, o.Logger = s.Namespace, slog.New(slog.DiscardHandler) })
	_, err := engine.Do(ctx, idem.Request{Key: s.Key, Scope: s.Scope, Method: "POST"}, func(context.Context) (idem.Response, error) {
		return idem.Response{}, errProbe
	})
	if p.pk == "" {
		return "", err // a key that no handler accepts
	}
	return p.pk, nil
}
