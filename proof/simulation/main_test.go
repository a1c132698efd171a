package simulation

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // warnings of thousands of faults
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			slog.Error("goroutines are left", "error", err)
			code = 1
		}
	}
	os.Exit(code)
}
