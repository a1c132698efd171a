package dynamotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestShimIsCompiledOnce(t *testing.T) {
	cc, err := compiler()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	first, err := loopbackEnv(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// From here on every compiler fails.
	t.Setenv("PATH", serverstest.Commands(t, map[string]string{filepath.Base(cc): "echo unexpected token; exit 1"}))
	t.Setenv("LD_PRELOAD", "")
	again, err := loopbackEnv(t.Context(), dir)
	if err != nil || !cmp.Equal(first, again) {
		t.Errorf("second time: got %v, %v; want %v", again, err, first)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || first[0] != "LD_PRELOAD=./"+entries[0].Name() {
		t.Errorf("folder has %v (%v), want only what %v names", entries, err, first)
	}
	_, err = loopbackEnv(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "unexpected token") {
		t.Errorf("a failing compiler: got %v, want what it said", err)
	}
	t.Setenv(envAllInterfaces, "1")
	if env, err := loopbackEnv(t.Context(), t.TempDir()); err != nil || env != nil {
		t.Errorf("a failing compiler and every interface allowed: got %v, %v; want nothing", env, err)
	}
}
