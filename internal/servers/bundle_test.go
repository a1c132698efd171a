package servers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers/serverstest"
)

// A fake mvn writes into the folder it is told, and a line into a log.
const mvnStart = `echo run >>"$MVN_LOG"
for arg; do case "$arg" in -DoutputDirectory=*) out=${arg#*=} ;; esac; done
mkdir -p "$out"
printf one >"$out/one.jar"
`

const mvnGood = mvnStart + `printf two >"$out/two.so"
`

func smallBundle() Bundle {
	return Bundle{
		Name:  "small-1",
		POM:   []byte("<project/>"),
		Files: map[string][]byte{"log4j2.xml": []byte("<Configuration/>")},
		Sums:  fmt.Appendf(nil, "%x  one.jar\n%x  two.so\n", sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))),
	}
}

// withMaven puts a fake mvn before all others and returns a count of its runs.
func withMaven(t *testing.T, script string) (runs func() int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("MVN_LOG", log)
	t.Setenv("PATH", serverstest.Commands(t, map[string]string{"mvn": script})+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		b, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
}

// files lists the files below dir, the lock left out.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".lock") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var installed = []string{"small-1/.ok", "small-1/lib/one.jar", "small-1/lib/two.so", "small-1/log4j2.xml", "small-1/pom.xml"}

func wantFiles(t *testing.T, dir string, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestInstallRefusesWhatIsNotPinned(t *testing.T) {
	for _, tt := range []struct {
		name, mvn string
		checksum  bool   // whether it is an error of its own kind
		want      string // part of the message
	}{
		{"a file changed", mvnStart + `printf tow >"$out/two.so"`, true, "two.so has sha256 "},
		{"a file left out", mvnStart, true, "1 missing, such as two.so"},
		{"a file too many", mvnGood + `printf x >"$out/extra.jar"`, true, "extra.jar is not listed"},
		{"no folder", "exit 0", true, "no such file"},
		{"Maven fails halfway", mvnStart + "echo no route >&2; exit 1", false, "no route"},
		{"Maven is killed halfway", mvnStart + "kill -9 $$", false, "killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withMaven(t, tt.mvn)
			root := t.TempDir()
			err := smallBundle().Install(t.Context(), root)
			if errors.Is(err, ErrChecksum) != tt.checksum || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Install: got %v, want ErrChecksum %v and %q", err, tt.checksum, tt.want)
			}
			wantFiles(t, root, nil)
		})
	}
}

func TestInstallOnceForManyProcesses(t *testing.T) {
	runs := withMaven(t, "sleep 0.1\n"+mvnGood)
	root := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := smallBundle().Install(t.Context(), root); err != nil {
				t.Errorf("Install: %v", err)
			}
		})
	}
	wg.Wait()
	wantFiles(t, root, installed)
	if err := smallBundle().Cached(filepath.Join(root, "small-1")); err != nil {
		t.Errorf("cached: %v", err)
	}
	if got := runs(); got != 1 {
		t.Errorf("Maven ran %d times, want once", got)
	}
}

func TestInstallReplacesABrokenInstall(t *testing.T) {
	b := smallBundle()
	for name, spoil := range map[string]func(dir string) error{
		"a file renamed": func(dir string) error {
			return os.Rename(filepath.Join(dir, "log4j2.xml"), filepath.Join(dir, "log.xml"))
		},
		"no marker":      func(dir string) error { return os.Remove(filepath.Join(dir, markerFile)) },
		"another recipe": func(dir string) error { return os.WriteFile(filepath.Join(dir, markerFile), []byte("x"), 0o600) },
		"a file gone":    func(dir string) error { return os.Remove(filepath.Join(dir, "lib", "two.so")) },
		"a file more":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "lib", "x.jar"), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			runs := withMaven(t, mvnGood)
			root := t.TempDir()
			if err := b.Install(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			if err := spoil(b.Dir(root)); err != nil {
				t.Fatal(err)
			}
			if err := b.Cached(b.Dir(root)); err == nil {
				t.Error("cached took the broken install")
			}
			if err := b.Install(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, root, installed)
			if got := runs(); got != 2 {
				t.Errorf("Maven ran %d times, want twice", got)
			}
		})
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("second lock: got %v, want context.Canceled", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatalf("lock after unlock: %v", err)
	}
	unlock()
}

func TestParseSumsRefusesBadLines(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0", 64)
	for name, data := range map[string]string{
		"empty":           "",
		"no name":         sum + "  \n",
		"one blank":       sum + " a.jar\n",
		"a short sum":     "00  a.jar\n",
		"a way out":       sum + "  ../a.jar\n",
		"a folder":        sum + "  lib/a.jar\n",
		"a line too many": sum + "  a.jar\n\n",
	} {
		if sums, err := parseSums([]byte(data)); err == nil {
			t.Errorf("%s: got %v, want an error", name, sums)
		}
	}
}
