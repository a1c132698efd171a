package servers

import (
	"bytes"
	"errors"
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
