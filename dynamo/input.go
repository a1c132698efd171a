package dynamo

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// encodeInput makes the req attribute of r. If the body is over the inline limit,
// encodeInput leaves the body out of req and returns the body as large. After the
// claim, keepInput writes large to companions.
func (s *Store) encodeInput(v *item.Values, r *store.Record) (req item.Value, large []byte) {
	in := r.Input
	body, zipped := s.pack(in.Body, r, v.Box, item.AttrRequest, func(v *item.Values) item.Value {
		return v.Input(in, nil, nil, false)
	})
	if len(body) > s.inline {
		in.Overflow = s.overflow(r.Owner, in.Body, body, zipped, v.Box)
		return v.Input(in, in.Overflow, nil, false), body
	}
	return v.Input(in, nil, body, zipped), nil
}

// inputAgain makes the req attribute of a request that is already stored. A body in
// companions stays there.
func (s *Store) inputAgain(v *item.Values, r *store.Record) item.Value {
	in := r.Input
	if in.Overflow != nil {
		return v.Input(in, in.Overflow, nil, false)
	}
	body, zipped := s.pack(in.Body, r, v.Box, item.AttrRequest, func(v *item.Values) item.Value {
		return v.Input(in, nil, nil, false)
	})
	return v.Input(in, nil, body, zipped)
}

// keepInput writes large, the body of a stored request, to companions. keepInput runs
// after the claim, so that a refused claim doesn't pay for the body. held and err are
// the claim's result.
//
// The claim remains valid even if the body isn't written, because this attempt has the
// body in memory. If this attempt dies without writing the body, no completer can run
// the operation until the client's retry has sent the body again.
func (s *Store) keepInput(ctx context.Context, next, held *store.Record, err error, large []byte) (*store.Record, error) {
	if errors.Is(err, store.ErrUnknown) {
		// If the claim was applied, the stored record names the companions to write.
		if now, lerr := s.Load(ctx, next.PK); lerr == nil && now != nil {
			held, err = now, nil
		}
	}
	into, box := next.Input.Overflow, boxOf(next)
	switch {
	case err != nil:
		return held, err
	case held == nil:
	case held.Owner == next.Owner && held.Ver == 1 && held.Input != nil && held.Input.Overflow != nil:
		into, box = missing(held.Input.Overflow), boxOf(held) // an earlier try of this claim was applied: write the companions that held names
	default:
		return held, nil
	}
	s.putInput(ctx, next.PK, into, large, box)
	return held, nil
}

// putInput writes the companions. It takes at most half of the remaining time, and leaves the rest
// to the handler.
func (s *Store) putInput(ctx context.Context, pk string, into *store.Overflow, large []byte, box *item.Box) {
	if d, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(d)/2)
		defer cancel()
	}
	_ = s.putChunks(ctx, pk, into, large, time.Now().Add(state.KeepsRequest), box)
}

// missing returns a copy of o in which all companions count as not written.
func missing(o *store.Overflow) *store.Overflow {
	again := *o
	again.Missing = o.Count
	return &again
}

// tendInput runs after the commit c; held and err are the result of c. tendInput acts
// in two cases:
//   - If c removes the stored request, tendInput deletes the request's companions,
//     unless the stored record still refers to them.
//   - If c takes the record over for a client's retry, which has sent the body again,
//     tendInput writes the companions again, because they may be missing.
func (s *Store) tendInput(ctx context.Context, c store.Commit, held *store.Record, err error) (*store.Record, error) {
	over := c.Prev.Input.Overflow
	supplied := c.Next.Input != nil && len(c.Prev.Input.Body) == 0 && len(c.Next.Input.Body) > 0
	if c.Next.Input != nil && !supplied {
		return held, err
	}
	if errors.Is(err, store.ErrUnknown) {
		now, lerr := s.Load(ctx, c.Prev.PK)
		if lerr != nil || now == nil || now.Owner == c.Prev.Owner && now.Ver == c.Prev.Ver {
			return held, err // the commit was not applied, or its outcome is still unknown
		}
		held, err = now, nil
	}
	switch {
	case err != nil:
	case supplied && (held == nil || held.Owner == c.Next.Owner && refers(held, over)):
		body := c.Next.Input.Body
		packed := body
		if over.Zipped {
			packed = item.Deflate(body)
		}
		if fits(over, body, packed) {
			s.putInput(ctx, c.Prev.PK, missing(over), packed, boxOf(c.Prev))
		}
	case !supplied && (held == nil || !refers(held, over)):
		_ = s.dropChunks(ctx, c.Prev.PK, over)
	}
	return held, err
}

// fits reports whether o describes body. packed is the stored form of body.
func fits(o *store.Overflow, body, packed []byte) bool {
	return len(body) == o.Length && (len(packed)+chunkSize-1)/chunkSize == o.Count && sha256.Sum256(body) == o.SHA256
}

// refers reports whether r's stored request is in the companions of o.
func refers(r *store.Record, o *store.Overflow) bool {
	return r.Input != nil && r.Input.Overflow != nil && r.Input.Overflow.Owner == o.Owner && r.Input.Overflow.First == o.First
}
