package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// publish adds modules to the module proxy in the folder dir. The modules are those in
// the given folders of root, as they are in the last commit. To use the proxy, set
// GOPROXY=file://DIR.
func publish(dir, root, version string, folders []string) error {
	for _, folder := range folders {
		if err := publishOne(dir, root, version, folder); err != nil {
			return fmt.Errorf("module in %s: %w", folder, err)
		}
	}
	return nil
}

func publishOne(dir, root, version, folder string) error {
	gomod, err := show(root, folder)
	if err != nil {
		return err
	}
	m := gomodule.Version{Path: modfile.ModulePath(gomod), Version: version}
	escaped, err := gomodule.EscapePath(m.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	var all bytes.Buffer
	if err := zip.CreateFromVCS(&all, m, root, "HEAD", strings.TrimPrefix(folder, ".")); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return err
	}
	known, err := os.ReadFile(filepath.Join(at, "list")) //nolint:gosec // the folder to write to
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, text := range map[string][]byte{
		version + ".zip": all.Bytes(), version + ".mod": gomod, version + ".info": info, "list": append(known, version+"\n"...),
	} {
		if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// show returns a folder's go.mod in the last commit.
func show(root, folder string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), "git", "show", "HEAD:./"+filepath.ToSlash(filepath.Join(folder, "go.mod"))) //nolint:gosec // folders of the repository
	cmd.Dir = root
	return cmd.Output()
}
