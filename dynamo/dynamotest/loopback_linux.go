package dynamotest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// DynamoDB Local listens on every interface, and no option changes that. On Linux, a
// shim of a few lines is preloaded into the database's process, and makes the process
// bind to 127.0.0.1. After the start, package servers checks the process's sockets.

// canKeepLocal returns nil if this machine can keep DynamoDB Local on loopback, or if
// DYNAMOTEST_ALL_INTERFACES=1 permits every interface.
func canKeepLocal() error {
	if _, err := compiler(); err != nil && !servers.Allowed(envAllInterfaces) {
		return err
	}
	return nil
}

func compiler() (string, error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("DynamoDB Local listens on every interface, and the shim against it needs a C compiler: cc isn't in PATH: install one, or set %s=1 to let it listen", envAllInterfaces)
}

// loopbackEnv returns the environment variables that preload the shim into a process that runs in
// dir. On first use loopbackEnv compiles the shim into dir.
func loopbackEnv(ctx context.Context, dir string) ([]string, error) {
	name, err := compileShim(ctx, dir)
	if err != nil {
		if servers.Allowed(envAllInterfaces) {
			return nil, nil
		}
		return nil, err
	}
	preload := "./" + name // relative, since dir may have spaces and colons, at which the loader splits LD_PRELOAD
	if more := os.Getenv("LD_PRELOAD"); more != "" {
		preload += ":" + more
	}
	return []string{"LD_PRELOAD=" + preload}, nil
}

// compileShim compiles the shim into dir if it is missing there, and returns the file's
// name. The name contains the architecture and a hash of the source. Several processes
// may compile the shim at the same time, because each renames a complete file into
// place.
func compileShim(ctx context.Context, dir string) (string, error) {
	src := localFile("bindlo.c")
	sum := sha256.Sum256(src)
	name := "bindlo-" + runtime.GOARCH + "-" + hex.EncodeToString(sum[:6]) + ".so"
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return name, nil
	}
	cc, err := compiler()
	if err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(dir, "bindlo-tmp-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the loopback shim: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.WriteFile(filepath.Join(tmp, "bindlo.c"), src, 0o600); err != nil {
		return "", fmt.Errorf("writing the loopback shim: %w", err)
	}
	cmd := exec.CommandContext(ctx, cc, "-shared", "-fPIC", "-O2", "-o", "bindlo.so", "bindlo.c", "-ldl")
	cmd.Dir = tmp
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the loopback shim: %w: %s", err, out)
	}
	if err := os.Rename(filepath.Join(tmp, "bindlo.so"), filepath.Join(dir, name)); err != nil {
		return "", fmt.Errorf("putting the loopback shim in its place: %w", err)
	}
	return name, nil
}
