package lambda_test

import (
	"log/slog"
	"os"
	"testing"
)

// Engines and records fail on purpose here.
func TestMain(m *testing.M) {
	switch os.Getenv(asFunction) {
	case "":
	case "overdue":
		overdueFunction()
	default:
		concurrentFunction()
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
