package seal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Sealer provides data keys, and keeps a limited number of them in memory. It is safe
// for concurrent use. Create it once for each process.
type Sealer struct {
	provider Provider
	opt      Options

	mu      sync.Mutex
	current *Key
	making  *opening            // the data key for new records that is being made; nil if none is
	opened  map[string]*opening // by key id and wrapped form
}

// opening is a data key that is open, being opened or being made.
type opening struct {
	done chan struct{} // closed once key or err is set; a failed opening is removed
	key  *Key
	err  error // the provider's error; nil if the call succeeded, or its time was over
	used time.Time
}

// opening.wait waits for another caller's call of the provider, and returns the key or
// error of that call. So a provider that fails slowly isn't called again for each
// caller that waits. If wait returns neither a key nor an error, the other caller's
// time was over, and this caller must call the provider.
func (o *opening) wait(ctx context.Context, op string) (*Key, error) {
	select {
	case <-o.done:
		return o.key, o.err
	case <-ctx.Done():
		return nil, noKey(op, ctx.Err())
	}
}

// opening.failed stores err for the callers that wait, unless the call failed because
// its time was over.
func (o *opening) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		o.err = err
	}
}

// Options are a sealer's settings; the zero value is the default.
type Options struct {
	// MaxAge is the longest time that a data key seals new records, and that an opened
	// data key is used again. So a program that loses the right to use a provider's key
	// can still read records for up to MaxAge, with the data keys in memory. Default: 15
	// minutes.
	MaxAge time.Duration
	// OpenOnly opens sealed records, but doesn't seal new records. To switch encryption off, set
	// OpenOnly until the last sealed record has expired. Default: false, new records are sealed.
	OpenOnly bool
	// Required refuses unsealed contents of records as corrupt. Without Required, somebody with
	// write access to the table can replace sealed contents by plain contents. Set Required when
	// the last unsealed record has expired. Don't set Required together with OpenOnly: New would
	// panic. Default: false, plain contents are read.
	Required bool

	messages int64 // maxMessages
	keys     int   // maxKeys
}

const (
	defaultAge = 15 * time.Minute
	// maxMessages is how many parts of records a data key seals in a process before new records
	// get another data key. The number is far below 2^32, the limit of AES-GCM with random
	// nonces.
	maxMessages = 1_000_000
	// maxKeys is how many opened data keys stay in memory, about 1 KB each.
	maxKeys = 1000
)

// New returns a sealer with the data keys of provider. New makes no calls. It panics if provider
// is nil, MaxAge is negative, or OpenOnly and Required are both set.
func New(provider Provider, optFns ...func(*Options)) *Sealer {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if provider == nil || opt.MaxAge < 0 {
		panic("seal: New: provider must not be nil, and MaxAge not negative") //nolint:forbidigo // a mistake in the program
	}
	if opt.OpenOnly && opt.Required {
		panic("seal: New: with OpenOnly, new records are not sealed, and Required would refuse them") //nolint:forbidigo // a mistake in the program
	}
	opt.MaxAge = cmp.Or(opt.MaxAge, defaultAge)
	opt.messages = cmp.Or(opt.messages, maxMessages)
	opt.keys = cmp.Or(opt.keys, maxKeys)
	return &Sealer{provider: provider, opt: opt, opened: make(map[string]*opening)}
}

// Required reports whether contents must be sealed ([Options].Required).
func (s *Sealer) Required() bool { return s.opt.Required }

// Key returns the data key for a new record, or nil if Options.OpenOnly is set. Key
// calls the provider if there is no data key, or if the present data key is too old or
// was used too often. Concurrent calls share one call of the provider, and get the same
// key or error. But if the ctx of the call of the provider ends, another caller calls
// the provider. An error matches [ErrNoKey].
func (s *Sealer) Key(ctx context.Context) (*Key, error) {
	if s.opt.OpenOnly {
		return nil, nil
	}
	for {
		k, o, mine := s.good()
		switch {
		case k != nil:
			return k, nil
		case mine:
			return s.generate(ctx, o)
		}
		if _, err := o.wait(ctx, "generate"); err != nil {
			return nil, err
		}
	}
}

// Sealer.good returns the current key if that key may seal another record. Otherwise
// good returns the opening of the next key. If mine is true, the caller has to make the
// next key.
func (s *Sealer) good() (k *Key, o *opening, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k = s.current
	if k != nil && !s.old(k, wall()) && k.used.Load() < s.opt.messages {
		return k, o, mine
	}
	s.current = nil
	if mine = s.making == nil; mine {
		s.making = &opening{done: make(chan struct{})}
	}
	return nil, s.making, mine
}

