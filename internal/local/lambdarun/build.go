package lambdarun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// BuildBootstrap builds the main package pkg (a path as go build takes it, from
// the current directory) into the file out, with the flags of a deployed
// function but for this machine's system and architecture. No version control
// stamp is put in. The error holds what the compiler said.
func BuildBootstrap(ctx context.Context, pkg, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build",
		"-trimpath", "-buildvcs=false", "-ldflags=-s", "-tags=lambda.norpc", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// A cancelled go command can leave a compiler behind that holds the pipe.
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
