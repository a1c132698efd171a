package seal_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/samekey/samekey/seal"
)

// counted is a provider that counts its calls, and fails if it is told to.
type counted struct {
	seal.Provider

	mu                sync.Mutex
	generated, opened int
	err               error
	plain             [][]byte      // what Generate gave out
	hang              chan struct{} // calls of Open wait for it, if it is set
}

func (c *counted) Generate(ctx context.Context) (seal.DataKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generated++
	if c.err != nil {
		return seal.DataKey{}, c.err
	}
	k, err := c.Provider.Generate(ctx)
	c.plain = append(c.plain, k.Plain)
	return k, err
}

func (c *counted) Open(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	c.mu.Lock()
	c.opened++
	err, hang := c.err, c.hang
	c.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return c.Provider.Open(ctx, id, wrapped)
}

func static(t testing.TB, current string, names ...string) *seal.Static {
	t.Helper()
	keys := make(map[string][]byte)
	for _, name := range append(names, current) {
		keys[name] = bytes.Repeat([]byte(name), 32)[:32]
	}
	p, err := seal.NewStatic(current, keys)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func key(t testing.TB, s *seal.Sealer) *seal.Key {
	t.Helper()
	k, err := s.Key(t.Context())
	if err != nil || k == nil {
		t.Fatalf("Key returned %v, %v", k, err)
	}
	return k
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	k := key(t, seal.New(static(t, "a")))
	rapid.Check(t, func(t *rapid.T) {
		plain, place := rapid.SliceOf(rapid.Byte()).Draw(t, "plain"), rapid.SliceOf(rapid.String()).Draw(t, "place")
		sealed := k.Seal(plain, seal.Context(place...))
		if len(sealed) != len(plain)+28 {
			t.Fatalf("%d bytes of %d", len(sealed), len(plain))
		}
		if got, err := k.Open(sealed, seal.Context(place...)); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("Open returned %x, %v", got, err)
		}
		if bytes.Equal(sealed, k.Seal(plain, seal.Context(place...))) {
			t.Fatal("sealed twice, the bytes are equal")
		}
		spoilt := bytes.Clone(sealed)
		spoilt[rapid.IntRange(0, len(spoilt)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		cut := sealed[:rapid.IntRange(0, len(sealed)-1).Draw(t, "length")]
		for what, b := range map[string][]byte{"altered": spoilt, "truncated": cut, "longer": append(bytes.Clone(sealed), 0)} {
			if got, err := k.Open(b, seal.Context(place...)); !errors.Is(err, seal.ErrInvalid) {
				t.Fatalf("%s, Open returned %x, %v", what, got, err)
			}
		}
		if got, err := k.Open(sealed, seal.Context(append(place, "")...)); !errors.Is(err, seal.ErrInvalid) {
			t.Fatalf("in another place, Open returned %x, %v", got, err)
		}
	})
}

func TestContextsOfDifferentPartsDiffer(t *testing.T) {
	t.Parallel()
	parts := rapid.SliceOfN(rapid.StringMatching(`[a\x00\x01\x02]{0,3}`), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		same := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b)
		if bytes.Equal(seal.Context(a...), seal.Context(b...)) != same {
			t.Fatalf("contexts of %q and %q", a, b)
		}
	})
}

// The stored form is that of RFC 5116 behind its nonce, which other programs can read.
func TestStoredFormIsNonceCiphertextTag(t *testing.T) {
	t.Parallel()
	c := &counted{Provider: fixed{}}
	sealed := key(t, seal.New(c)).Seal([]byte("plain"), []byte("place"))
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := gcm.Open(nil, sealed[:12], sealed[12:], []byte("place")); err != nil || string(got) != "plain" {
		t.Errorf("crypto/cipher opened %q, %v", got, err)
	}
}

// fixed gives out the same data key each time.
type fixed struct{}

func (fixed) Generate(context.Context) (seal.DataKey, error) {
	return seal.DataKey{KeyID: "fixed", Plain: bytes.Repeat([]byte{7}, 32), Wrapped: []byte("wrapped")}, nil
}

