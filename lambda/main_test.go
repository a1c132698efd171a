package lambda_test

import (
	"log/slog"
	"os"
	"testing"
)

// Engines and records fail on purpose here.
func TestMain(m *testing.M) {
	if os.Getenv(asFunction) != "" {
		concurrentFunction()
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
