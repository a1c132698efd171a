package ui

import (
	"context"
	"fmt"
	"strings"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/cli/recordkey"
	"github.com/samekey/samekey/internal/cli/tablescan"
	"github.com/samekey/samekey/internal/state"
)

// Find implements [Source]. A record that isn't in the list is found by its key only: the
// server looks for other names in the list before it asks.
func (t *Table) Find(ctx context.Context, s Search) ([]string, error) {
	if s.Key != "" {
		return t.byKey(ctx, recordkey.Customer{Namespace: s.Namespace, Key: s.Key, Scope: s.Scope}, s.Scan)
	}
	pk := s.Any
	if strings.Count(pk, "#") != 2 { // no record has such a key
		return nil, nil
	}
	_, ok, err := t.Row(ctx, pk)
	if !ok {
		return nil, err
	}
	return []string{pk}, nil
}

// byKey is the search of samekey get --key.
func (t *Table) byKey(ctx context.Context, c recordkey.Customer, scan bool) ([]string, error) {
	if _, err := recordkey.Of(ctx, recordkey.Customer{Key: c.Key, Scope: "one"}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if scan {
		pk, err := tablescan.Find(ctx, t.client, tablescan.Options{Table: t.store.Table().Name, PagesPerSecond: t.opt.PagesPerSecond}, tablescan.Wanted{Match: func(r *store.Record) bool {
			return (c.Namespace == "" || c.Namespace == state.Namespace(r.PK)) && c.IsOf(ctx, r)
		}})
		if pk == "" {
			return nil, t.said(err)
		}
		return []string{pk}, nil
	}
	pk, err := recordkey.Find(ctx, t.store, c, stream.NewWaiting(t.client, t.store).All(ctx))
	if pk == "" {
		return nil, t.said(err)
	}
	return []string{pk}, nil
}
