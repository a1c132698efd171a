package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

// A record has one data key for its whole life. The claim writes the wrapped key, and Record.Seal
// holds the open key in memory. So the writes between claim and answer need no call to the key
// provider.

// newBox returns the box that encrypts a new record's contents with the sealer's data key, and
// notes the data key in r. If the sealer can't get a data key, newBox returns an error, and nothing
// may be claimed, because the answer could not be stored. If the store doesn't encrypt, the box is
// nil.
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

// openBox gives u the data key if u writes contents or takes the record over. A
// take-over needs the data key because its attempt must be able to store an answer. A
// person's decision takes no lease, so it needs no data key unless it writes contents.
func (s *Store) openBox(ctx context.Context, u *update, prev, next *store.Record) (err error) {
	takes := next.Owner != prev.Owner && !next.Lease.IsZero()
	if takes || writesContents(prev, next) {
		if item.SealOf(prev).Closed() { // contents that were not opened would be written empty
			return fmt.Errorf("dynamo: commit: %w: the record was read without its contents", store.ErrSealed)
		}
		if u.Box, err = s.boxFor(ctx, next); err != nil {
			return err
		}
	}
	if sl := item.SealOf(next); sl != nil && item.SealOf(prev) == nil {
		u.put(item.AttrSeal, ":seal", u.Seal(sl))
	}
	return nil
}

// boxFor returns the box of an existing record, and notes the record's data key in next.
func (s *Store) boxFor(ctx context.Context, next *store.Record) (*item.Box, error) {
	sl := item.SealOf(next)
	switch {
	case sl == nil:
		return s.newBox(ctx, next)
	case sl.Key() == nil && s.sealer == nil:
		return nil, nil // nothing of the record is sealed yet, and this program can't seal
	}
	sl, err := sl.Opened(ctx, s.sealer)
	if err != nil {
		return nil, err
	}
	next.Seal = sl
	return item.NewBox(sl.Key(), next), nil
}

// boxOf returns the box of a record whose data key is open; nil if the record isn't sealed.
func boxOf(r *store.Record) *item.Box { return item.NewBox(item.SealOf(r).Key(), r) }

// movesSealed reports whether a commit hands a sealed record to another handler or
// tenant. The commit must then seal the request, the results and the answer anew,
// because they are bound to the handler and the tenant. The args of jobs need no new
// seal, because they are bound to the tenant only, and a record with jobs keeps its
// tenant.
func movesSealed(prev, next *store.Record) bool {
	return item.SealOf(prev) != nil && (next.Handler != prev.Handler || next.Tenant != prev.Tenant)
}

// Store.unsealed opens the contents of held, the record that was in the table when a
// write was refused. written lists records of the write, with open data keys. unsealed
// needs no call to the key provider if one of these records has the same data key as
// held, for example because an earlier try of the write was applied. If the data key
// can't be opened, unsealed reports the write's outcome as unknown.
func (s *Store) unsealed(ctx context.Context, held *store.Record, err error, written ...*store.Record) (*store.Record, error) {
	if err != nil || held == nil {
		return held, err
	}
	known := make([]*item.Seal, 0, len(written))
	for _, r := range written {
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