func (fixed) Open(_ context.Context, _ string, wrapped []byte) ([]byte, error) {
	if string(wrapped) != "wrapped" {
		return nil, seal.ErrInvalid
	}
	return bytes.Repeat([]byte{7}, 32), nil
}

// What this release has sealed, later releases open: the hexadecimal bytes were made
// once, and stay.
func TestKnownAnswers(t *testing.T) {
	t.Parallel()
	s := seal.New(fixed{})
	k, err := s.Open(t.Context(), "fixed", "A256GCM", []byte("wrapped"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct{ plain, sealed string }{
		{"", knownEmpty},
		{`{"amount":2000}`, knownArgs},
	} {
		sealed, err := hex.DecodeString(v.sealed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Open(sealed, seal.Context("samekey", "1", "v1##pk", "id", "args", "0.0", "receipt")); err != nil || string(got) != v.plain {
			t.Errorf("opened %q, %v, want %q", got, err, v.plain)
		}
	}
	wrapped, err := hex.DecodeString(knownWrapped)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := static(t, "k").Open(t.Context(), "k", wrapped); err != nil || !bytes.Equal(plain, bytes.Repeat([]byte{9}, 32)) {
		t.Errorf("a wrapped key opens to %x, %v", plain, err)
	}
}

func TestSealerKeepsADataKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Provider: static(t, "a")}
		s := seal.New(c, seal.Limits(10, 0))
		first := key(t, s)
		for range 9 {
			first.Seal(nil, nil)
		}
		if key(t, s) != first || c.generated != 1 {
			t.Fatalf("%d data keys for 9 messages", c.generated)
		}
		first.Seal(nil, nil)
		second := key(t, s)
		if second == first || c.generated != 2 {
			t.Fatalf("%d data keys after 10 messages, want another", c.generated)
		}
		time.Sleep(15*time.Minute - time.Nanosecond) //nolint:forbidigo // the bubble's clock
		if key(t, s) != second {
			t.Error("another data key before its age")
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the bubble's clock
		if key(t, s) == second || c.generated != 3 {
			t.Errorf("%d data keys at the first one's age, want another", c.generated)
		}
		for _, plain := range c.plain {
			if !bytes.Equal(plain, make([]byte, 32)) {
				t.Error("the plain data key is left in memory")
			}
		}
		if c.opened != 0 {
			t.Errorf("%d calls to open keys", c.opened)
		}
	})
}

func TestSealerKeepsOpenedKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Provider: static(t, "a")}
		s := seal.New(c, seal.Limits(0, 2))
		wrapped := make([][]byte, 3)
		for i := range wrapped {
			wrapped[i] = key(t, seal.New(static(t, "a"))).Wrapped()
		}
		open := func(i int) {
			t.Helper()
			time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
			if _, err := s.Open(t.Context(), "a", seal.Algorithm, wrapped[i]); err != nil {
				t.Fatal(err)
			}
		}
		open(0)
		open(1)
		open(0)
		if c.opened != 2 {
			t.Errorf("%d calls for two keys", c.opened)
		}
		open(2) // the second is the least recently used
		open(0)
		if c.opened != 3 {
			t.Errorf("%d calls, want the first key kept", c.opened)
		}
		open(1)
		if c.opened != 4 {
			t.Errorf("%d calls, want the second key opened again", c.opened)
		}
		time.Sleep(15 * time.Minute) //nolint:forbidigo // the bubble's clock
		open(1)
		if c.opened != 5 {
			t.Errorf("%d calls, want the second key opened again at its age", c.opened)
		}
	})
}

