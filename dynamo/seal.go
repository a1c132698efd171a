package dynamo

import (
	"context"
	"errors"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// A record has one data key for life. Its claim writes the wrapped key, and the
// record in memory holds the open one (Record.Seal), so that from the claim to the
// answer no write needs the provider.

// newBox seals a new record under the sealer's data key, which it notes in r. Without
// a data key nothing may be claimed: the answer could not be stored.
func (s *Store) newBox(ctx context.Context, r *store.Record) (*item.Box, error) {
	if s.sealer == nil {
		return nil, nil
	}
	key, err := s.sealer.Key(ctx)
	if err != nil {
		return nil, errors.Join(store.ErrSealed, err)
	}
	if key == nil {
		return nil, nil
	}
	r.Seal = item.NewSeal(key)
	return item.NewBox(key, r), nil
}

// boxFor returns the box of a record that exists, and notes its data key in next.
func (s *Store) boxFor(ctx context.Context, next *store.Record) (*item.Box, error) {
	sl := item.SealOf(next)
	switch {
	case sl == nil:
		return s.newBox(ctx, next)
	case sl.Key() == nil && s.sealer == nil:
		return nil, nil // nothing of the record is sealed yet, and this program can't
	}
	sl, err := sl.Opened(ctx, s.sealer)
	if err != nil {
		return nil, err
	}
	next.Seal = sl
	return item.NewBox(sl.Key(), next), nil
}

// boxOf returns the box of a record whose data key is open; nil if it is not sealed.
func boxOf(r *store.Record) *item.Box { return item.NewBox(item.SealOf(r).Key(), r) }

// unsealed opens the record that has refused a write. mine are the records of the
// write: their data key is at hand, so that a lost answer shows without the provider.
// If the contents can't be opened, the write's outcome is unknown to the caller.
func (s *Store) unsealed(ctx context.Context, held *store.Record, err error, mine ...*store.Record) (*store.Record, error) {
	if err != nil || held == nil {
		return held, err
	}
	known := make([]*item.Seal, 0, len(mine))
	for _, r := range mine {
		known = append(known, item.SealOf(r))
	}
	err = item.Unseal(ctx, s.sealer, held, known...)
	switch {
	case errors.Is(err, store.ErrSealed):
		return nil, errors.Join(store.ErrUnknown, err)
	case err != nil:
		return nil, err
	}
	return held, nil
}
