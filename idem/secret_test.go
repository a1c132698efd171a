package idem_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// TTL deletes late. A record whose lifetime is over needs its secret no more, wherever
// it is read.
func TestExpiredRecordNeedsNoSecret(t *testing.T) {
	t.Parallel()
	older := idem.Secret{ID: "1", Key: bytes.Repeat([]byte{1}, 32)}
	newer := idem.Secret{ID: "2", Key: bytes.Repeat([]byte{2}, 32)}
	mem, now := &idem.MemoryStore{}, time.Now()
	with := func(secret idem.Secret, more ...func(*idem.Options)) *idem.Engine {
		return idem.New(mem, append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) {
			o.Now, o.Fingerprint.Secrets = func() time.Time { return now }, []idem.Secret{secret}
		}}, more...)...)
	}
	if _, err := with(older).Do(t.Context(), request, answers(201)); err != nil {
		t.Fatal(err)
	}
	if _, err := with(newer).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrIncomparable) {
		t.Errorf("before its end: %v, want ErrIncomparable", err)
	}
	now = now.Add(defaults.Retention + time.Minute)
	if _, err := with(newer).Status(t.Context(), request); !errors.Is(err, idem.ErrKeyUnknown) {
		t.Errorf("its status: %v, want ErrKeyUnknown", err)
	}
	if _, err := with(newer, (&gate{wait: time.Second}).set).Do(t.Context(), request, never(t)); !errors.Is(err, idem.ErrQuota) {
		t.Errorf("over the quota: %v, want ErrQuota", err)
	}
	if res, err := with(newer).Do(t.Context(), request, answers(201)); err != nil || res.Replayed {
		t.Errorf("a new request: %+v, %v", res, err)
	}
}

// The zero secret holds the first place until all functions know the first secret.
func TestZeroSecret(t *testing.T) {
	t.Parallel()
	secret := idem.Secret{ID: "1", Key: bytes.Repeat([]byte{1}, 32)}
	for name, tc := range map[string]struct {
		secrets []idem.Secret
		fails   bool
	}{
		"first":         {[]idem.Secret{{}, secret}, false},
		"alone":         {[]idem.Secret{{}}, true},
		"last":          {[]idem.Secret{secret, {}}, true},
		"twice":         {[]idem.Secret{{}, {}, secret}, true},
		"key, no id":    {[]idem.Secret{{Key: secret.Key}, secret}, true},
		"an id, no key": {[]idem.Secret{{ID: "2"}, secret}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := &idem.MemoryStore{}
			defer func() {
				if failed := recover() != nil; failed != tc.fails {
					t.Errorf("New failed: %t", failed)
				}
			}()
			engine := idem.New(mem, callertest.Anybody, func(o *idem.Options) { o.Fingerprint.Secrets = tc.secrets })
			if _, err := engine.Do(t.Context(), request, answers(201)); err != nil {
				t.Fatal(err)
			}
			for _, r := range mem.Records() {
				if r.Secret != "" {
					t.Errorf("keyed by %q", r.Secret)
				}
			}
		})
	}
}
