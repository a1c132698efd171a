package idem_test

import (
	"log/slog"
	"os"
	"testing"
)

// Thousands of engines fail on purpose here.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
