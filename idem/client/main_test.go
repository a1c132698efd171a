package client_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if point := os.Getenv(crashingClient); point != "" {
		runCrashingClient(point)
		return
	}
	goleak.VerifyTestMain(m)
}
