package scaffold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// samekey is the module that has the library and the program.
const samekey = "github.com/samekey/samekey"

// module is the module of a folder.
type module struct {
	path string // "" where there is none yet
	// uses says that it requires samekey.
	uses bool
}

// goCommand runs the go command in a folder and returns its output.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A cancelled go command can leave a child behind that holds the pipes.
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the go command is not on the PATH: install Go")
	case err != nil:
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// readModule finds the module of dir. A folder inside a module that begins further up
// is an error: the files belong at its top.
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
		return module{}, fmt.Errorf("this folder belongs to the module in %s: run samekey init there, or make this folder a module first (go mod init)", top)
	}
	out, err = goCommand(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return module{}, err
	}
	var file struct {
		Module  struct{ Path string }
		Require []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return module{}, fmt.Errorf("go mod edit -json: %w", err)
	}
	m := module{path: file.Module.Path}
	for _, r := range file.Require {
		m.uses = m.uses || r.Path == samekey
	}
	return m, nil
}

func sameFolder(a, b string) bool {
	ia, _ := os.Stat(a)
	ib, _ := os.Stat(b)
	return os.SameFile(ia, ib) // false for one that isn't there
}

// require makes the module in dir depend on samekey, as a library and as a tool.
func (o Options) require(ctx context.Context) error {
	// The worker is a tool for its go.sum: the module builds it.
	const program, worker = samekey + "/cmd/samekey", samekey + "/cmd/samekey-worker"
	args := []string{"get", "-tool", program + "@" + o.Version, worker + "@" + o.Version}
	if o.Replace != "" {
		args = []string{"mod", "edit", "-require=" + samekey + "@v0.0.0", "-replace=" + samekey + "=" + o.Replace, "-tool=" + program, "-tool=" + worker}
	}
	if _, err := goCommand(ctx, o.Dir, args...); err != nil {
		return err
	}
	_, err := goCommand(ctx, o.Dir, "mod", "tidy")
	return err
}
