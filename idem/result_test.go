package idem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A result that storing would change is refused before the commit: a resumed run
// would continue with another value.
func TestResultThatChangesInTheRecordIsRefused(t *testing.T) {
	t.Parallel()
	var mem idem.MemoryStore
	_, err := do(t, idem.New(&mem), answering(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "one", func(_ context.Context, tx *idem.Tx) (any, error) {
			tx.Write(note("one"))
			return int64(1<<53 + 1), nil // read back into any, the value is a float64
		})
		return err
	}))
	if !errors.Is(err, idem.ErrResult) || len(mem.Writes()) != 0 {
		t.Errorf("got %v, wrote %v", err, written(&mem))
	}
}
