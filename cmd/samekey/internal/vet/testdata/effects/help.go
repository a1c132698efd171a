package effects

import (
	"context"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A file that helps tests is one of them.
func testing1(t *testing.T, a *App) {
	idem.Atomic(t.Context(), "one", one)
	a.announce(context.Background())
}
