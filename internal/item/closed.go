package item

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/seal"
)

// closed holds the sealed parts of a record's item.
type closed struct {
	scope, request, answer []byte
	results                map[int][]byte    // results by the phase's index
	args                   map[string][]byte // args by the job's name
}

func (c *closed) empty() bool {
	return c.scope == nil && c.request == nil && c.answer == nil && len(c.results)+len(c.args) == 0
}

// Decoder.sealing sets r.Seal from the seal attribute and the sealed parts that the
// decoder has found.
func (d *Decoder) sealing(r *store.Record) {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrSeal, false)
	if m == nil {
		if !d.closed.empty() {
			d.fail("sealed contents without %s", AttrSeal)
		}
		return
	}
	in := Decoder{It: m.Value}
	s := &Seal{keyID: in.Text(sealKey, true), algorithm: in.Text(sealAlgorithm, true)}
	if b := as[*types.AttributeValueMemberB](&in, m.Value, sealWrapped, true); b != nil {
		s.wrapped = b.Value
	}
	if in.Err != nil {
		d.fail("%s: %w", AttrSeal, in.Err)
	}
	if !d.closed.empty() {
		parts := d.closed
		s.closed = &parts
	}
	r.Seal = s
}

// sealedPart returns the bytes of a sealed request or answer, or of a job's sealed args; nil if
// they are plain.
func (d *Decoder) sealedPart(it Map) []byte {
	b := as[*types.AttributeValueMemberB](d, it, sealedContents, false)
	if b == nil {
		return nil
	}
	return notNil(b.Value)
}

// notNil returns b, or an empty slice if b is nil, since nil means that a part is
// absent. An empty sealed part isn't absent, but corrupt.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Unseal opens the contents of the decoded record r, and changes r. If the list known
// contains a Seal in which the record's data key is open, Unseal uses this key.
// Otherwise the sealer opens the data key.
//
// An error matches [store.ErrCorrupt] if the contents or the wrapped data key were
// altered, or if contents are plain although the sealer requires sealed contents. It
// matches [store.ErrSealed] if the data key can't be opened for another reason. After
// an error the contents are still closed.
//
// If a record has no sealed contents, the sealer doesn't open the data key, since the
// key may never be needed.
func Unseal(ctx context.Context, sealer *seal.Sealer, r *store.Record, known ...*Seal) error {
	if r == nil {
		return nil
	}
	if sealer != nil && sealer.Required() && hasPlain(r) {
		return fmt.Errorf("dynamo: %w: its contents are not sealed", store.ErrCorrupt)
	}
	s := SealOf(r)
	if s == nil {
		return nil
	}
	for _, k := range known {
		if s.key == nil && k.Key() != nil && k.keyID == s.keyID && slices.Equal(k.wrapped, s.wrapped) {
			s = &Seal{keyID: s.keyID, algorithm: s.algorithm, wrapped: s.wrapped, key: k.key, closed: s.closed}
		}
	}
	if s.closed == nil {
		r.Seal = s
		return nil
	}
	opened, err := s.Opened(ctx, sealer)
	if err != nil {
		return err
	}
	if err := s.closed.into(r, opened.key); err != nil {
		return fmt.Errorf("dynamo: %w: sealed %w", store.ErrCorrupt, err)
	}
	opened.closed = nil
	r.Seal = opened
	return nil
}

// Opened returns a copy of s in which the data key is open.
func (s *Seal) Opened(ctx context.Context, sealer *seal.Sealer) (*Seal, error) {
	if s.key != nil {
		open := *s
		return &open, nil
	}
	if sealer == nil {
		return nil, fmt.Errorf("dynamo: %w: no sealer is configured (Options.Seal)", store.ErrSealed)
	}
	key, err := sealer.Open(ctx, s.keyID, s.algorithm, s.wrapped)
	if errors.Is(err, seal.ErrInvalid) {
		return nil, fmt.Errorf("dynamo: %w: %w", store.ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("dynamo: %w: %w", store.ErrSealed, err)
	}
	open := *s
	open.key = key
	return &open, nil
}

// closed.into opens all parts and puts them into r. After an error r is unchanged.
func (c *closed) into(r *store.Record, key *seal.Key) error {
	open := *r
	open.Phases = slices.Clone(r.Phases)
	if c.scope != nil {
		scope, err := NewBox(key, r).open(c.scope, kindScope)
		if err != nil {
			return fmt.Errorf("scope: %w", err)
		}
		open.Scope = string(scope)
	}
	box := NewBox(key, &open)
	if c.request != nil {
		plain, err := box.open(c.request, kindRequest)
		if err == nil {
			open.Input, err = unpackRequest(plain)
		}
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	for at, sealed := range c.results {
		result, err := box.open(sealed, kindResult, resultPart(at, r.Phases[at].Name)...)
		if err != nil {
			return fmt.Errorf("result %d: %w", at, err)
		}
		open.Phases[at].Result = notNil(result)
	}
	if c.answer != nil {
		plain, err := box.open(c.answer, kindAnswer)
		if err == nil {
			open.Response, open.Overflow, err = unpackAnswer(plain)
		}
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	args := make(map[string][]byte, len(c.args))
	for name, sealed := range c.args {
		var err error
		if args[name], err = box.open(sealed, kindArgs, argsPart(name, r.Jobs[name])...); err != nil {
			return fmt.Errorf("args of %s: %w", name, err)
		}
	}
	for name, plain := range args {
		job := open.Jobs[name]
		job.Args = plain
		open.Jobs[name] = job
	}
	*r = open
	return nil
}

// Args returns the args of a job of r, even if r's contents are closed. Errors are those of
// [Unseal].
func (t Table) Args(ctx context.Context, r *store.Record, name string) ([]byte, error) {
	job := r.Jobs[name]
	s := SealOf(r)
	if s == nil || s.closed == nil || s.closed.args[name] == nil {
		if t.Seal != nil && t.Seal.Required() && (s == nil || s.closed != nil || s.key == nil) {
			return nil, fmt.Errorf("dynamo: %w: the args of %s are not sealed", store.ErrCorrupt, name)
		}
		return job.Args, nil
	}
	s, err := s.Opened(ctx, t.Seal)
	if err != nil {
		return nil, err
	}
	args, err := NewBox(s.key, r).open(s.closed.args[name], kindArgs, argsPart(name, job)...)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %w: sealed args of %s: %w", store.ErrCorrupt, name, err)
	}
	return args, nil
}

// hasPlain reports whether a decoded record has contents that aren't sealed.
func hasPlain(r *store.Record) bool {
	c := &closed{}
	if s := SealOf(r); s != nil && s.closed != nil {
		c = s.closed
	} else if s != nil && s.key != nil {
		return false // its contents are plain because the record was opened before
	}
	plain := r.Scope != "" || r.Input != nil && c.request == nil || r.Response != nil && c.answer == nil
	for at, p := range r.Phases {
		plain = plain || p.Result != nil && c.results[at] == nil
	}
	for name := range r.Jobs {
		plain = plain || c.args[name] == nil
	}
	return plain
}
