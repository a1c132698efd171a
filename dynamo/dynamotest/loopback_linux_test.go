package dynamotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

// What DynamoDB Local listens on, seen without the code that checks it; and how it ends.
func TestTheDatabaseListensOnLoopbackOnly(t *testing.T) {
	db := findOwn(t)
	if got, want := serverstest.Loopback(t, db.Endpoint); !cmp.Equal(got, want) {
		t.Errorf("listening addresses: got %v, want %v", got, want)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("it ends with a killed test process", func(t *testing.T) {
		root, err := servers.CacheRoot(envCache)
		if err != nil {
			t.Fatal(err)
		}
		serverstest.EndsWithAKilledParent(t, envEndpoint, ddbLocal().Dir(root))
	})
}

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
