package dynamo_test

import (
	"testing"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/enginetest"
)

// The suite that MemoryStore passes too, unchanged.
func TestConformance(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	enginetest.TestStore(t, func(testing.TB) store.Store { return tab.Store })
}
