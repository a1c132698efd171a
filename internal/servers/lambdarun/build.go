package lambdarun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// BuildBootstrap builds the main package pkg into the file out, with the flags of a
// deployed function. pkg is an import path, or a path relative to the current
// directory, as for go build. The binary is for this machine's system and architecture,
// and has no version control stamp. The error contains the compiler's messages.
func BuildBootstrap(ctx context.Context, pkg, out string) error {
	return BuildBootstrapIn(ctx, "", pkg, out)
}

// Tags are the build tags of a bootstrap.
const Tags = "lambda.norpc"

// Environ returns the environment of the go command that builds a bootstrap for this
// machine.
func Environ() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}

// BuildBootstrapIn is like [BuildBootstrap], but runs go build in the folder dir, so
// that pkg is relative to dir. The dir "" is the current directory. out is relative to
// the current directory, not to dir.
func BuildBootstrapIn(ctx context.Context, dir, pkg, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("lambdarun: build %s: %w", pkg, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build",
		"-trimpath", "-buildvcs=false", "-ldflags=-s", "-tags="+Tags, "-o", out, pkg)
	cmd.Dir, cmd.Env = dir, Environ()
	// A cancelled go command can leave behind a compiler that keeps the output's pipe
	// open, so limit the wait for the pipe.
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("lambdarun: build %s: %w", pkg, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("lambdarun: build %s: %w\n%s", pkg, err, strings.TrimSpace(string(output)))
	}
	return nil
}