func (s *Sealer) generate(ctx context.Context, o *opening) (k *Key, err error) {
	defer func() { // also after a panic of the provider
		s.mu.Lock()
		defer s.mu.Unlock()
		o.key, s.making = k, nil
		o.failed(ctx, err)
		if k != nil {
			s.current, o.used = k, k.made
			s.opened[name(k.id, k.wrapped)] = o
			s.evict(k.made)
		}
		close(o.done)
	}()
	data, err := s.provider.Generate(ctx)
	if err != nil {
		return nil, noKey("generate", err)
	}
	if k, err = newKey(data, wall()); err != nil {
		return nil, noKey("generate", err)
	}
	return k, nil
}

func (s *Sealer) old(k *Key, now time.Time) bool { return now.Sub(k.made) >= s.opt.MaxAge }

// Open returns the data key whose wrapped form is wrapped. If the key isn't in memory,
// Open calls the provider. Concurrent calls for a key share one call of the provider,
// and get the same key or error. But if the ctx of the call of the provider ends,
// another caller calls the provider. An error matches [ErrInvalid] if the arguments
// don't come from a sealed record, or if this program doesn't know the algorithm. In
// all other cases it matches [ErrNoKey].
func (s *Sealer) Open(ctx context.Context, keyID, algorithm string, wrapped []byte) (*Key, error) {
	switch {
	case algorithm != Algorithm:
		return nil, fmt.Errorf("seal: %w: algorithm %q is not known to this program", ErrInvalid, algorithm)
	case keyID == "" || len(wrapped) == 0 || len(wrapped) > maxWrapped:
		return nil, fmt.Errorf("seal: %w: a wrapped data key of %d bytes", ErrInvalid, len(wrapped))
	}
	for id := name(keyID, wrapped); ; {
		o, mine := s.entry(id)
		if mine {
			return s.open(ctx, id, o, keyID, wrapped)
		}
		if k, err := o.wait(ctx, "open"); k != nil || err != nil {
			return k, err
		}
	}
}

// Sealer.entry returns the opening of the data key with this id. If mine is true, the
// caller has to open this key.
func (s *Sealer) entry(id string) (o *opening, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := wall()
	if o = s.opened[id]; o != nil && (o.key == nil || !s.old(o.key, now)) {
		o.used = now
		return o, false
	}
	o = &opening{done: make(chan struct{}), used: now}
	s.opened[id] = o
	s.evict(now)
	return o, true
}

func (s *Sealer) open(ctx context.Context, id string, o *opening, keyID string, wrapped []byte) (k *Key, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if o.key = k; k == nil && s.opened[id] == o {
			delete(s.opened, id)
		}
		o.failed(ctx, err)
		close(o.done)
	}()
	plain, err := s.provider.Open(ctx, keyID, wrapped)
	if errors.Is(err, ErrInvalid) {
		return nil, fmt.Errorf("seal: open: %w", err)
	}
	if err != nil {
		return nil, noKey("open", err)
	}
	if k, err = newKey(DataKey{KeyID: keyID, Plain: plain, Wrapped: wrapped}, wall()); err != nil {
		return nil, fmt.Errorf("seal: %w: %w", ErrInvalid, err)
	}
	return k, nil
}

// Sealer.evict removes keys that are too old, and the least recently used keys if there
// are too many. The caller holds s.mu.
func (s *Sealer) evict(now time.Time) {
	for id, o := range s.opened {
		if o.key != nil && s.old(o.key, now) {
			delete(s.opened, id)
		}
	}
	for len(s.opened) > s.opt.keys {
		var last string
		for id, o := range s.opened {
			current := o.key != nil && o.key == s.current
			if !current && (last == "" || o.used.Before(s.opened[last].used)) {
				last = id
			}
		}
		if last == "" {
			return
		}
		delete(s.opened, last)
	}
}

// wall returns the time by the wall clock, which goes on while a sandbox is frozen.
func wall() time.Time { return time.Now().Round(0) }

func name(keyID string, wrapped []byte) string { return keyID + "\x00" + string(wrapped) }

func noKey(op string, err error) error { return fmt.Errorf("seal: %s: %w: %w", op, ErrNoKey, err) }
