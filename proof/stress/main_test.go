package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEachPackageHasALine(t *testing.T) {
	t.Setenv("STRESS_TEST_RUNS", filepath.Join(t.TempDir(), "runs"))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-burners=2", "./testdata/steady", "./testdata/fickle"}, &out, &errs)
	var lines []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "ok") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "run ") {
			lines = append(lines, line)
		}
	}
	if code != 1 || len(lines) != 3 || !strings.Contains(errs.String(), errFailed.Error()) {
		t.Fatalf("code %d, %s\n%s", code, errs.String(), out.String())
	}
	if f := strings.Fields(lines[0]); f[0] != "ok" || !strings.HasSuffix(f[1], "/testdata/steady") || len(f) != 5 {
		t.Errorf("the package that stands it: %q", lines[0])
	}
	if !strings.HasPrefix(lines[1], "FAIL") || !strings.HasPrefix(lines[2], "run 2: ") || !strings.Contains(out.String(), "the second time") {
		t.Errorf("the package that doesn't:\n%s", out.String())
	}
}

func TestCancelledRunEnds(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	t.Setenv("STRESS_TEST_RUNS", runs)
	t.Setenv("STRESS_TEST_HANG", "1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for { // until the test hangs
			if _, err := os.Stat(runs); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"-burners=1", "./testdata/fickle"}, &out, &errs); code != 1 || !strings.Contains(errs.String(), "canceled") || out.Len() > 0 {
		t.Errorf("code %d, %s\n%s", code, errs.String(), out.String())
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-times=0"}, {"-burners=-1"}, {"-nonsense"}} {
		if code := run(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)); code != 2 {
			t.Errorf("%q: code %d", args, code)
		}
	}
	if code := run(t.Context(), []string{"./testdata/nowhere"}, new(bytes.Buffer), new(bytes.Buffer)); code != 1 {
		t.Errorf("no such package: code %d", code)
	}
}
