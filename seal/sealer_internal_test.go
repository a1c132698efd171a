package seal

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

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
