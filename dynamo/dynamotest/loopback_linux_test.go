package dynamotest

import (
	"bufio"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/servers"
)

// What DynamoDB Local listens on, seen without the code that checks it.
func TestTheDatabaseListensOnLoopbackOnly(t *testing.T) {
	db := findOwn(t)
	u, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	suffix := ":" + strings.ToUpper(strconv.FormatUint(port+0x10000, 16)[1:])
	var got []string
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				got = append(got, f[1])
			}
		}
	}
	if want := []string{"0100007F" + suffix}; runtime.GOARCH != "s390x" && !cmp.Equal(got, want) {
		t.Errorf("listening addresses: got %v, want %v", got, want)
	}
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
	t.Setenv("PATH", commands(t, map[string]string{filepath.Base(cc): "echo unexpected token; exit 1"}))
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

func TestTheDatabaseEndsWithAKilledTestProcess(t *testing.T) {
	if err := findOwn(t).Close(); err != nil { // or skip
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=find", envEndpoint+"=")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	endpoint := strings.TrimSpace(line)
	if endpoint == "" {
		_ = cmd.Wait()
		t.Fatal("the helper printed no endpoint")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	waitEnd(t, &DB{Endpoint: endpoint})

	// A later run would remove what it left; this one needn't leave it.
	root, err := servers.CacheRoot(envCache)
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(ddbLocal().Dir(root), "tmp-"+strconv.Itoa(cmd.Process.Pid)+"-*"))
	if err != nil || len(left) > 1 {
		t.Errorf("the helper left %v (%v), want one folder at most", left, err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}
