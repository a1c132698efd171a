package rides_test

import (
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/examples/rides"
)

func TestEnv(t *testing.T) {
	t.Setenv("TEXT", "x")
	t.Setenv("EMPTY", "")
	t.Setenv("ON", "1")
	t.Setenv("OFF", "0")
	t.Setenv("LONG", "1m30s")
	t.Setenv("SHORT", "10ms")
	t.Setenv("NONE", "0s")
	t.Setenv("TYPO", "1x")
	t.Setenv("NEGATIVE", "-1s")

	var good rides.Env
	if good.Text("TEXT") != "x" || !good.Flag("ON") || good.Flag("OFF") || good.Flag("EMPTY") {
		t.Error("texts and flags")
	}
	for name, want := range map[string]time.Duration{"LONG": 90 * time.Second, "SHORT": time.Second, "NONE": time.Second, "EMPTY": 0} {
		if got := good.Duration(name, time.Second); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := good.Err(); err != nil {
		t.Error(err)
	}

	var bad rides.Env
	bad.Text("EMPTY")
	bad.Flag("TEXT")
	bad.Duration("TYPO", 0)
	bad.Duration("NEGATIVE", 0)
	for _, name := range []string{"EMPTY", "TEXT", "TYPO", "NEGATIVE"} {
		if err := bad.Err(); err == nil || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("%v says nothing of %s", err, name)
		}
	}
}
