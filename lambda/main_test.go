package lambda_test

import (
	"log/slog"
	"os"
	"testing"
)

// Engines and records fail on purpose here.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