// Other processes' records never push out the key of this process's records.
func TestCurrentKeyStays(t *testing.T) {
	t.Parallel()
	c := &counted{Provider: static(t, "a")}
	s := seal.New(c, seal.Limits(0, 2))
	mine := key(t, s)
	for range 20 {
		if _, err := s.Open(t.Context(), "a", seal.Algorithm, key(t, seal.New(static(t, "a"))).Wrapped()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Open(t.Context(), mine.ID(), seal.Algorithm, mine.Wrapped())
	if err != nil || got != mine || c.opened != 20 {
		t.Errorf("Open returned %p, %v after %d calls; want %p after 20", got, err, c.opened, mine)
	}
}

// Requests at once share a call; one that gave up for lack of time doesn't fail the
// others.
func TestSealerSharesCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Provider: static(t, "a"), hang: make(chan struct{})}
		s := seal.New(c)
		wrapped := key(t, seal.New(static(t, "a"))).Wrapped()
		short, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 11)
		open := func(ctx context.Context) {
			_, err := s.Open(ctx, "a", seal.Algorithm, wrapped)
			errs <- err
		}
		go open(short)
		synctest.Wait()
		for range 10 {
			go open(t.Context())
		}
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, seal.ErrNoKey) || !errors.Is(err, context.Canceled) {
			t.Errorf("without time, Open returned %v", err)
		}
		synctest.Wait()
		close(c.hang)
		for range 10 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if c.opened != 2 {
			t.Errorf("%d calls, want one that was cancelled and one for all others", c.opened)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _, _ = s.Key(t.Context()) })
		}
		wg.Wait()
		if c.generated != 1 {
			t.Errorf("%d data keys for requests at once", c.generated)
		}
	})
}

func TestProviderFails(t *testing.T) {
	t.Parallel()
	down := errors.New("throttled")
	c := &counted{Provider: static(t, "a"), err: down}
	s := seal.New(c)
	wrapped := key(t, seal.New(static(t, "a"))).Wrapped()
	if k, err := s.Key(t.Context()); k != nil || !errors.Is(err, seal.ErrNoKey) || !errors.Is(err, down) {
		t.Errorf("Key returned %v, %v", k, err)
	}
	if k, err := s.Open(t.Context(), "a", seal.Algorithm, wrapped); k != nil || !errors.Is(err, seal.ErrNoKey) || !errors.Is(err, down) {
		t.Errorf("Open returned %v, %v", k, err)
	}
	c.err = nil // a failure is not remembered
	if _, err := s.Open(t.Context(), "a", seal.Algorithm, wrapped); err != nil {
		t.Error(err)
	}
	key(t, s)

	for what, k := range map[string]seal.DataKey{
		"a short key":         {KeyID: "a", Plain: make([]byte, 16), Wrapped: []byte{1}},
		"no name":             {Plain: make([]byte, 32), Wrapped: []byte{1}},
		"no wrapped form":     {KeyID: "a", Plain: make([]byte, 32)},
		"a long wrapped form": {KeyID: "a", Plain: make([]byte, 32), Wrapped: make([]byte, 1025)},
	} {
		if got, err := seal.New(gives{k}).Key(t.Context()); got != nil || !errors.Is(err, seal.ErrNoKey) {
			t.Errorf("with %s, Key returned %v, %v", what, got, err)
		}
	}
}

type gives struct{ k seal.DataKey }

func (g gives) Generate(context.Context) (seal.DataKey, error)       { return g.k, nil }
func (g gives) Open(context.Context, string, []byte) ([]byte, error) { return nil, nil }

func TestOpenRefusesWhatNoSealerWrote(t *testing.T) {
	t.Parallel()
	c := &counted{Provider: static(t, "a", "b")}
	s := seal.New(c)
	wrapped := key(t, seal.New(static(t, "a"))).Wrapped()
	for what, try := range map[string]struct {
		id, algorithm string
		wrapped       []byte
	}{
		"another algorithm": {"a", "A128GCM", wrapped},
		"no key id":         {"", seal.Algorithm, wrapped},
		"no wrapped key":    {"a", seal.Algorithm, nil},
		"a long one":        {"a", seal.Algorithm, make([]byte, 1025)},
		"another key's":     {"b", seal.Algorithm, wrapped},
		"an altered one":    {"a", seal.Algorithm, append([]byte{wrapped[0] ^ 1}, wrapped[1:]...)},
	} {
		if k, err := s.Open(t.Context(), try.id, try.algorithm, try.wrapped); k != nil || !errors.Is(err, seal.ErrInvalid) {
			t.Errorf("%s: Open returned %v, %v", what, k, err)
		}
	}
	if k, err := s.Open(t.Context(), "c", seal.Algorithm, wrapped); k != nil || !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("with a key that this program lacks, Open returned %v, %v", k, err)
	}
}

