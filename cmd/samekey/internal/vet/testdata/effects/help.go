package effects

import (
	"context"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A file with helpers for tests counts as a test.
func testing1(t *testing.T, a *App) {
	idem.Atomic(t.Context(), "one", one)
	a.announce(context.Background())
}
