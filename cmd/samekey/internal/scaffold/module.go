package scaffold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// samekey is the module that has the library and the worker.
const samekey = "github.com/samekey/samekey"

// worker becomes a tool of the user's module. Therefore go.sum has the checksums that
// the Makefile needs to build the worker. The worker has the library's version, because
// worker and library are in one module. The samekey command is in another module, which
// the user's module doesn't require. The Makefile runs the command at the library's
// version.
const worker = samekey + "/cmd/samekey-worker"

type module struct {
	path  string   // "" if the folder has no module
	uses  bool     // go.mod requires samekey, perhaps indirectly
	tools []string // packages
}

// module.complete reports whether the module requires samekey and has the worker as a
// tool. The module then has all requirements, because the worker requires every other
// module that Init's files import.
func (m module) complete() bool { return m.uses && slices.Contains(m.tools, worker) }

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A child process can outlive a cancelled go command and keep the pipes open.
	// Without WaitDelay, Output would wait for the child.
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("no go command on the PATH: install Go")
	case err != nil:
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// readModule reads the module of dir. If go.mod is in a parent folder, readModule
// returns an error, because Init's files belong beside go.mod.
func readModule(ctx context.Context, dir string) (module, error) {
	out, err := goCommand(ctx, dir, "env", "GOMOD")
	if err != nil {
		return module{}, err
	}
	gomod := strings.TrimSpace(out)
	if gomod == "" || gomod == os.DevNull {
		return module{}, nil
	}
	if top := filepath.Dir(gomod); !sameFolder(top, dir) {
		return module{}, fmt.Errorf("this folder belongs to the module in %s: run samekey init there, or run go mod init here first", top)
	}
	out, err = goCommand(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return module{}, err
	}
	var file struct {
		Module  struct{ Path string }
		Require []struct{ Path string }
		Tool    []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return module{}, fmt.Errorf("go mod edit -json: %w", err)
	}
	m := module{path: file.Module.Path}
	for _, r := range file.Require {
		m.uses = m.uses || r.Path == samekey
	}
	for _, tool := range file.Tool {
		m.tools = append(m.tools, tool.Path)
	}
	return m, nil
}

// fitting is the date of the first service modules that work with today's
// aws-sdk-go-v2. Older service modules compile, but each call fails:
// https://github.com/aws/aws-sdk-go-v2/issues/2370.
const fitting = "2023-11-15"

// oldServices returns the service modules of dir's build list that are older than fitting.
// It returns nil if the go command fails, since the result is only advice.
func oldServices(ctx context.Context, dir string) (old []string) {
	out, err := goCommand(ctx, dir, "list", "-mod=mod", "-m", "-f", `{{.Path}} {{with .Time}}{{.Format "2006-01-02"}}{{end}}`, "github.com/aws/aws-sdk-go-v2/service/...")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(out) {
		if path, from, _ := strings.Cut(strings.TrimSpace(line), " "); from != "" && from < fitting {
			old = append(old, path)
		}
	}
	return old
}

func sameFolder(a, b string) bool {
	ia, _ := os.Stat(a)
	ib, _ := os.Stat(b)
	return os.SameFile(ia, ib) // false if a folder is missing
}

// Options.require makes the module in dir depend on samekey, as a library and for the
// worker. If mod already requires a version of samekey, that version stays.
func (o Options) require(ctx context.Context, mod module) error {
	args := []string{"mod", "edit", "-tool=" + worker}
	if !mod.uses {
		args = []string{"get", "-tool", worker + "@" + o.Version}
	}
	if _, err := goCommand(ctx, o.Dir, args...); err != nil {
		return err
	}
	_, err := goCommand(ctx, o.Dir, "mod", "tidy")
	return err
}
