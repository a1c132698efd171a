package localtest

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestStretch(t *testing.T) {
	t.Parallel()
	if name := "STRETCH_TEST"; os.Getenv(name) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStretch$")
		cmd.Env = append(os.Environ(), StretchEnv+"=3", name+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if got := Stretch(2 * time.Second); got < 2*time.Second || got > 40*time.Second {
			t.Errorf("2 s become %v", got)
		}
		return
	}
	if got := Stretch(100 * time.Millisecond); got != 100*time.Millisecond {
		t.Errorf("100 ms become %v", got)
	}
	if got := Stretch(2 * time.Second); got != 6*time.Second || StretchVariable() != StretchEnv+"=3" {
		t.Errorf("2 s become %v; %s", got, StretchVariable())
	}
}
