package idemtest

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // engines fail on purpose here
	goleak.VerifyTestMain(m)
}
