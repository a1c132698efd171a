package ui

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
)

// Find implements [Source]. It finds records by partition key, client's key or caller.
// It doesn't search for short names, because the server looks for them in the list
// before it calls Find.
func (t *Table) Find(ctx context.Context, s Search) (*Found, error) {
	if s.Key != "" || s.Caller {
		return t.byKey(ctx, s)
	}
	pk := s.Any
	if strings.Count(pk, "#") != 2 { // not a partition key: every partition key contains two "#"
		return &Found{Only: "the record is not in the list: give the record's whole partition key"}, nil
	}
	_, ok, err := t.Row(ctx, pk)
	if !ok || err != nil {
		return &Found{}, err
	}
	return &Found{PKs: []string{pk}}, nil
}

// byKey searches for a client's key, as "samekey get --key" does. If s.Caller is true,
// it searches for the records of a caller, as "samekey list --caller" does.
func (t *Table) byKey(ctx context.Context, s Search) (*Found, error) {
	c := records.Customer{Namespace: cmp.Or(s.Namespace, t.opt.Namespace), Only: s.Namespace != "", Key: s.Key, Scope: s.Scope}
	if s.Caller && strings.TrimSpace(s.Scope) == "" {
		return nil, fmt.Errorf("%w: no caller: give a scope or a subject", ErrRefused)
	}
	if err := c.Check(ctx); err != nil && !s.Caller {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	found := &Found{}
	add := func(records []*store.Record) {
		for _, r := range records {
			found.PKs = append(found.PKs, r.PK)
		}
	}
	if !s.Scan {
		records, err := records.FindKey(ctx, t.store, c, stream.NewWaiting(t.client, t.store).All(ctx))
		add(records)
		found.Only = "only the records of known callers and of waiting operations were compared: scan the table to compare all records"
		return found, t.said(err)
	}
	all, err := records.Search(ctx, t.client, t.store, records.ScanOptions{Table: t.store.Table().Name, PagesPerSecond: t.opt.PagesPerSecond}, c, time.Time{})
	if err != nil {
		return nil, t.said(err)
	}
	add(all.Records)
	if found.Only = all.Untold(records.NoCaller); found.Only == "" && len(found.PKs) == 0 {
		found.Only = "No record matches; all records were compared."
	}
	return found, nil
}