func TestOpenOnlySealsNothing(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		if got := seal.New(fixed{}, func(o *seal.Options) { o.Required = required }).Required(); got != required {
			t.Errorf("Required is %t, want %t", got, required)
		}
	}
	c := &counted{Provider: static(t, "a")}
	s := seal.New(c, func(o *seal.Options) { o.OpenOnly = true })
	if k, err := s.Key(t.Context()); k != nil || err != nil || c.generated != 0 {
		t.Errorf("Key returned %v, %v after %d calls", k, err, c.generated)
	}
	if _, err := s.Open(t.Context(), "a", seal.Algorithm, key(t, seal.New(static(t, "a"))).Wrapped()); err != nil {
		t.Error(err)
	}
}

func TestNewPanicsOnMistakes(t *testing.T) {
	t.Parallel()
	for what, make := range map[string]func(){
		"no provider":           func() { seal.New(nil) },
		"a negative age":        func() { seal.New(fixed{}, func(o *seal.Options) { o.MaxAge = -1 }) },
		"OpenOnly and Required": func() { seal.New(fixed{}, func(o *seal.Options) { o.OpenOnly, o.Required = true, true }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			make()
		}()
	}
}

func TestNewStaticRefusesMistakes(t *testing.T) {
	t.Parallel()
	for what, try := range map[string]struct {
		current string
		keys    map[string][]byte
	}{
		"no keys":           {"a", nil},
		"no current key":    {"a", map[string][]byte{"b": make([]byte, 32)}},
		"no name":           {"", map[string][]byte{"": make([]byte, 32)}},
		"a short key":       {"a", map[string][]byte{"a": make([]byte, 16)}},
		"a short older key": {"a", map[string][]byte{"a": make([]byte, 32), "b": make([]byte, 31)}},
	} {
		if _, err := seal.NewStatic(try.current, try.keys); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// The bounds hold for many goroutines at once, of which none gets another's key.
func TestBoundsAtOnce(t *testing.T) {
	t.Parallel()
	const workers, rounds, others, most, kept = 32, 100, 40, 50, 8
	c := &counted{Provider: static(t, "a")}
	s := seal.New(c, seal.Limits(most, kept))
	type part struct{ wrapped, sealed []byte }
	parts := make([]part, others)
	for i := range parts {
		k := key(t, seal.New(static(t, "a")))
		parts[i] = part{k.Wrapped(), k.Seal([]byte{byte(i)}, nil)}
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				k, err := s.Key(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if plain, err := k.Open(k.Seal([]byte("mine"), nil), nil); err != nil || string(plain) != "mine" {
					t.Errorf("a sealed part opens to %q, %v", plain, err)
				}
				n := (w + i*7) % others
				o, err := s.Open(t.Context(), "a", seal.Algorithm, parts[n].wrapped)
				if err != nil {
					t.Error(err)
					return
				}
				if plain, err := o.Open(parts[n].sealed, nil); err != nil || !bytes.Equal(plain, []byte{byte(n)}) {
					t.Errorf("part %d opens to %x, %v", n, plain, err)
				}
			}
		})
	}
	wg.Wait()
	// Each worker may hold a key that has reached its number meanwhile.
	if n := workers * rounds / (most + workers); c.generated < n {
		t.Errorf("%d data keys for %d messages, want at least %d", c.generated, workers*rounds, n)
	}
	before := c.opened
	for _, p := range parts {
		if _, err := s.Open(t.Context(), "a", seal.Algorithm, p.wrapped); err != nil {
			t.Fatal(err)
		}
	}
	if c.opened < before+others-kept {
		t.Errorf("%d of %d keys were opened again, want at most %d kept", c.opened-before, others, kept)
	}
}

// Made once by this package; the data key is 32 times 7, the static key 32 times k.
const (
	knownEmpty   = "44f942c84d90272740a6ff0a63f95ecac00c6d25696f7cc66eebd2ff"
	knownArgs    = "9d0cc3b232e9e3bed439fc1842df24fe2cdf655289e6b1d1d72083fa58ed5cb704bda1032f359c94aa5d2e"
	knownWrapped = "d45828161632688d3220c28264e83b75e56ffe193bdb681a2c7220432d82591730e720afcdc72d7ea8e221c589fdb64ed0210622b89187305cca83ca"
)
