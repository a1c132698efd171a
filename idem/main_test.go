package idem_test

import (
	"log/slog"
	"os"
	"testing"
)

// Thousands of engines fail here, as intended.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
