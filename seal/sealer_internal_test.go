package seal

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a provider whose calls wait until it is opened.
type gate struct {
	open  chan struct{}
	calls int
	key   DataKey
	err   error
}

func (g *gate) pass(ctx context.Context) error {
	g.calls++
	select {
	case <-g.open:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Generate(ctx context.Context) (DataKey, error) {
	if err := g.pass(ctx); err != nil {
		return DataKey{}, err
	}
	k := g.key
	k.Plain = bytes.Clone(k.Plain)
	return k, nil
}

func (g *gate) Open(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	return bytes.Clone(g.key.Plain), g.pass(ctx)
}

func shut(wrapped int) *gate {
	return &gate{open: make(chan struct{}), key: DataKey{KeyID: "a", Plain: make([]byte, keySize), Wrapped: make([]byte, wrapped)}}
}

// A provider that hangs costs those who wait for a data key one call, whose error they
// share. The next one asks again.
func TestWhoWaitsSharesTheError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := shut(1)
		g.err = errors.New("the provider's own time is over")
		s := New(g)
		for name, ask := range map[string]func(context.Context) (*Key, error){
			"Key":  s.Key,
			"Open": func(ctx context.Context) (*Key, error) { return s.Open(ctx, "a", Algorithm, []byte{7}) },
		} {
			g.calls = 0
			got := make(chan error)
			for range 10 {
				go func() {
					_, err := ask(t.Context())
					got <- err
				}()
			}
			synctest.Wait()
			g.open <- struct{}{}
			for range 10 {
				if err := <-got; !errors.Is(err, ErrNoKey) || !errors.Is(err, g.err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if g.calls != 1 {
				t.Errorf("%s: %d calls", name, g.calls)
			}
			go func() { g.open <- struct{}{} }()
			if _, err := ask(t.Context()); !errors.Is(err, g.err) || g.calls != 2 {
				t.Errorf("%s, again: %v after %d calls", name, err, g.calls)
			}
		}
	})
}

// The bounds of a wrapped form: what is outside of them doesn't reach the provider.
func TestWrappedForms(t *testing.T) {
	t.Parallel()
	for n, good := range map[int]bool{0: false, 1: true, maxWrapped: true, maxWrapped + 1: false} {
		g := shut(n)
		close(g.open)
		if _, err := New(g).Key(t.Context()); (err == nil) != good {
			t.Errorf("Key of %d bytes: %v", n, err)
		}
		g.calls = 0
		if _, err := New(g).Open(t.Context(), "a", Algorithm, make([]byte, n)); (err == nil) != good || (g.calls == 1) != good {
			t.Errorf("Open of %d bytes: %v after %d calls", n, err, g.calls)
		}
	}
}

// A provider's answer that is no data key is an invalid one, and a key that it refuses as
// invalid is not one that can't be had.
func TestOpenedKeysAreLookedAt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]*gate{
		"too short": {key: DataKey{Plain: make([]byte, 16)}},
		"invalid":   {key: DataKey{Plain: make([]byte, keySize)}, err: ErrInvalid},
	} {
		tt.open = make(chan struct{})
		close(tt.open)
		if k, err := New(tt).Open(t.Context(), "a", Algorithm, []byte{1}); k != nil || !errors.Is(err, ErrInvalid) || errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	p, err := NewStatic("a", map[string][]byte{"a": make([]byte, keySize)})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := p.Generate(t.Context())
	other, _ := p.Generate(t.Context())
	if bytes.Equal(one.Plain, other.Plain) {
		t.Error("two data keys are equal")
	}
	one.Wrapped[0] ^= 1
	if plain, err := p.Open(t.Context(), "a", one.Wrapped); plain != nil || !errors.Is(err, ErrInvalid) {
		t.Errorf("an altered key: %x, %v", plain, err)
	}
}

// A data key past its age leaves the memory with the next one.
func TestOldKeysAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewStatic("a", map[string][]byte{"a": bytes.Repeat([]byte{1}, keySize)})
		if err != nil {
			t.Fatal(err)
		}
		s := New(p)
		for range 3 {
			if _, err := s.Key(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(s.opened) != 1 {
				t.Errorf("%d data keys are in memory", len(s.opened))
			}
			time.Sleep(s.opt.MaxAge) //nolint:forbidigo // the bubble's clock
		}
	})
}

// Who waits for a data key gets that of another call, or waits no longer than its context.
func TestWaitingForADataKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := shut(1)
		s := New(g)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for name, ask := range map[string]func(context.Context) (*Key, error){
			"Key":  s.Key,
			"Open": func(ctx context.Context) (*Key, error) { return s.Open(ctx, "a", Algorithm, []byte{7}) },
		} {
			g.calls = 0
			got := make(chan *Key)
			for range 3 {
				go func() {
					k, err := ask(t.Context())
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					got <- k
				}()
			}
			synctest.Wait()
			if k, err := ask(short); k != nil || !errors.Is(err, ErrNoKey) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, whose time is over: %v, %v", name, k, err)
			}
			g.open <- struct{}{}
			if a, b, c := <-got, <-got, <-got; a != b || a != c || g.calls != 1 {
				t.Errorf("%s: %d calls, keys %p, %p and %p", name, g.calls, a, b, c)
			}
		}
	})
}
