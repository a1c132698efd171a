package fickle

import (
	"os"
	"testing"
)

// TestFickle notes each run in a file, and fails the second time.
func TestFickle(t *testing.T) {
	name := os.Getenv("STRESS_TEST_RUNS")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("STRESS_TEST_HANG") != "" {
		select {}
	}
	if runs, err := os.ReadFile(name); err != nil || len(runs) == 2 {
		t.Errorf("the second time: %v", err)
	}
}
