package servers

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestSkipsAreCountedByTheirReason(t *testing.T) {
	t.Parallel()
	var s Skips
	var out bytes.Buffer
	if s.Report(&out, "pkg"); out.Len() > 0 {
		t.Errorf("without skips: %s", &out)
	}
	for _, why := range []string{"no queue", "no table; tried:\n  java: not there", "no queue"} {
		if got := serverstest.RunTest(func(tb *serverstest.TB) { s.Skip(tb, errors.New(why)) }); got.SkippedWith != why {
			t.Errorf("skipped with %q, want %q", got.SkippedWith, why)
		}
	}
	s.Report(&out, "pkg")
	want := "pkg: 2 tests did not run: no queue\npkg: 1 tests did not run: no table; tried:; java: not there\n"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The go command hides what passing tests print.
func TestSkipsAreSeenWithoutV(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lets a test print to the go command's standard error")
	}
	for _, args := range [][]string{{}, {"-v"}} {
		cmd := exec.Command("go", append(append([]string{"test", "-count=1"}, args...), "./testdata/missed")...)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, &out, &errOut)
		}
		if got, want := errOut.String(), "missed: 2 tests did not run: there is no server here\n"; got != want {
			t.Errorf("%q: got %q, want %q", args, got, want)
		}
		if strings.Contains(out.String(), "did not run") {
			t.Errorf("%q: said twice: %s", args, &out)
		}
	}
}
