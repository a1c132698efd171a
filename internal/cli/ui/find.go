package ui

import (
	"context"
	"fmt"
	"strings"

	"github.com/samekey/samekey/internal/cli/recordkey"
)

// Find implements [Source]. A record that isn't in the list is found by its key only: the
// server looks for other names in the list before it asks.
func (t *Table) Find(ctx context.Context, s Search) ([]string, error) {
	pk := s.Any
	if s.Key != "" {
		var err error
		if pk, err = recordkey.Of(ctx, recordkey.Customer{Namespace: s.Namespace, Key: s.Key, Scope: s.Scope}); err != nil {
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
