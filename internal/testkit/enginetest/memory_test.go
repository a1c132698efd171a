package enginetest

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // engines fail on purpose here
	goleak.VerifyTestMain(m)
}

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	TestStore(t, func(t testing.TB) store.Store {
		t.Helper()
		if name := os.Getenv(mutantEnv); name != "" { // TestMutants has started us
			return newMutant(t, name)
		}
		return new(idem.MemoryStore)
	})
}
